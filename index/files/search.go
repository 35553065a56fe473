package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

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
	Files   int  // files that match; an estimate where very many names have a piece
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
	x.lastSearch.Store(begin.UnixNano())
	if err := x.refreshFiles(); err != nil {
		return nil, err
	}
	res := &Results{Facets: map[string][]Count{}}
	err := x.set.Read(func(parts []*view) error {
		e := evaluation{ctx: ctx, options: o, offline: x.offlineHosts(), scale: 1}
		for _, v := range parts {
			e.readers = append(e.readers, newReader(v))
		}
		return e.runQuery(q, res)
	})
	if err != nil {
		return nil, fmt.Errorf("search %q: %w", q, err)
	}
	res.Elapsed = time.Since(begin)
	return res, nil
}

// offlineHosts returns the hosts that do not answer.
func (x *Index) offlineHosts() map[string]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.offline)
}

// runQuery fills the results.
func (e *evaluation) runQuery(q query.Node, res *Results) error {
	found := e.matchQuery(q)
	count := found.totalCount()
	facets := newFacets(e.options.Facets, count)
	all := make([]scored, 0, min(count, 2*groupLimit))
	for i, r := range e.readers {
		facets.countFacets(r, found[i])
		err := e.scoreFiles(i, found[i], func(s scored) {
			if all = append(all, s); len(all) == 2*groupLimit {
				all = bestScored(all, groupLimit)
			}
		})
		if err := errors.Join(err, e.ctx.Err(), r.err); err != nil {
			return err
		}
	}
	res.Files = int(float64(count) * e.scale)
	res.Exact = count <= groupLimit && e.scale == 1
	if len(all) > groupLimit {
		all = bestScored(all, groupLimit)
	}
	hits := e.groupCopies(all)
	res.Total = len(hits)
	switch {
	case count > groupLimit:
		res.Total = max(res.Files, len(hits))
	case e.scale > 1:
		res.Total = int(float64(len(hits)) * e.scale)
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
	for _, t := range hits[min(e.options.Offset, len(hits)):min(e.options.Offset+e.options.Limit, len(hits))] {
		res.Hits = append(res.Hits, e.titleHit(t))
	}
	res.Facets = facets.topFacets(e.scale)
	for _, r := range e.readers {
		if r.err != nil {
			return r.err
		}
	}
	return nil
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

// bestScored returns the n of all with the greatest scores.
func bestScored(all []scored, n int) []scored {
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.seg, b.seg), cmp.Compare(a.doc, b.doc))
	})
	return all[:n]
}

// title is a group of files under way.
type title struct {
	key    uint64
	score  float64
	online bool
	files  []scored
	hosts  map[string]bool
}

// groupCopies puts copies together. More copies, on more hosts, raise a title: people
// keep what they like.
func (e *evaluation) groupCopies(all []scored) []*title {
	byKey := make(map[uint64]*title, len(all))
	out := make([]*title, 0, len(all))
	for _, f := range all {
		r := e.readers[f.seg]
		k := r.groupOf(f.doc)
		t := byKey[k]
		if t == nil {
			t = &title{key: k, hosts: map[string]bool{}}
			byKey[k] = t
			out = append(out, t)
		}
		t.files = append(t.files, f)
		t.score = max(t.score, f.score)
		host := r.hosts[r.hostOfFile(f.doc)]
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

// titleHit makes the result of a title.
func (e *evaluation) titleHit(t *title) Hit {
	slices.SortStableFunc(t.files, func(a, b scored) int {
		x, y := e.isOnline(a), e.isOnline(b)
		if x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.score, a.score)
	})
	h := Hit{Score: t.score, Online: t.online}
	for i, f := range t.files[:min(len(t.files), maxCopies)] {
		r := e.readers[f.seg]
		name := string(r.nameOfFile(f.doc))
		in := r.infoOf(f.doc)
		if in == nil {
			in = &media.Info{}
		}
		if i == 0 {
			h.Media = *in
			h.Kind = r.kindOf(f.doc)
			h.Title = media.TitleOf(name, r.sizeOf(f.doc), in).Display
		}
		dir := r.folderOf(f.doc)
		host, path := r.hostOf(dir), part.JoinPath(r.pathOfFolder(dir), name)
		h.Copies = append(h.Copies, Copy{
			URL: share.FileURL(host, path), UNC: uncPath(host, path), Host: host, Path: path, Name: name, Size: r.sizeOf(f.doc),
			Modified: time.Unix(int64(r.modifiedOf(f.doc)), 0).UTC(), Seen: time.Unix(int64(r.seenOf(f.doc)), 0).UTC(), Online: !e.offline[host],
			BitRate: in.BitRate, Duration: in.Duration, Width: in.Width, Height: in.Height,
		})
	}
	return h
}

// maxCopies bounds the copies that one result lists.
const maxCopies = 100

func (e *evaluation) isOnline(f scored) bool {
	r := e.readers[f.seg]
	return !e.offline[r.hosts[r.hostOfFile(f.doc)]]
}

// uncPath returns \\server\share\path of an SMB address.
func uncPath(host, path string) string {
	u, err := url.Parse(host)
	if err != nil || u.Scheme != "smb" {
		return ""
	}
	return `\\` + u.Hostname() + strings.ReplaceAll(strings.TrimSuffix(u.Path, "/")+"/"+path, "/", `\`)
}
