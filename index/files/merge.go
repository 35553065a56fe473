package files

import (
	"cmp"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
)

// gone marks a deleted document or an emptied folder in a renumbering.
const gone = ^uint32(0)

// merge makes one segment of several, without what was deleted. Words are not cut
// again: dictionaries and postings are merged.
func merge(segs []*segment) *segment {
	m := &merger{segs: segs, out: &segment{deleted: roaring.New()}}
	m.documents()
	m.dictionary()
	m.out.indexTrigrams()
	return m.out
}

type merger struct {
	segs []*segment
	out  *segment
	doc  [][]uint32 // new number of each segment's documents
	dir  [][]uint32 // ... folders
}

// documents copies the columns in the merged order.
func (m *merger) documents() {
	type ref struct{ seg, folder int }
	var refs []ref
	for i, s := range m.segs {
		m.doc = append(m.doc, make([]uint32, s.docs()))
		m.dir = append(m.dir, make([]uint32, len(s.folderPath)))
		for j := range s.folderPath {
			refs = append(refs, ref{i, j})
		}
	}
	slices.SortFunc(refs, func(a, b ref) int {
		x, y := m.segs[a.seg], m.segs[b.seg]
		return cmp.Or(cmp.Compare(x.folderHost[a.folder], y.folderHost[b.folder]), strings.Compare(x.folderPath[a.folder], y.folderPath[b.folder]))
	})
	o := m.out
	type item struct {
		name string
		seg  int
		doc  uint32
	}
	var items []item
	for i := 0; i < len(refs); {
		first := refs[i]
		host, path := m.segs[first.seg].folderHost[first.folder], m.segs[first.seg].folderPath[first.folder]
		items = items[:0]
		n := uint32(len(o.folderPath))
		for ; i < len(refs); i++ {
			s := m.segs[refs[i].seg]
			j := refs[i].folder
			if s.folderHost[j] != host || s.folderPath[j] != path {
				break
			}
			m.dir[refs[i].seg][j] = n
			for d := s.start[j]; d < s.start[j+1]; d++ {
				if s.deleted.Contains(d) {
					m.doc[refs[i].seg][d] = gone
					continue
				}
				items = append(items, item{s.name(d), refs[i].seg, d})
			}
		}
		if len(items) == 0 {
			// Folders numbered n may take the next folder's number: mark them.
			for k := i - 1; k >= 0; k-- {
				s := m.segs[refs[k].seg]
				if s.folderHost[refs[k].folder] != host || s.folderPath[refs[k].folder] != path {
					break
				}
				m.dir[refs[k].seg][refs[k].folder] = gone
			}
			continue
		}
		slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
		o.folderHost = append(o.folderHost, host)
		o.folderPath = append(o.folderPath, path)
		o.start = append(o.start, uint32(len(o.size)))
		for _, it := range items {
			m.copyDoc(m.segs[it.seg], it.seg, it.doc)
		}
	}
	o.start = append(o.start, uint32(len(o.size)))
	o.nameAt = append(o.nameAt, uint32(len(o.names)))
}

func (m *merger) copyDoc(s *segment, seg int, d uint32) {
	o := m.out
	n := uint32(len(o.size))
	m.doc[seg][d] = n
	o.nameAt = append(o.nameAt, uint32(len(o.names)))
	o.names = append(o.names, s.names[s.nameAt[d]:s.nameAt[d+1]]...)
	o.size = append(o.size, s.size[d])
	o.mtime = append(o.mtime, s.mtime[d])
	o.seen = append(o.seen, s.seen[d])
	o.group = append(o.group, s.group[d])
	o.kind = append(o.kind, s.kind[d])
	o.length = append(o.length, s.length[d])
	if in := s.infoOf(d); in != nil {
		o.tagged = append(o.tagged, n)
		o.info = append(o.info, *in)
	}
}

// dictionary merges terms and postings.
func (m *merger) dictionary() {
	o := m.out
	at := make([]int, len(m.segs))
	var posts, places []post
	for {
		word, hasTerm := "", false
		for i, s := range m.segs {
			if at[i] < s.termCount() {
				if t := s.term(at[i]); !hasTerm || t < word {
					word, hasTerm = t, true
				}
			}
		}
		if !hasTerm {
			break
		}
		posts, places = posts[:0], places[:0]
		for i, s := range m.segs {
			if at[i] >= s.termCount() || s.term(at[i]) != word {
				continue
			}
			s.eachPost(at[i], func(d uint32, mask byte) {
				if n := m.doc[i][d]; n != gone {
					posts = append(posts, post{0, n, mask})
				}
			})
			s.eachPlace(at[i], func(f uint32) {
				if n := m.dir[i][f]; n != gone {
					places = append(places, post{0, n, 0})
				}
			})
			at[i]++
		}
		if len(posts)+len(places) == 0 {
			continue
		}
		o.termAt = append(o.termAt, uint32(len(o.terms)))
		o.terms = append(o.terms, word...)
		o.postAt = append(o.postAt, uint32(len(o.posts)))
		o.posts = appendSorted(o.posts, posts, true)
		o.placeAt = append(o.placeAt, uint32(len(o.places)))
		o.places = appendSorted(o.places, places, false)
	}
	o.termAt = append(o.termAt, uint32(len(o.terms)))
	o.postAt = append(o.postAt, uint32(len(o.posts)))
	o.placeAt = append(o.placeAt, uint32(len(o.places)))
}

func appendSorted(out []byte, in []post, masks bool) []byte {
	byPlace := func(a, b post) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(in, byPlace) {
		slices.SortFunc(in, byPlace)
	}
	last := uint32(0)
	for i, p := range in {
		if i > 0 && p.at == in[i-1].at {
			continue // a folder in two segments
		}
		out = appendPost(out, p.at-last, p.mask, masks)
		last = p.at
	}
	return out
}
