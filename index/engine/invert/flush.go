package invert

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/segment"
	"github.com/freshet/freshet/index/engine/term"
)

// scratch is the memory of a flush, kept for the next.
type scratch struct {
	count       []uint32 // by form: occurrences, then where the next one goes
	used        []formID
	occurrences []uint64 // document << 32 | position, by form
	merged      []uint64
	positions   []uint32

	stemmed  []stemPosting
	stemEnd  []uint32 // by stem
	byStem   []stemPosting
	usedStem []uint32
	sortKeys []sortKey
	key      []byte
}

// sortKey is the number of a text and its first eight bytes, which decide nearly
// every comparison.
type sortKey struct {
	prefix uint64
	number uint32
}

// sortByText sorts numbers by their texts, equal texts by number.
func (s *scratch) sortByText(numbers []uint32, text func(uint32) string) {
	s.sortKeys = s.sortKeys[:0]
	for _, n := range numbers {
		var first [8]byte
		copy(first[:], text(n))
		s.sortKeys = append(s.sortKeys, sortKey{binary.BigEndian.Uint64(first[:]), n})
	}
	slices.SortFunc(s.sortKeys, func(x, y sortKey) int {
		if x.prefix != y.prefix {
			return cmp.Compare(x.prefix, y.prefix)
		}
		return cmp.Or(cmp.Compare(text(x.number), text(y.number)), cmp.Compare(x.number, y.number))
	})
	for i, k := range s.sortKeys {
		numbers[i] = k.number
	}
}

// posting is how often a form stands in a document and in its fields.
type posting struct{ doc, total, title, url uint32 }

func (p posting) packedCode() uint32 { return postings.PackCode(p.total, p.title, p.url) }

// stemPosting is a document of a stem that one form brought.
type stemPosting struct {
	stem      uint32
	doc, code uint32
	form      formID
}

// Flush writes the documents to w, which is empty. The buffer keeps them.
func (b *Buffer) Flush(w *segment.Writer) error {
	if err := b.writeDocuments(w); err != nil {
		return err
	}
	if err := w.BeginTerms(); err != nil {
		return err
	}
	rows := b.liveRows()
	if err := writeKeywords(w, rows); err != nil {
		return err
	}
	b.sortOccurrences(rows)
	defer b.clearCounts()
	if err := b.writeWords(w, rows); err != nil {
		return err
	}
	return b.writeStems(w)
}

// writeKeywords writes the lists of hosts, types, languages and kinds.
func writeKeywords(w *segment.Writer, rows []*row) error {
	fields := []struct {
		field  term.Field
		values func(d *index.Document) []string
	}{
		{term.Host, func(d *index.Document) []string { return index.Domains(d.Host) }},
		{term.Type, func(d *index.Document) []string { return []string{d.Type} }},
		{term.Lang, func(d *index.Document) []string { return []string{d.Lang} }},
		{term.Kind, func(d *index.Document) []string { return []string{d.Kind} }},
	}
	for _, f := range fields {
		docs := map[string][]uint32{}
		for doc, r := range rows {
			for _, v := range f.values(&r.document) {
				if v != "" {
					docs[v] = append(docs[v], uint32(doc))
				}
			}
		}
		values := make([]string, 0, len(docs))
		for v := range docs {
			values = append(values, v)
		}
		slices.Sort(values)
		for _, v := range values {
			list := w.BeginTerm(false)
			for _, doc := range docs[v] {
				list.Add(doc, postings.PackCode(1, 0, 0), nil)
			}
			if err := w.EndTerm(term.Key(f.field, v), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortOccurrences is a counting sort of all occurrences by form.
func (b *Buffer) sortOccurrences(rows []*row) {
	s := &b.flush
	if n := len(b.vocabulary.forms) + 1; len(s.count) < n {
		s.count = make([]uint32, n+n/2)
	}
	s.used = s.used[:0]
	total := 0
	for _, r := range rows {
		for _, f := range b.words[r.start:r.end] {
			if f == 0 {
				continue
			}
			if s.count[f] == 0 {
				s.used = append(s.used, f)
			}
			s.count[f]++
			total++
		}
	}
	s.sortByText(s.used, func(f formID) string { return b.vocabulary.forms[f].word })
	at := uint32(0)
	for _, f := range s.used {
		n := s.count[f]
		s.count[f] = at
		at += n
	}
	s.occurrences = slices.Grow(s.occurrences[:0], total)[:total]
	for doc, r := range rows {
		for position, f := range b.words[r.start:r.end] {
			if f != 0 {
				s.occurrences[s.count[f]] = uint64(doc)<<32 | uint64(position)
				s.count[f]++
			}
		}
	}
}

// clearCounts makes the counters ready for the next flush.
func (b *Buffer) clearCounts() {
	for _, f := range b.flush.used {
		b.flush.count[f] = 0
	}
}

// writeWords writes the list of every word and collects those of the stems.
func (b *Buffer) writeWords(w *segment.Writer, rows []*row) error {
	s := &b.flush
	s.stemmed = s.stemmed[:0]
	start := uint32(0)
	for i := 0; i < len(s.used); {
		word := b.vocabulary.forms[s.used[i]].word
		first, from := i, start
		for ; i < len(s.used) && b.vocabulary.forms[s.used[i]].word == word; i++ {
			start = s.count[s.used[i]]
		}
		occurrences, single := s.occurrences[from:start], s.used[first]
		if i-first > 1 { // forms with different accents
			b.collectStems(s.used[first:i], from, rows)
			s.merged = append(s.merged[:0], occurrences...)
			slices.Sort(s.merged)
			occurrences, single = s.merged, 0
		}
		list := w.BeginTerm(true)
		forEachPosting(occurrences, rows, func(p posting, occurrences []uint64) {
			if single != 0 {
				b.addStemPosting(single, p, rows)
			}
			s.positions = s.positions[:0]
			for _, o := range occurrences {
				s.positions = append(s.positions, uint32(o))
			}
			list.Add(p.doc, p.packedCode(), s.positions)
		})
		s.key = term.AppendKey(s.key[:0], term.Word, word)
		if err := w.EndTerm(s.key, true); err != nil {
			return err
		}
	}
	return nil
}

// forEachPosting calls f for every document of sorted occurrences.
func forEachPosting(occurrences []uint64, rows []*row, f func(posting, []uint64)) {
	for i := 0; i < len(occurrences); {
		doc := uint32(occurrences[i] >> 32)
		r := rows[doc]
		start, title, url := i, uint32(0), uint32(0)
		for ; i < len(occurrences) && uint32(occurrences[i]>>32) == doc; i++ {
			if position := uint32(occurrences[i]); position < uint32(r.titleEnd) {
				title++
			} else if position < uint32(r.urlEnd) {
				url++
			}
		}
		f(posting{doc, uint32(i - start), title, url}, occurrences[start:i])
	}
}

// collectStems notes the stems of forms of one word, whose occurrences begin at
// start.
func (b *Buffer) collectStems(forms []formID, start uint32, rows []*row) {
	for _, id := range forms {
		end := b.flush.count[id]
		forEachPosting(b.flush.occurrences[start:end], rows, func(p posting, _ []uint64) { b.addStemPosting(id, p, rows) })
		start = end
	}
}

// addStemPosting notes the stem of a form in a document. URLs are not stemmed: they are
// names, not text of a language.
func (b *Buffer) addStemPosting(id formID, p posting, rows []*row) {
	language := rows[p.doc].language
	if language == noLanguage || p.total == p.url {
		return
	}
	if stem := b.vocabulary.stemOf(id, language, b.languages[language]); stem != 0 {
		s := &b.flush
		s.stemmed = append(s.stemmed, stemPosting{stem: stem, doc: p.doc, code: postings.PackCode(p.total-p.url, p.title, 0), form: id})
	}
}

// writeStems writes the list of every stem: its documents and frequencies, no
// positions. A stem without a list stands for the word that is spelt the same.
func (b *Buffer) writeStems(w *segment.Writer) error {
	s := &b.flush
	b.sortStems()
	s.sortByText(s.usedStem, b.vocabulary.stemText)
	for _, stem := range s.usedStem {
		start := uint32(0)
		if stem > 0 {
			start = s.stemEnd[stem-1]
		}
		found := s.byStem[start:s.stemEnd[stem]]
		if b.isWord(stem, found) {
			continue
		}
		slices.SortFunc(found, func(x, y stemPosting) int { return cmp.Compare(x.doc, y.doc) })
		list := w.BeginTerm(false)
		for i := 0; i < len(found); {
			doc, code := found[i].doc, found[i].code
			for i++; i < len(found) && found[i].doc == doc; i++ {
				code = postings.AddCodes(code, found[i].code)
			}
			list.Add(doc, code, nil)
		}
		s.key = term.AppendKey(s.key[:0], term.Stem, b.vocabulary.stemText(stem))
		if err := w.EndTerm(s.key, false); err != nil {
			return err
		}
	}
	return nil
}

// sortStems is a counting sort of the postings by stem.
func (b *Buffer) sortStems() {
	s := &b.flush
	n := len(b.vocabulary.stemTexts) + 2
	s.stemEnd = slices.Grow(s.stemEnd[:0], n)[:n]
	clear(s.stemEnd)
	s.usedStem = s.usedStem[:0]
	for _, p := range s.stemmed {
		if s.stemEnd[p.stem] == 0 {
			s.usedStem = append(s.usedStem, p.stem)
		}
		s.stemEnd[p.stem]++
	}
	at := uint32(0)
	for i, c := range s.stemEnd {
		s.stemEnd[i] = at
		at += c
	}
	s.byStem = slices.Grow(s.byStem[:0], len(s.stemmed))[:len(s.stemmed)]
	for _, p := range s.stemmed {
		s.byStem[s.stemEnd[p.stem]] = p
		s.stemEnd[p.stem]++
	}
}

// isWord reports whether the documents of a stem are those of the word that is
// spelt the same: all come from its one form, and none of its documents is
// missing.
func (b *Buffer) isWord(stem uint32, found []stemPosting) bool {
	text, id := b.vocabulary.stemText(stem), found[0].form
	if b.vocabulary.forms[id].word != text {
		return false
	}
	for _, p := range found {
		if p.form != id {
			return false
		}
	}
	i, ok := slices.BinarySearchFunc(b.flush.used, text, func(f formID, text string) int {
		return cmp.Compare(b.vocabulary.forms[f].word, text)
	})
	used := b.flush.used
	if !ok || i+1 < len(used) && b.vocabulary.forms[used[i+1]].word == text { // several forms
		return false
	}
	start := uint32(0)
	if i > 0 {
		start = b.flush.count[used[i-1]]
	}
	docs, last := 0, uint64(1<<63)
	for _, o := range b.flush.occurrences[start:b.flush.count[id]] {
		if o>>32 != last {
			docs, last = docs+1, o>>32
		}
	}
	return docs == len(found)
}
