package files

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
)

// Options of a search.
type Options struct {
	Limit, Offset int  // results; Limit 0 means 10
	HideOffline   bool // leave out what only offline hosts have; else it comes last
	Newest        bool // newest first; words such as "newest" in the query ask for it too
	Facets        bool
	Kind          string // "" all
	Now           time.Time
}

// Results is one page of results.
type Results struct {
	Total   int  // titles that match; of more than a few ten thousand files, the number of files
	Exact   bool // Total counts titles
	Files   int  // files that match
	Hits    []Hit
	Facets  map[string][]Count
	Elapsed time.Duration
}

// Count is one value of a facet.
type Count struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Hit is a title with its copies, the best place first.
type Hit struct {
	Title  string
	Kind   media.Kind
	Score  float64
	Online bool
	Media  media.Info // of the best copy
	Copies []Copy
}

// Copy is one file.
type Copy struct {
	URL      string
	UNC      string // \\host\share\path of SMB, else ""
	Host     string
	Path     string
	Name     string
	Size     int64
	Modified time.Time
	Seen     time.Time
	Online   bool
	BitRate  int
	Duration time.Duration
	Width    int
	Height   int
}

// groupLimit bounds the files that are grouped into titles; the best ones are
// taken when more match.
const groupLimit = 20_000

// view is the index as one search sees it.
type view struct {
	segs    []*segment
	hosts   []string
	offline map[uint32]bool
}

func (x *Index) view() view {
	x.mu.RLock()
	defer x.mu.RUnlock()
	v := view{segs: slices.Clone(x.segs), hosts: slices.Clone(x.hosts), offline: make(map[uint32]bool, len(x.offline))}
	for h := range x.offline {
		v.offline[h] = true
	}
	return v
}

// Search answers a query of the search box. Fields are those of package query.
func (x *Index) Search(ctx context.Context, q query.Node, o Options) (*Results, error) {
	begin := time.Now()
	if o.Limit <= 0 {
		o.Limit = 10
	}
	if o.Now.IsZero() {
		o.Now = begin
	}
	q, newest := dropNewest(q)
	o.Newest = o.Newest || newest
	if o.Kind != "" {
		q = query.Simplify(query.And{q, query.Filter{Field: "kind", Value: o.Kind}})
	}
	v := x.view()
	res := &Results{Facets: map[string][]Count{}}
	e := evaluation{view: v, options: o}
	found := e.match(q)
	facets := newFacets(o.Facets)
	var all []scored
	for i, s := range v.segs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		docs := found[i].ToArray()
		res.Files += len(docs)
		facets.count(v, s, docs)
		all = e.score(all, i, docs)
	}
	res.Exact = len(all) <= groupLimit
	if !res.Exact {
		all = best(all, groupLimit)
	}
	hits := e.group(all)
	res.Total = len(hits)
	if !res.Exact {
		res.Total = max(res.Files, len(hits))
	}
	slices.SortStableFunc(hits, func(a, b *title) int {
		if a.online != b.online {
			if a.online {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(len(b.files), len(a.files)), cmp.Compare(a.key, b.key))
	})
	for _, t := range hits[min(o.Offset, len(hits)):min(o.Offset+o.Limit, len(hits))] {
		res.Hits = append(res.Hits, e.hit(t))
	}
	res.Facets = facets.top(v)
	res.Elapsed = time.Since(begin)
	return res, nil
}

// newestWords ask for what is new; they are no words to look for, unless alone.
var newestWords = map[string]bool{
	"newest": true, "latest": true, "recent": true, "новинка": true, "новинки": true, "последняя": true, "последний": true, "свежее": true,
	"naujausias": true, "naujausia": true, "naujausi": true,
}

func dropNewest(q query.Node) (query.Node, bool) {
	all, ok := q.(query.And)
	if !ok {
		return q, false
	}
	var rest query.And
	newest := false
	for _, n := range all {
		if t, ok := n.(query.Term); ok && t.Field == "" && newestWords[strings.ToLower(t.Text)] {
			newest = true
			continue
		}
		rest = append(rest, n)
	}
	return query.Simplify(rest), newest
}

// scored is a document with its score.
type scored struct {
	seg   int
	doc   uint32
	score float64
}

// best returns the n of all with the greatest scores, by a heap of n.
func best(all []scored, n int) []scored {
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	return all[:n]
}

// title is a group of files under way.
type title struct {
	key    uint64
	score  float64
	online bool
	files  []scored
	hosts  map[uint32]bool
}

// group puts copies together. More copies, on more hosts, raise a title: people
// keep what they like.
func (e *evaluation) group(all []scored) []*title {
	byKey := make(map[uint64]*title, len(all))
	out := make([]*title, 0, len(all))
	for _, f := range all {
		s := e.segs[f.seg]
		k := s.group[f.doc]
		t := byKey[k]
		if t == nil {
			t = &title{key: k, hosts: map[uint32]bool{}}
			byKey[k] = t
			out = append(out, t)
		}
		t.files = append(t.files, f)
		t.score = max(t.score, f.score)
		host := s.folderHost[s.folderOf(f.doc)]
		t.hosts[host] = true
		t.online = t.online || !e.offline[host]
	}
	for _, t := range out {
		if !e.options.Newest {
			t.score *= 1 + 0.1*math.Log(float64(len(t.files))) + 0.1*math.Log(float64(len(t.hosts)))
		}
	}
	return out
}

// hit makes the result of a title.
func (e *evaluation) hit(t *title) Hit {
	slices.SortStableFunc(t.files, func(a, b scored) int {
		x, y := e.online(a), e.online(b)
		if x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.score, a.score)
	})
	h := Hit{Score: t.score, Online: t.online}
	for i, f := range t.files {
		s := e.segs[f.seg]
		name := s.name(f.doc)
		in := s.infoOf(f.doc)
		if in == nil {
			in = &media.Info{}
		}
		if i == 0 {
			h.Media = *in
			h.Kind = kindNames[s.kind[f.doc]]
			h.Title = media.TitleOf(name, s.size[f.doc], in).Display
		}
		if i >= maxCopies {
			break
		}
		dir := s.folderOf(f.doc)
		host := e.hosts[s.folderHost[dir]]
		path := part.JoinPath(s.folderPath[dir], name)
		h.Copies = append(h.Copies, Copy{
			URL: share.FileURL(host, path), UNC: unc(host, path), Host: host, Path: path, Name: name, Size: s.size[f.doc],
			Modified: time.Unix(int64(s.mtime[f.doc]), 0).UTC(), Seen: time.Unix(int64(s.seen[f.doc]), 0).UTC(), Online: e.online(f),
			BitRate: in.BitRate, Duration: in.Duration, Width: in.Width, Height: in.Height,
		})
	}
	return h
}

// maxCopies bounds the copies that one result lists.
const maxCopies = 100

func (e *evaluation) online(f scored) bool {
	s := e.segs[f.seg]
	return !e.offline[s.folderHost[s.folderOf(f.doc)]]
}

// unc returns \\server\share\path of an SMB address.
func unc(host, path string) string {
	u, err := url.Parse(host)
	if err != nil || u.Scheme != "smb" {
		return ""
	}
	return `\\` + u.Hostname() + strings.ReplaceAll(strings.TrimSuffix(u.Path, "/")+"/"+path, "/", `\`)
}

// facets count values of what matches.
type facets struct {
	on    bool
	kinds map[byte]int
	exts  map[string]int
	hosts map[uint32]int
	years map[int]int
	genre map[string]int
}

func newFacets(on bool) *facets {
	return &facets{on: on, kinds: map[byte]int{}, exts: map[string]int{}, hosts: map[uint32]int{}, years: map[int]int{}, genre: map[string]int{}}
}

// facetSample bounds the documents of a segment that are looked at; of more, every
// n-th one is, and counts n.
const facetSample = 20_000

func (f *facets) count(v view, s *segment, docs []uint32) {
	if !f.on {
		return
	}
	step := 1 + len(docs)/facetSample
	for i := 0; i < len(docs); i += step {
		d := docs[i]
		f.kinds[s.kind[d]] += step
		f.hosts[s.folderHost[s.folderOf(d)]] += step
		if e := media.Ext(s.name(d)); e != "" {
			f.exts[e] += step
		}
		if in := s.infoOf(d); in != nil {
			if in.Year > 0 {
				f.years[in.Year] += step
			}
			if in.Genre != "" {
				f.genre[strings.ToLower(in.Genre)] += step
			}
		}
	}
}

func (f *facets) top(v view) map[string][]Count {
	if !f.on {
		return nil
	}
	out := map[string][]Count{}
	add := func(name, value string, n int) { out[name] = append(out[name], Count{value, n}) }
	for k, n := range f.kinds {
		add("kind", string(kindNames[k]), n)
	}
	for h, n := range f.hosts {
		add("host", v.hosts[h], n)
	}
	for e, n := range f.exts {
		add("ext", e, n)
	}
	for y, n := range f.years {
		add("year", itoa(y), n)
	}
	for g, n := range f.genre {
		add("genre", g, n)
	}
	for name, list := range out {
		slices.SortFunc(list, func(a, b Count) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Value, b.Value)) })
		out[name] = list[:min(len(list), 20)]
	}
	return out
}

// empty is a set without documents.
func empty() *roaring.Bitmap { return roaring.New() }
