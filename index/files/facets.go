package files

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/share/media"
)

// facets count values of the files that match.
type facets struct {
	on     bool
	step   int // every which file is looked at
	kinds  map[media.Kind]int
	exts   map[string]int
	hosts  map[string]int
	years  map[int]int
	genres map[string]int
}

// facetSample bounds the files that are looked at; of more, every n-th one is, and
// counts n.
const facetSample = 20_000

// facetSize is how many values of a facet are returned.
const facetSize = 20

func newFacets(on bool, matches int) *facets {
	return &facets{
		on: on, step: 1 + matches/facetSample,
		kinds: map[media.Kind]int{}, exts: map[string]int{}, hosts: map[string]int{}, years: map[int]int{}, genres: map[string]int{},
	}
}

// countFacets adds the files of one segment.
func (f *facets) countFacets(r *reader, in *roaring.Bitmap) {
	if !f.on {
		return
	}
	it := in.Iterator()
	for n := 0; it.HasNext(); n++ {
		d := it.Next()
		if n%f.step != 0 {
			continue
		}
		f.kinds[r.kindOf(d)] += f.step
		f.hosts[r.hosts[r.hostOfFile(d)]] += f.step
		if e := media.Ext(string(r.nameOfFile(d))); e != "" {
			f.exts[e] += f.step
		}
		if in := r.infoOf(d); in != nil {
			if in.Year > 0 {
				f.years[in.Year] += f.step
			}
			if in.Genre != "" {
				f.genres[strings.ToLower(in.Genre)] += f.step
			}
		}
	}
}

// topFacets returns the most frequent values; scale is how many matches each stands for.
func (f *facets) topFacets(scale float64) map[string][]Count {
	if !f.on {
		return nil
	}
	out := map[string][]Count{}
	add := func(name, value string, n int) {
		out[name] = append(out[name], Count{value, int(float64(n) * scale)})
	}
	for k, n := range f.kinds {
		add("kind", string(k), n)
	}
	for h, n := range f.hosts {
		add("host", h, n)
	}
	for e, n := range f.exts {
		add("ext", e, n)
	}
	for y, n := range f.years {
		add("year", strconv.Itoa(y), n)
	}
	for g, n := range f.genres {
		add("genre", g, n)
	}
	for name, list := range out {
		slices.SortFunc(list, func(a, b Count) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Value, b.Value)) })
		out[name] = list[:min(len(list), facetSize)]
	}
	return out
}
