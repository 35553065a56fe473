// Package invert turns documents into a segment: it cuts texts into numbers of
// words and sorts them once, when the buffer is flushed.
//
// A buffered document is a row of numbers, one a word, in one slice that all
// documents share; the place in the row is the position. A flush counts the
// numbers, places every occurrence behind those of smaller numbers (a counting
// sort), and writes the lists. No map or list exists per document or word, so
// the garbage collector has nothing to follow.
package invert

import (
	"math"
	"slices"
	"strings"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/analysis"
	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/segment"
)

// maxHeadWords bounds the words of a title and of a URL, so that the ends of
// both fit 16 bits.
const maxHeadWords = 4096

// maxBodyWords bounds the words of a body that are indexed.
const maxBodyWords = 1 << 19

// Buffer holds documents until they are flushed into a segment. It is not safe
// for concurrent use.
type Buffer struct {
	// DefaultLanguage stems documents that name no language.
	DefaultLanguage string

	vocabulary *vocabulary
	words      []formID // the rows of all documents
	rows       []row
	byID       map[string]int // documents that are not replaced
	textBytes  int

	languages     []analysis.Analyzer // with a stemmer, by number
	languageCodes map[string]int

	flush scratch
}

// row is a buffered document.
type row struct {
	document   index.Document
	start, end int // of words
	titleEnd   uint16
	urlEnd     uint16
	lengths    bm25.Lengths
	language   int // with a stemmer, or noLanguage
	isReplaced bool
}

const noLanguage = -1

// NewBuffer returns an empty buffer.
func NewBuffer(defaultLanguage string) *Buffer {
	return &Buffer{DefaultLanguage: defaultLanguage, vocabulary: newVocabulary(), byID: map[string]int{}, languageCodes: map[string]int{}}
}

// Len is the number of documents, those that were replaced included.
func (b *Buffer) Len() int { return len(b.rows) }

// WordCount is the number of words.
func (b *Buffer) WordCount() int { return len(b.words) }

// TextBytes is the length of all texts.
func (b *Buffer) TextBytes() int { return b.textBytes }

// Put adds a document; one with the same ID is replaced.
func (b *Buffer) Put(d *index.Document) {
	b.Delete(d.ID)
	b.byID[d.ID] = len(b.rows)
	r := row{document: *d, start: len(b.words), language: b.languageOf(d.Lang)}
	start := len(b.words)
	b.words = b.vocabulary.appendWords(b.words, d.Title, start+maxHeadWords)
	title := len(b.words) - start
	b.words = append(b.words, 0) // no phrase reaches from the title into the URL
	start = len(b.words)
	b.words = b.vocabulary.appendWords(b.words, index.NameOf(d.ID), start+maxHeadWords)
	url := len(b.words) - start
	b.words = append(b.words, 0)
	start = len(b.words)
	b.words = b.vocabulary.appendWords(b.words, d.Body, start+maxBodyWords)
	r.end = len(b.words)
	r.titleEnd, r.urlEnd = uint16(title+1), uint16(title+url+2)
	r.lengths = bm25.PackLengths(title, url, len(b.words)-start)
	b.textBytes += len(d.Body)
	b.rows = append(b.rows, r)
}

// Delete removes a document and reports whether it was there.
func (b *Buffer) Delete(id string) bool {
	i, ok := b.byID[id]
	if ok {
		b.rows[i].isReplaced = true
		b.rows[i].document = index.Document{} // its memory
		delete(b.byID, id)
	}
	return ok
}

// SetPopularity changes the popularity of a buffered document and reports
// whether it is there.
func (b *Buffer) SetPopularity(id string, popularity float64) bool {
	i, ok := b.byID[id]
	if ok {
		b.rows[i].document.Popularity = popularity
	}
	return ok
}

// Document returns a buffered document.
func (b *Buffer) Document(id string) (*index.Document, bool) {
	i, ok := b.byID[id]
	if !ok {
		return nil, false
	}
	d := b.rows[i].document
	return &d, true
}

// languageOf returns the number of a language with a stemmer.
func (b *Buffer) languageOf(code string) int {
	if code == "" {
		code = b.DefaultLanguage
	}
	code, _, _ = strings.Cut(strings.ToLower(code), "-")
	n, ok := b.languageCodes[code]
	if !ok {
		a := analysis.For(code)
		if !a.Stems() {
			return noLanguage
		}
		n = len(b.languages)
		b.languages = append(b.languages, a)
		b.languageCodes[strings.Clone(code)] = n
	}
	return n
}

// Averages are the average lengths of the buffered documents.
func (b *Buffer) Averages() bm25.Averages {
	var a bm25.Averages
	n := 0.
	for i := range b.rows {
		if b.rows[i].isReplaced {
			continue
		}
		title, url, body := b.rows[i].lengths.Words()
		a.Title += float64(title)
		a.URL += float64(url)
		a.Body += float64(body)
		n++
	}
	if n > 0 {
		a.Title, a.URL, a.Body = a.Title/n, a.URL/n, a.Body/n
	}
	return a
}

// Reset empties the buffer. The vocabulary stays unless it is too large.
func (b *Buffer) Reset() {
	clear(b.rows) // documents are not kept alive
	b.rows, b.words, b.textBytes = b.rows[:0], b.words[:0], 0
	clear(b.byID)
	if b.vocabulary.isFull() {
		b.vocabulary = newVocabulary()
		b.flush = scratch{}
	}
}

// PackPopularity returns popularity in [0,1] in a byte; NaN is 0.
func PackPopularity(p float64) uint8 {
	if !(p > 0) {
		return 0
	}
	return uint8(math.Round(min(p, 1) * 255))
}

// UnpackPopularity returns the popularity that a byte stands for.
func UnpackPopularity(b uint8) float64 { return float64(b) / 255 }

// writeDocuments writes texts and columns of all documents that are not
// replaced, which numbers them.
func (b *Buffer) writeDocuments(w *segment.Writer) error {
	for i := range b.rows {
		r := &b.rows[i]
		if r.isReplaced {
			continue
		}
		d := &r.document
		if err := w.AddText(segment.Text{Title: d.Title, Same: d.Same, Body: d.Body}); err != nil {
			return err
		}
		w.AddDocument(segment.Document{
			ID: d.ID, Host: d.Host, Type: d.Type, Lang: d.Lang, Kind: d.Kind, Date: d.Date.Unix(), Size: d.Size,
			Popularity: PackPopularity(d.Popularity), Lengths: r.lengths, TitleEnd: r.titleEnd, URLEnd: r.urlEnd,
		})
	}
	return nil
}

// liveRows returns the rows that are not replaced; their place is their document.
func (b *Buffer) liveRows() []*row {
	out := make([]*row, 0, len(b.rows))
	for i := range b.rows {
		if !b.rows[i].isReplaced {
			out = append(out, &b.rows[i])
		}
	}
	return slices.Clip(out)
}

// Live is the number of documents that are not replaced.
func (b *Buffer) Live() int { return len(b.byID) }
