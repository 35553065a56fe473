package files

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/share/media"
)

// segment is an immutable piece of the index: documents in the order of host,
// folder and name, a sorted dictionary of terms with postings, and trigrams over
// the dictionary. Only its set of deleted documents changes, by replacement.
type segment struct {
	// Folders that have files, by (host, path); docs of folder i are
	// [start[i], start[i+1]).
	folderHost []uint32
	folderPath []string
	start      []uint32

	// One column per property of a document.
	names   []byte
	nameAt  []uint32 // len(docs)+1
	size    []int64
	mtime   []uint32
	seen    []uint32
	group   []uint64
	kind    []byte
	length  []byte // words, at most 255
	tagged  []uint32
	info    []media.Info // of tagged documents
	deleted *roaring.Bitmap

	terms    []byte // the dictionary, sorted
	termAt   []uint32
	posts    []byte // postings of documents: delta<<1|has mask, mask
	postAt   []uint32
	places   []byte // postings of folders: delta
	placeAt  []uint32
	trigrams []uint32 // sorted
	triAt    []uint32
	tri      []byte // term numbers: delta
}

func (s *segment) docs() int { return len(s.size) }

func (s *segment) name(doc uint32) string {
	return string(s.names[s.nameAt[doc]:s.nameAt[doc+1]])
}

func (s *segment) folderOf(doc uint32) int {
	i, found := slices.BinarySearch(s.start, doc) // every folder has a document
	if found {
		return i
	}
	return i - 1
}

func (s *segment) infoOf(doc uint32) *media.Info {
	if i, ok := slices.BinarySearch(s.tagged, doc); ok {
		return &s.info[i]
	}
	return nil
}

func (s *segment) term(i int) string { return string(s.terms[s.termAt[i]:s.termAt[i+1]]) }
func (s *segment) termCount() int    { return len(s.termAt) - 1 }

// find returns the number of the first term >= word and whether it is word.
func (s *segment) find(word string) (int, bool) {
	low, high := 0, s.termCount()
	for low < high {
		mid := (low + high) / 2
		if string(s.terms[s.termAt[mid]:s.termAt[mid+1]]) < word {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, low < s.termCount() && string(s.terms[s.termAt[low]:s.termAt[low+1]]) == word
}

// eachPost calls f for the documents of a term, in order.
func (s *segment) eachPost(term int, f func(doc uint32, mask byte)) {
	b := s.posts[s.postAt[term]:s.postAt[term+1]]
	doc := uint32(0)
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		doc += uint32(v >> 1)
		mask := byte(inName)
		if v&1 != 0 {
			mask = b[0]
			b = b[1:]
		}
		f(doc, mask)
	}
}

// eachPlace calls f for the folders of a term, in order.
func (s *segment) eachPlace(term int, f func(folder uint32)) {
	b := s.places[s.placeAt[term]:s.placeAt[term+1]]
	folder := uint32(0)
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		folder += uint32(v)
		f(folder)
	}
}

// locate returns the document at a path.
func (s *segment) locate(host uint32, folder, name string) (uint32, bool) {
	low, high := 0, len(s.folderPath)
	for low < high {
		mid := (low + high) / 2
		if c := cmp.Or(cmp.Compare(s.folderHost[mid], host), strings.Compare(s.folderPath[mid], folder)); c < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(s.folderPath) || s.folderHost[low] != host || s.folderPath[low] != folder {
		return 0, false
	}
	a, b := s.start[low], s.start[low+1]
	for a < b {
		mid := (a + b) / 2
		if s.name(mid) < name {
			a = mid + 1
		} else {
			b = mid
		}
	}
	return a, a < s.start[low+1] && s.name(a) == name
}

// hostRanges calls f for the document ranges of each host, in order.
func (s *segment) hostRanges(f func(host, from, to uint32)) {
	for i := 0; i < len(s.folderHost); {
		j := i + 1
		for j < len(s.folderHost) && s.folderHost[j] == s.folderHost[i] {
			j++
		}
		f(s.folderHost[i], s.start[i], s.start[j])
		i = j
	}
}

// substring returns the numbers of the terms that contain sub, at most limit.
func (s *segment) substring(sub string, limit int) []int {
	var cand []uint32
	if len(sub) >= 3 {
		for i := 0; i+3 <= len(sub); i++ {
			list, ok := s.trigram(sub[i : i+3])
			if !ok {
				return nil
			}
			if cand == nil {
				cand = list
			} else {
				cand = intersect(cand, list)
			}
			if len(cand) == 0 {
				return nil
			}
			if len(cand) < 64 {
				break
			}
		}
	} else {
		return nil
	}
	var out []int
	for _, t := range cand {
		if strings.Contains(string(s.terms[s.termAt[t]:s.termAt[t+1]]), sub) {
			if out = append(out, int(t)); len(out) >= limit {
				break
			}
		}
	}
	return out
}

func (s *segment) trigram(t string) ([]uint32, bool) {
	i, ok := slices.BinarySearch(s.trigrams, pack(t))
	if !ok {
		return nil, false
	}
	b := s.tri[s.triAt[i]:s.triAt[i+1]]
	out := make([]uint32, 0, len(b))
	v := uint32(0)
	for len(b) > 0 {
		d, n := binary.Uvarint(b)
		b = b[n:]
		v += uint32(d)
		out = append(out, v)
	}
	return out, true
}

func pack(t string) uint32 { return uint32(t[0])<<16 | uint32(t[1])<<8 | uint32(t[2]) }

func intersect(a, b []uint32) []uint32 {
	out := a[:0:0]
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			out = append(out, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// bytes returns about how much memory the segment takes.
func (s *segment) bytes() int64 {
	n := int64(len(s.names) + len(s.terms) + len(s.posts) + len(s.places) + len(s.tri))
	n += 4 * int64(len(s.nameAt)+len(s.mtime)+len(s.seen)+len(s.termAt)+len(s.postAt)+len(s.placeAt)+len(s.trigrams)+len(s.triAt)+len(s.tagged)+len(s.start)+len(s.folderHost))
	n += 16*int64(len(s.size)) + 2*int64(len(s.kind)) + 16*int64(len(s.folderPath)) + 240*int64(len(s.info))
	for _, p := range s.folderPath {
		n += int64(len(p))
	}
	return n
}
