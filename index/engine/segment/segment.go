package segment

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/freshet/freshet/index/engine/bm25"
)

// Segment is an open segment of pages. It is safe for concurrent use.
type Segment struct {
	*File
	texts    texts
	ids      []byte
	offsets  []byte
	hashes   []byte
	hashDocs []byte
	lengths  []byte
	ends     []byte
	dates    []byte
	sizes    []byte
	keywords [sectionsEnd]*Keyword
}

// Open maps the file of a segment.
func Open(path string) (*Segment, error) {
	f, err := OpenFile(path, Pages)
	if err != nil {
		return nil, err
	}
	return openColumns(f)
}

// openColumns takes the columns of f and closes it if they are damaged.
func openColumns(f *File) (*Segment, error) {
	s := &Segment{File: f}
	if err := s.openSections(); err != nil {
		return nil, errors.Join(fmt.Errorf("segment %s: %w", f.path, err), f.Close())
	}
	return s, nil
}

// openSections takes the sections.
func (s *Segment) openSections() (err error) {
	docs := int(s.trailer.docs)
	fixed := func(k Kind, size int) []byte {
		b := s.Section(k)
		if len(b) != size*docs || s.CheckSection(k) != nil {
			err = errors.Join(err, fmt.Errorf("column %d: %w", k, ErrDamaged))
		}
		return b
	}
	s.offsets, s.hashes, s.hashDocs = fixed(IDOffsets, 4), fixed(IDHashes, 8), fixed(IDDocuments, 4)
	s.lengths, s.ends, s.dates, s.sizes = fixed(LengthColumn, 4), fixed(EndColumn, 4), fixed(DateColumn, 8), fixed(SizeColumn, 8)
	fixed(PopularityColumn, 1)
	if err != nil {
		return err
	}
	for _, k := range Keywords {
		if err := s.CheckSection(k); err != nil {
			return err
		}
		if s.keywords[k], err = openKeyword(s.Section(k), docs); err != nil {
			return fmt.Errorf("column %d: %w", k, err)
		}
	}
	if err := s.CheckSection(TextIndex); err != nil {
		return err
	}
	s.ids = s.Section(IDs)
	s.texts = texts{s.Section(Texts), s.Section(TextIndex)}
	return nil
}

// Totals returns the summed lengths of all documents.
func (s *Segment) Totals() Totals { return s.trailer.totals }

// Reference returns the average lengths for which bounds of impact are kept.
func (s *Segment) Reference() bm25.Averages { return s.trailer.reference }

// ID returns the identifier of a document.
func (s *Segment) ID(doc uint32) string { return string(s.idBytes(doc)) }

func (s *Segment) idBytes(doc uint32) []byte {
	start := uint32(0)
	if doc > 0 {
		start = binary.LittleEndian.Uint32(s.offsets[4*(doc-1):])
	}
	end := binary.LittleEndian.Uint32(s.offsets[4*doc:])
	if start > end || uint64(end) > uint64(len(s.ids)) {
		return nil
	}
	return s.ids[start:end]
}

// Find returns the documents with an identifier. There is more than one only if
// older versions were replaced within the segment.
func (s *Segment) Find(id string) (uint32, bool) {
	h := hashID(id)
	hashAt := func(i int) uint64 { return binary.LittleEndian.Uint64(s.hashes[8*i:]) }
	low, high := 0, s.Len()
	for low < high {
		if mid := (low + high) / 2; hashAt(mid) < h {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for ; low < s.Len() && hashAt(low) == h; low++ {
		if doc := binary.LittleEndian.Uint32(s.hashDocs[4*low:]); int(doc) < s.Len() && string(s.idBytes(doc)) == id {
			return doc, true
		}
	}
	return 0, false
}

// Lengths returns the lengths of a document's fields.
func (s *Segment) Lengths(doc uint32) bm25.Lengths {
	return bm25.Lengths(binary.LittleEndian.Uint32(s.lengths[4*doc:]))
}

// Ends returns the positions behind the title and behind the URL of a document.
func (s *Segment) Ends(doc uint32) (title, url uint32) {
	v := binary.LittleEndian.Uint32(s.ends[4*doc:])
	return v & 0xffff, v >> 16
}

// Date returns the date of a document in seconds since 1970.
func (s *Segment) Date(doc uint32) int64 { return int64(binary.LittleEndian.Uint64(s.dates[8*doc:])) }

// SizeOf returns the size of a document in bytes.
func (s *Segment) SizeOf(doc uint32) int64 {
	return int64(binary.LittleEndian.Uint64(s.sizes[8*doc:]))
}

// Popularity returns the popularity of all documents when the segment was written.
func (s *Segment) Popularity() []byte { return s.Section(PopularityColumn) }

// Keyword returns a keyword column.
func (s *Segment) Keyword(k Kind) *Keyword { return s.keywords[k] }

// Text returns the stored text of a document.
func (s *Segment) Text(doc uint32) (Text, error) {
	t, err := s.texts.textOf(doc)
	if err != nil {
		return t, fmt.Errorf("segment %s: document %d: %w", s.path, doc, err)
	}
	return t, nil
}

// Document returns the columns of a document; its popularity is the one that
// was written.
func (s *Segment) Document(doc uint32) Document {
	title, url := s.Ends(doc)
	return Document{
		ID: s.ID(doc), Host: s.keywords[HostColumn].Value(doc), Type: s.keywords[TypeColumn].Value(doc), Lang: s.keywords[LangColumn].Value(doc), Kind: s.keywords[KindColumn].Value(doc),
		Date: s.Date(doc), Size: s.SizeOf(doc), Popularity: s.Popularity()[doc], Lengths: s.Lengths(doc), TitleEnd: uint16(title), URLEnd: uint16(url),
	}
}
