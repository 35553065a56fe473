package segment

import (
	"fmt"

	"github.com/freshet/freshet/index/engine/bm25"
)

// Writer writes a segment: first the texts of all documents, then their
// columns, then the terms in ascending order, then Finish.
type Writer struct {
	*FileWriter
	reference bm25.Averages
	norms     *bm25.Norms
	columns   columns
	texts     textWriter
}

// Create makes a new file. reference are the average lengths for which bounds
// of impact are kept; limit is called with the number of bytes that are about to
// be written.
func Create(path string, reference bm25.Averages, limit func(bytes int)) (*Writer, error) {
	f, err := CreateFile(path, Pages, limit)
	if err != nil {
		return nil, err
	}
	// What is written is what is read back from the trailer.
	reference = bm25.Averages{Title: float64(float32(reference.Title)), URL: float64(float32(reference.URL)), Body: float64(float32(reference.Body))}
	w := &Writer{FileWriter: f, reference: reference, norms: bm25.NewNorms(reference)}
	w.lists.ImpactOf = func(doc, code uint32) uint16 { return w.norms.Impact(code, w.columns.lengths[doc]) }
	w.BeginSection(Texts)
	return w, nil
}

// AddText appends the stored text of the next document.
func (w *Writer) AddText(t Text) error {
	if block := w.texts.addTextRecord(t); block != nil {
		return w.writeTexts(block)
	}
	return nil
}

func (w *Writer) writeTexts(block []byte) error {
	w.texts.noteTextBlock(w.sectionOffset())
	return w.Write(block)
}

// CopyTexts appends the stored texts of another segment as they are packed.
func (w *Writer) CopyTexts(s *Segment) error {
	if block := w.texts.lastTextBlock(); block != nil {
		if err := w.writeTexts(block); err != nil {
			return err
		}
	}
	for k := range s.texts.textBlockCount() {
		block, err := s.texts.packedBlock(k)
		if err != nil {
			return fmt.Errorf("segment %s: %w", s.path, err)
		}
		end := s.trailer.docs
		if k+1 < s.texts.textBlockCount() {
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
func (w *Writer) AddDocument(d Document) { w.columns.addDocument(d) }

// Documents is the number of documents so far.
func (w *Writer) Documents() int { return len(w.columns.lengths) }

// BeginTerms ends the texts and the columns.
func (w *Writer) BeginTerms() error {
	if block := w.texts.lastTextBlock(); block != nil {
		if err := w.writeTexts(block); err != nil {
			return err
		}
	}
	if err := w.EndSection(); err != nil {
		return err
	}
	if err := w.WriteSection(TextIndex, w.texts.index); err != nil {
		return err
	}
	for k, b := range w.columns.eachSection() {
		if err := w.WriteSection(k, b); err != nil {
			return err
		}
	}
	w.FileWriter.BeginTerms()
	return nil
}

// Finish writes the rest, without a sync, and opens the segment.
func (w *Writer) Finish() (*Segment, error) {
	f, err := w.finishFile(trailer{docs: uint32(w.Documents()), totals: w.columns.totals, reference: w.reference})
	if err != nil {
		return nil, err
	}
	return openColumns(f)
}
