package segment

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/zeebo/xxh3"

	"github.com/freshet/freshet/index/engine/dictionary"
	"github.com/freshet/freshet/index/engine/postings"
)

// FileWriter writes a file of sections: any number of them, then the terms in
// ascending order, then the trailer.
type FileWriter struct {
	path    string
	schema  Schema
	file    *os.File
	buf     *bufio.Writer
	limit   func(bytes int) // waits so that a merge leaves the disk to others; may be nil
	offset  uint64
	hash    *xxh3.Hasher
	current section
	table   []section

	terms     dictionary.Writer
	lists     postings.Writer
	listStart uint64
	encoded   []byte
}

// CreateFile makes a new file. limit, if not nil, is called with the number of
// bytes that are about to be written.
func CreateFile(path string, schema Schema, limit func(bytes int)) (*FileWriter, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	w := &FileWriter{path: path, schema: schema, file: f, buf: bufio.NewWriterSize(f, 256<<10), limit: limit, hash: xxh3.New()}
	w.lists.ImpactOf = func(doc, code uint32) uint16 { return 0 }
	if err := w.Write([]byte(magic)); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// Abort closes and removes the unfinished file.
func (w *FileWriter) Abort() error { return errors.Join(w.file.Close(), os.Remove(w.path)) }

// Write appends bytes to the section.
func (w *FileWriter) Write(b []byte) error {
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

// BeginSection starts a section.
func (w *FileWriter) BeginSection(k Kind) {
	w.hash.Reset()
	w.current = section{kind: k, offset: w.offset}
}

// sectionOffset returns the length of the section so far.
func (w *FileWriter) sectionOffset() uint64 { return w.offset - w.current.offset }

// EndSection ends the section with its padding.
func (w *FileWriter) EndSection() error {
	w.current.length, w.current.sum = w.offset-w.current.offset, w.hash.Sum64()
	w.table = append(w.table, w.current)
	return w.Write(make([]byte, padding+int(-w.offset&7)))
}

// WriteSection writes a whole section.
func (w *FileWriter) WriteSection(k Kind, b []byte) error {
	w.BeginSection(k)
	if err := w.Write(b); err != nil {
		return err
	}
	return w.EndSection()
}

// BeginTerms starts the terms; all other sections must have been written.
func (w *FileWriter) BeginTerms() {
	w.BeginSection(Lists)
	w.listStart = w.offset
}

// BeginTerm returns the writer of the list of the next term.
func (w *FileWriter) BeginTerm(hasPositions bool) *postings.Writer {
	w.lists.Begin(hasPositions)
	return &w.lists
}

// EndTerm gives the list that was written to a term; an empty one is dropped.
func (w *FileWriter) EndTerm(term []byte, hasPositions bool) error {
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
	return w.Write(w.encoded)
}

// FinishFile writes the dictionary and the trailer of a file of docs documents,
// without a sync, and maps the file.
func (w *FileWriter) FinishFile(docs int) (*File, error) {
	return w.finishFile(trailer{docs: uint32(docs)})
}

// finishFile completes the trailer and maps the file; after an error there is no file.
func (w *FileWriter) finishFile(t trailer) (*File, error) {
	if err := w.writeEnd(t); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return mapSegmentFile(w.path, w.file, w.schema)
}

func (w *FileWriter) writeEnd(t trailer) error {
	if err := w.EndSection(); err != nil {
		return err
	}
	if err := errors.Join(w.WriteSection(Terms, w.terms.Blocks()), w.WriteSection(TermIndex, w.terms.Index())); err != nil {
		return err
	}
	var tail []byte
	for _, s := range w.table {
		tail = s.appendSection(tail)
	}
	t.version, t.sections, t.schema = Version, uint32(len(w.table)), w.schema
	t.size = w.offset + uint64(len(tail)) + trailerSize
	tail = t.appendTrailer(tail)
	tail = appendSum(tail)
	if err := w.Write(tail); err != nil {
		return err
	}
	if err := w.buf.Flush(); err != nil {
		return fmt.Errorf("segment %s: %w", w.path, err)
	}
	return nil
}
