package segment

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/zeebo/xxh3"

	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/dictionary"
	"github.com/freshet/freshet/index/engine/postings"
)

// Writer writes a segment: first the texts of all documents, then their
// columns, then the terms in ascending order, then Finish.
type Writer struct {
	path    string
	file    *os.File
	buf     *bufio.Writer
	limit   func(bytes int) // waits so that a merge leaves the disk to others; may be nil
	offset  uint64
	hash    *xxh3.Hasher
	current section
	table   []section

	reference bm25.Averages
	norms     *bm25.Norms
	columns   columns
	texts     textWriter
	terms     dictionary.Writer
	lists     postings.Writer
	listStart uint64
	encoded   []byte
}

// Create makes a new file. reference are the average lengths for which bounds
// of impact are kept; limit is called with the number of bytes that are about to
// be written.
func Create(path string, reference bm25.Averages, limit func(bytes int)) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	// What is written is what is read back from the trailer.
	reference = bm25.Averages{Title: float64(float32(reference.Title)), URL: float64(float32(reference.URL)), Body: float64(float32(reference.Body))}
	w := &Writer{path: path, file: f, buf: bufio.NewWriterSize(f, 256<<10), limit: limit, hash: xxh3.New(), reference: reference, norms: bm25.NewNorms(reference)}
	w.lists.ImpactOf = func(doc, code uint32) uint16 { return w.norms.Impact(code, w.columns.lengths[doc]) }
	if err := w.write([]byte(magic)); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	w.begin(Texts)
	return w, nil
}

// Abort closes and removes the unfinished file.
func (w *Writer) Abort() error { return errors.Join(w.file.Close(), os.Remove(w.path)) }

func (w *Writer) write(b []byte) error {
	if w.limit != nil {
		w.limit(len(b))
	}
	if _, err := w.buf.Write(b); err != nil {
		return fmt.Errorf("segment %s: %w", w.path, err)
	}
	w.offset += uint64(len(b))
	_, _ = w.hash.Write(b)
	return nil
}

// begin starts a section.
func (w *Writer) begin(k Kind) {
	w.hash.Reset()
	w.current = section{kind: k, offset: w.offset}
}

// end ends the section with its padding.
func (w *Writer) end() error {
	w.current.length, w.current.sum = w.offset-w.current.offset, w.hash.Sum64()
	w.table = append(w.table, w.current)
	return w.write(make([]byte, padding+int(-w.offset&7)))
}

func (w *Writer) writeSection(k Kind, b []byte) error {
	w.begin(k)
	if err := w.write(b); err != nil {
		return err
	}
	return w.end()
}

// AddText appends the stored text of the next document.
func (w *Writer) AddText(t Text) error {
	if block := w.texts.add(t); block != nil {
		return w.writeTexts(block)
	}
	return nil
}

func (w *Writer) writeTexts(block []byte) error {
	w.texts.note(w.offset - w.current.offset)
	return w.write(block)
}

// CopyTexts appends the stored texts of another segment as they are packed.
func (w *Writer) CopyTexts(s *Segment) error {
	if block := w.texts.rest(); block != nil {
		if err := w.writeTexts(block); err != nil {
			return err
		}
	}
	for k := range s.texts.count() {
		block, err := s.texts.packed(k)
		if err != nil {
			return fmt.Errorf("segment %s: %w", s.path, err)
		}
		end := s.trailer.docs
		if k+1 < s.texts.count() {
			end = s.texts.firstDoc(k + 1)
		}
		w.texts.next += end - s.texts.firstDoc(k)
		if err := w.writeTexts(block); err != nil {
			return err
		}
	}
	return nil
}

// AddDocument appends the columns of the next document.
func (w *Writer) AddDocument(d Document) { w.columns.add(d) }

// Documents is the number of documents so far.
func (w *Writer) Documents() int { return len(w.columns.lengths) }

// BeginTerms ends the texts and the columns.
func (w *Writer) BeginTerms() error {
	if block := w.texts.rest(); block != nil {
		if err := w.writeTexts(block); err != nil {
			return err
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	if err := w.writeSection(TextIndex, w.texts.index); err != nil {
		return err
	}
	for k, b := range w.columns.sections() {
		if err := w.writeSection(k, b); err != nil {
			return err
		}
	}
	w.begin(Lists)
	w.listStart = w.offset
	return nil
}

// BeginTerm returns the writer of the list of the next term.
func (w *Writer) BeginTerm(hasPositions bool) *postings.Writer {
	w.lists.Begin(hasPositions)
	return &w.lists
}

// EndTerm gives the list that was written to a term; an empty one is dropped.
func (w *Writer) EndTerm(term []byte, hasPositions bool) error {
	count := w.lists.Count()
	if count == 0 {
		return nil
	}
	var form postings.Form
	w.encoded, form = w.lists.Finish(w.encoded[:0])
	if form.IsInline() {
		w.terms.Add(term, count, hasPositions, w.offset-w.listStart, 0, w.encoded)
		return nil
	}
	w.terms.Add(term, count, hasPositions, w.offset-w.listStart, len(w.encoded), nil)
	return w.write(w.encoded)
}

// Finish writes the rest, without a sync, and opens the segment.
func (w *Writer) Finish() (*Segment, error) {
	s, err := w.finish()
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return s, nil
}

func (w *Writer) finish() (*Segment, error) {
	if err := w.end(); err != nil {
		return nil, err
	}
	if err := errors.Join(w.writeSection(Terms, w.terms.Blocks()), w.writeSection(TermIndex, w.terms.Index())); err != nil {
		return nil, err
	}
	var tail []byte
	for _, s := range w.table {
		tail = s.append(tail)
	}
	t := trailer{version: Version, docs: uint32(w.Documents()), sections: uint32(len(w.table)), totals: w.columns.totals, reference: w.reference}
	t.size = w.offset + uint64(len(tail)) + trailerSize
	tail = t.append(tail)
	tail = appendSum(tail)
	if err := w.write(tail); err != nil {
		return nil, err
	}
	if err := w.buf.Flush(); err != nil {
		return nil, fmt.Errorf("segment %s: %w", w.path, err)
	}
	return openFile(w.path, w.file)
}
