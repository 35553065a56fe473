package files

import (
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/index/engine/postings"
)

// Weights of how well a term fits a word of a query, and bounds of its terms.
const (
	stemWeight   = 0.8
	prefixWeight = 0.6
	pieceWeight  = 0.3
	maxExpand    = 4096 // terms that begin with a word
	maxForms     = 2000 // terms that are looked at for the forms of a word
	// fewFiles is below how many files with a word it is looked for inside others.
	fewFiles = 200
)

// leaf is a word of the query with what it found, by segment.
type leaf struct {
	terms   [][]weighted
	pieces  []pieceHits
	mask    byte
	inPaths bool // folders count
	df      int
}

// weighted is a term with how well it fits the word: 1 exactly, less for a form,
// a prefix.
type weighted struct {
	list     postings.List
	isFolder bool
	weight   float64
}

// wordMatch is one folded word of a query under evaluation.
type wordMatch struct {
	leaf     *leaf
	word     string
	isPrefix bool
	isForm   map[string]bool // of terms that were looked at
	found    bitmaps
}

// matchWords looks for the words of a text, all of which must be there.
func (e *evaluation) matchWords(field, text string, prefix bool) []*wordMatch {
	words := wordsOf(text)
	out := make([]*wordMatch, len(words))
	for i, w := range words {
		out[i] = e.matchWord(field, w, prefix && i == len(words)-1)
	}
	return out
}

// matchWord looks for a folded word, itself and its other forms.
func (e *evaluation) matchWord(field, w string, prefix bool) *wordMatch {
	mask, ok := fieldMasks[field]
	if !ok {
		mask = everywhere
	}
	m := &wordMatch{leaf: &leaf{mask: mask, inPaths: field == "" || field == "folder" || field == "url"}, word: w, isPrefix: prefix, isForm: map[string]bool{}}
	e.findForms(m, w)
	e.leaves = append(e.leaves, m.leaf)
	return m
}

// findForms fills what the terms find that are a word or a form of it.
func (e *evaluation) findForms(m *wordMatch, w string) {
	l := m.leaf
	l.terms = nil
	m.found = e.eachSegment(func(_ int, r *reader) *roaring.Bitmap {
		var terms []weighted
		if l.mask != 0 {
			terms = r.appendForms(terms, m, wordField, w)
		}
		if l.inPaths {
			terms = r.appendForms(terms, m, folderField, w)
		}
		l.terms = append(l.terms, terms)
		out := roaring.New()
		for _, t := range terms {
			r.collectFiles(out, t, l.mask)
		}
		out.AndNot(r.dead)
		return out
	})
	l.df = m.found.totalCount()
}

// intersectWords intersects out, nil for everything, with the files of all words. A
// word that few files have is also looked for as a piece of other words, and where
// none has it, as typed on the other keyboard layout.
func (e *evaluation) intersectWords(words []*wordMatch, out, within bitmaps) bitmaps {
	var rare []*wordMatch
	for _, m := range words {
		if m.leaf.df < fewFiles {
			rare = append(rare, m)
			continue
		}
		out = intersectBitmaps(out, m.found)
	}
	if len(rare) == 0 {
		return out
	}
	search := e.newPieceSearch(rare)
	for i, m := range rare {
		limit := within
		if out != nil {
			limit = out
		}
		search.searchPieces(i, limit)
		if other := swapLayout(m.word); m.leaf.df == 0 && other != "" {
			e.findForms(m, other)
		}
		out = intersectBitmaps(out, m.found)
	}
	return out
}

// lookupList returns the list of a term; one of no files after damage.
func (r *reader) lookupList(field byte, text string) postings.List {
	list, err := r.Lookup(append([]byte{field}, text...))
	r.keepFirstError(err)
	return list
}

// appendForms appends the terms that are the word, have its stem, or begin with it.
func (r *reader) appendForms(out []weighted, m *wordMatch, field byte, w string) []weighted {
	add := func(list postings.List, weight float64) {
		if list.Count() > 0 {
			out = append(out, weighted{list, field == folderField, weight})
		}
	}
	m.isForm[w] = true
	add(r.lookupList(field, w), 1)
	if m.isPrefix {
		r.eachTerm(field, w, maxExpand, func(term string, list postings.List) {
			if term != w {
				m.isForm[term] = true
				add(list, prefixWeight)
			}
		})
		return out
	}
	if strings.ContainsAny(w, "0123456789") || len(w) < 3 {
		return out
	}
	added := map[string]bool{w: true}
	for _, a := range stems {
		stem := a.Stem(w)
		if len(stem) < 3 || len(stem) > len(w) {
			continue
		}
		// Forms begin with the stem but perhaps for its last letter (party, parties).
		head := stem
		if r := []rune(stem); len(r) > 3 {
			head = string(r[:len(r)-1])
		}
		r.eachTerm(field, head, maxForms, func(term string, list postings.List) {
			if len(term) > len(w)+8 || added[term] {
				return
			}
			if !m.isForm[term] && a.Stem(term) == stem {
				m.isForm[term] = true
			}
			if m.isForm[term] {
				added[term] = true
				add(list, stemWeight)
			}
		})
	}
	return out
}

// eachTerm calls f for up to n terms of a field that begin with head, in order.
func (r *reader) eachTerm(field byte, head string, n int, f func(term string, list postings.List)) {
	key := append([]byte{field}, head...)
	it := r.Terms().Seek(key)
	for ; n > 0 && it.Valid() && strings.HasPrefix(string(it.Term()), string(key)); n-- {
		list, err := r.List(it.Entry())
		r.keepFirstError(err)
		f(string(it.Term()[1:]), list)
		it.Next()
	}
	r.keepFirstError(it.Err())
}

// collectFiles adds the files of a term in the fields of mask.
func (r *reader) collectFiles(out *roaring.Bitmap, t weighted, mask byte) {
	if t.isFolder {
		from, to := uint32(0), uint32(0)
		r.eachFolder(&t.list, func(start, end uint32) {
			if start != to {
				out.AddRange(uint64(from), uint64(to))
				from = start
			}
			to = end
		})
		out.AddRange(uint64(from), uint64(to))
		return
	}
	var batch [1024]uint32
	n := 0
	r.eachPost(&t.list, func(d uint32, m byte) {
		if m&mask == 0 {
			return
		}
		if batch[n] = d; n == len(batch)-1 {
			out.AddMany(batch[:])
			n = -1
		}
		n++
	})
	out.AddMany(batch[:n])
}

// eachPost calls f for the files of a list with their masks, in order.
func (r *reader) eachPost(list *postings.List, f func(doc uint32, mask byte)) {
	c := &r.cursor
	for c.Open(list); int(c.Doc()) < r.Len(); c.Next() {
		f(c.Doc(), byte(c.Code())+1)
	}
	r.endList()
}

// eachFolder calls f with the files of the folders of a list, in order.
func (r *reader) eachFolder(list *postings.List, f func(from, to uint32)) {
	c := &r.cursor
	for c.Open(list); int(c.Doc()) < r.folders.Len(); c.Next() {
		f(r.firstFileOf(c.Doc()), r.firstFileOf(c.Doc()+1))
	}
	r.endList()
}

// endList fails if the list was not read to its end.
func (r *reader) endList() {
	if r.keepFirstError(r.cursor.Err()); r.cursor.Doc() != postings.End {
		r.keepFirstError(postings.ErrDamaged)
	}
}
