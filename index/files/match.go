package files

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/share/media"
)

func itoa(n int) string { return strconv.Itoa(n) }

// evaluation is one query against a view.
type evaluation struct {
	view
	options Options
	leaves  []*leaf // the words that make the score
}

// leaf is a word of the query with the terms that it found, by segment.
type leaf struct {
	terms [][]weighted
	mask  byte
	place bool // folders count
	df    int
}

// weighted is a term with how well it fits the word: 1 exactly, less for a form,
// a prefix, a piece.
type weighted struct {
	term   int
	weight float64
}

const (
	everywhere   = 0xff
	stemWeight   = 0.8
	prefixWeight = 0.6
	pieceWeight  = 0.3
	maxExpand    = 4096 // terms of one word
)

var fieldMasks = map[string]byte{
	"": everywhere, "url": everywhere, "title": inTitle | inShow | inName, "artist": inArtist, "album": inAlbum, "actor": inActors, "name": inName, "folder": 0,
}

// match returns the documents of each segment that match.
func (e *evaluation) match(q query.Node) []*roaring.Bitmap {
	out := e.node(q, true)
	for i, s := range e.segs {
		out[i].AndNot(s.deleted)
		if e.options.HideOffline && len(e.offline) > 0 {
			s.hostRanges(func(h, from, to uint32) {
				if e.offline[h] {
					out[i].RemoveRange(uint64(from), uint64(to))
				}
			})
		}
	}
	return out
}

// each makes a set for every segment.
func (e *evaluation) each(f func(i int, s *segment) *roaring.Bitmap) []*roaring.Bitmap {
	out := make([]*roaring.Bitmap, len(e.segs))
	for i, s := range e.segs {
		out[i] = f(i, s)
	}
	return out
}

func (e *evaluation) everything() []*roaring.Bitmap {
	return e.each(func(_ int, s *segment) *roaring.Bitmap {
		b := empty()
		b.AddRange(0, uint64(s.docs()))
		return b
	})
}

// node evaluates a tree; scoring tells whether its words count for the score.
func (e *evaluation) node(q query.Node, scoring bool) []*roaring.Bitmap {
	switch q := q.(type) {
	case query.And:
		return e.and(q, scoring)
	case query.Or:
		var out []*roaring.Bitmap
		for _, c := range q {
			m := e.node(c, scoring)
			if out == nil {
				out = m
				continue
			}
			for i := range out {
				out[i].Or(m[i])
			}
		}
		return out
	case query.Not, query.Range:
		return e.and(query.And{q}, scoring)
	case query.Term:
		return e.words(q.Field, q.Text, q.Prefix, scoring)
	case query.Phrase:
		m := e.words(q.Field, q.Text, false, scoring)
		return e.each(func(i int, s *segment) *roaring.Bitmap { return e.inRow(s, m[i], q) })
	case query.Filter:
		return e.filter(q)
	}
	return e.everything()
}

// and intersects what finds, then takes away, then looks at numbers: in the order
// of what costs least for a document.
func (e *evaluation) and(q query.And, scoring bool) []*roaring.Bitmap {
	var out []*roaring.Bitmap
	var nots []query.Not
	var ranges []query.Range
	for _, c := range q {
		switch c := c.(type) {
		case query.Not:
			nots = append(nots, c)
			continue
		case query.Range:
			ranges = append(ranges, c)
			continue
		}
		m := e.node(c, scoring)
		if out == nil {
			out = m
			continue
		}
		for i := range out {
			out[i].And(m[i])
		}
	}
	if out == nil {
		out = e.everything()
	}
	for _, n := range nots {
		for i, m := range e.node(n.Node, false) {
			out[i].AndNot(m)
		}
	}
	for _, r := range ranges {
		for i, s := range e.segs {
			out[i] = s.within(out[i], r)
		}
	}
	return out
}

// within keeps the documents whose number lies in the range.
func (s *segment) within(in *roaring.Bitmap, r query.Range) *roaring.Bitmap {
	out := empty()
	it := in.Iterator()
	for it.HasNext() {
		d := it.Next()
		if v, ok := s.number(d, r.Field); ok && v >= r.Min && v <= r.Max {
			out.Add(d)
		}
	}
	return out
}

func (s *segment) number(d uint32, field string) (float64, bool) {
	switch field {
	case "size":
		return float64(s.size[d]), true
	case "date":
		return float64(s.mtime[d]), s.mtime[d] > 0
	}
	in := s.infoOf(d)
	if in == nil {
		return 0, false
	}
	v := 0.0
	switch field {
	case "year":
		v = float64(in.Year)
	case "duration":
		v = in.Duration.Seconds()
	case "rating":
		v = in.Rating
	}
	return v, v > 0
}

// words evaluates a text of one or more words, all of which must be there.
func (e *evaluation) words(field, text string, prefix, scoring bool) []*roaring.Bitmap {
	words := wordsOf(text)
	if len(words) == 0 {
		return e.everything()
	}
	var out []*roaring.Bitmap
	for i, w := range words {
		m := e.word(field, w, prefix && i == len(words)-1, scoring)
		if out == nil {
			out = m
			continue
		}
		for i := range out {
			out[i].And(m[i])
		}
	}
	return out
}

// word evaluates one folded word: itself and its other forms; where few files have
// them also as a piece of a word; where none has, as typed on the other keyboard
// layout.
func (e *evaluation) word(field, w string, prefix, scoring bool) []*roaring.Bitmap {
	mask, ok := fieldMasks[field]
	if !ok {
		mask = everywhere
	}
	l := &leaf{mask: mask, place: field == "" || field == "folder" || field == "url"}
	tries := []func(s *segment) []weighted{
		func(s *segment) []weighted { return s.forms(w, prefix) },
		func(s *segment) []weighted { return s.withPieces(s.forms(w, prefix), w) },
	}
	if other := swapLayout(w); other != "" {
		tries = append(tries, func(s *segment) []weighted { return s.forms(other, prefix) })
	}
	var out []*roaring.Bitmap
	for i, try := range tries {
		l.terms, l.df = nil, 0
		out = e.each(func(_ int, s *segment) *roaring.Bitmap {
			terms := try(s)
			l.terms = append(l.terms, terms)
			return s.collect(terms, l)
		})
		for _, b := range out {
			l.df += int(b.GetCardinality())
		}
		if l.df >= fewFiles || (i > 0 && l.df > 0) {
			break
		}
	}
	if scoring {
		e.leaves = append(e.leaves, l)
	}
	return out
}

// fewFiles is below how many files with a word it is looked for inside others.
const fewFiles = 200

// withPieces adds the terms that contain w.
func (s *segment) withPieces(terms []weighted, w string) []weighted {
	have := map[int]bool{}
	for _, t := range terms {
		have[t.term] = true
	}
	for _, t := range s.substring(w, maxExpand) {
		if !have[t] {
			terms = append(terms, weighted{t, pieceWeight})
		}
	}
	return terms
}

// forms returns the terms that are the word, have its stem, or begin with it.
func (s *segment) forms(w string, prefix bool) []weighted {
	var out []weighted
	at, exact := s.find(w)
	if exact {
		out = append(out, weighted{at, 1})
		at++
	}
	if prefix {
		for ; at < s.termCount() && len(out) < maxExpand && strings.HasPrefix(s.term(at), w); at++ {
			out = append(out, weighted{at, prefixWeight})
		}
		return out
	}
	if strings.ContainsAny(w, "0123456789") || len(w) < 3 {
		return out
	}
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
		i, _ := s.find(head)
		for n := 0; n < 2000 && i < s.termCount() && strings.HasPrefix(s.term(i), head); i, n = i+1, n+1 {
			t := s.term(i)
			if len(t) <= len(w)+8 && t != w && a.Stem(t) == stem && !slices.ContainsFunc(out, func(x weighted) bool { return x.term == i }) {
				out = append(out, weighted{i, stemWeight})
			}
		}
	}
	return out
}

// collect returns the documents of the terms in the leaf's fields.
func (s *segment) collect(terms []weighted, l *leaf) *roaring.Bitmap {
	out := empty()
	var batch [1024]uint32
	n := 0
	for _, t := range terms {
		if l.mask != 0 {
			s.eachPost(t.term, func(d uint32, mask byte) {
				if mask&l.mask != 0 {
					if batch[n] = d; n == len(batch)-1 {
						out.AddMany(batch[:])
						n = -1
					}
					n++
				}
			})
			out.AddMany(batch[:n])
			n = 0
		}
		if l.place {
			from, to := uint32(0), uint32(0)
			s.eachPlace(t.term, func(f uint32) {
				if s.start[f] != to {
					out.AddRange(uint64(from), uint64(to))
					from = s.start[f]
				}
				to = s.start[f+1]
			})
			out.AddRange(uint64(from), uint64(to))
		}
	}
	return out
}

// filter evaluates kind:, ext:, genre:, host: and online:.
func (e *evaluation) filter(f query.Filter) []*roaring.Bitmap {
	sign := map[string]string{"kind": kindSign, "type": extSign, "ext": extSign, "genre": genreSign}[f.Field]
	if sign != "" {
		l := &leaf{mask: everywhere}
		return e.each(func(_ int, s *segment) *roaring.Bitmap {
			value := strings.TrimPrefix(f.Value, ".")
			if f.Field == "kind" && value == "file" {
				b := empty()
				b.AddRange(0, uint64(s.docs()))
				return b
			}
			t, ok := s.find(sign + value)
			if !ok {
				return empty()
			}
			return s.collect([]weighted{{t, 1}}, l)
		})
	}
	keep := func(uint32) bool { return false }
	switch f.Field {
	case "host":
		keep = func(h uint32) bool { return isHost(e.hosts[h], f.Value) }
	case "online":
		want := f.Value == "true" || f.Value == "yes" || f.Value == "1"
		keep = func(h uint32) bool { return e.offline[h] != want }
	}
	return e.each(func(_ int, s *segment) *roaring.Bitmap {
		b := empty()
		s.hostRanges(func(h, from, to uint32) {
			if keep(h) {
				b.AddRange(uint64(from), uint64(to))
			}
		})
		return b
	})
}

// isHost reports whether the host of this name is meant by value: its whole name,
// its server, or the first label of that.
func isHost(name, value string) bool {
	u, err := url.Parse(name)
	if err != nil {
		return false
	}
	h := strings.ToLower(u.Hostname())
	first, _, _ := strings.Cut(h, ".")
	return value == h || value == first || value == strings.ToLower(u.Host) || value == strings.ToLower(name) || (u.Scheme == "file" && value == "localhost")
}

// inRow keeps the documents in which the words of a phrase follow one another in
// one field.
func (e *evaluation) inRow(s *segment, in *roaring.Bitmap, p query.Phrase) *roaring.Bitmap {
	want := wordsOf(p.Text)
	out := empty()
	it := in.Iterator()
	for it.HasNext() {
		d := it.Next()
		info := s.infoOf(d)
		if info == nil {
			info = &media.Info{}
		}
		texts := map[string]string{
			"name": s.name(d), "title": info.Title, "artist": info.Artist, "album": info.Album, "show": info.Show, "actor": strings.Join(info.Actors, " "), "folder": s.folderPath[s.folderOf(d)],
		}
		for field, text := range texts {
			if (p.Field == "" || p.Field == field || (p.Field == "title" && (field == "name" || field == "show"))) && hasRow(wordsOf(text), want) {
				out.Add(d)
				break
			}
		}
	}
	return out
}

func hasRow(have, want []string) bool {
	for i := 0; i+len(want) <= len(have); i++ {
		if slices.Equal(have[i:i+len(want)], want) {
			return true
		}
	}
	return false
}
