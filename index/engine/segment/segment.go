package segment

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/dictionary"
	"github.com/freshet/freshet/index/engine/postings"
)

// Segment is an open file, mapped into memory. It is safe for concurrent use.
// Close does not wait: the mapping lives until every Acquire has its Release,
// since reading it afterwards would end the process.
type Segment struct {
	path     string
	file     []byte
	trailer  *trailer
	table    []section
	terms    *dictionary.Dictionary
	lists    []byte
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

	users   atomic.Int64
	removed atomic.Bool // remove the file with the last user
}

// Open maps the file of a segment.
func Open(path string) (*Segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	return openFile(path, f)
}

// openFile maps f and closes it.
func openFile(path string, f *os.File) (_ *Segment, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	if st.Size() < int64(len(magic)+trailerSize) {
		return nil, fmt.Errorf("segment %s: %d bytes: %w", path, st.Size(), ErrDamaged)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("segment %s: map: %w", path, err)
	}
	s := &Segment{path: path, file: b}
	s.users.Store(1)
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("segment %s: %w", path, err), unix.Munmap(b))
	}
	return s, nil
}

// open reads the trailer and takes the sections.
func (s *Segment) open() (err error) {
	if s.trailer, s.table, err = readTrailer(s.file); err != nil {
		return err
	}
	docs := int(s.trailer.docs)
	fixed := func(k Kind, size int) []byte {
		b := s.section(k)
		if len(b) != size*docs || s.checkSection(k) != nil {
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
		if err := s.checkSection(k); err != nil {
			return err
		}
		if s.keywords[k], err = openKeyword(s.section(k), docs); err != nil {
			return fmt.Errorf("column %d: %w", k, err)
		}
	}
	if err := errors.Join(s.checkSection(TermIndex), s.checkSection(TextIndex)); err != nil {
		return err
	}
	s.ids, s.lists = s.section(IDs), s.padded(Lists)
	s.texts = texts{s.section(Texts), s.section(TextIndex)}
	s.terms, err = dictionary.New(s.section(Terms), s.section(TermIndex))
	return err
}

// find returns the entry of a section, nil if there is none.
func (s *Segment) find(k Kind) *section {
	for i := range s.table {
		if s.table[i].kind == k {
			return &s.table[i]
		}
	}
	return nil
}

// section returns the bytes of a section, nil if there is none.
func (s *Segment) section(k Kind) []byte {
	if e := s.find(k); e != nil {
		return s.file[e.offset : e.offset+e.length : e.offset+e.length]
	}
	return nil
}

// padded returns a section with the zeros behind it.
func (s *Segment) padded(k Kind) []byte {
	if e := s.find(k); e != nil {
		return s.file[e.offset : e.offset+e.length+padding]
	}
	return nil
}

// checkSection compares the checksum of a section.
func (s *Segment) checkSection(k Kind) error {
	e := s.find(k)
	if e == nil || xxh3.Hash(s.section(k)) != e.sum {
		return fmt.Errorf("section %d: checksum: %w", k, ErrDamaged)
	}
	return nil
}

// Verify reads the whole file and compares all checksums. Bytes between
// sections must be zero.
func (s *Segment) Verify() error {
	end := uint64(len(magic))
	for _, e := range s.table {
		if err := s.checkSection(e.kind); err != nil {
			return fmt.Errorf("segment %s: %w", s.path, err)
		}
		if !isZero(s.file[min(end, e.offset):e.offset]) {
			return fmt.Errorf("segment %s: bytes between sections: %w", s.path, ErrDamaged)
		}
		end = e.offset + e.length
	}
	tail := uint64(len(s.file)) - trailerSize - uint64(len(s.table))*entrySize
	if !isZero(s.file[min(end, tail):tail]) {
		return fmt.Errorf("segment %s: bytes behind the sections: %w", s.path, ErrDamaged)
	}
	return nil
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Acquire keeps the segment mapped until Release.
func (s *Segment) Acquire() { s.users.Add(1) }

// Release gives the segment back.
func (s *Segment) Release() {
	if s.users.Add(-1) > 0 {
		return
	}
	_ = unix.Munmap(s.file)
	if s.removed.Load() {
		_ = os.Remove(s.path)
	}
}

// RemoveAfterUse removes the file when nobody uses the segment any more.
func (s *Segment) RemoveAfterUse() { s.removed.Store(true) }

// Close gives back the reference that Open returned.
func (s *Segment) Close() error {
	s.Release()
	return nil
}

// Path is the file of the segment.
func (s *Segment) Path() string { return s.path }

// Size is the size of the file.
func (s *Segment) Size() int64 { return int64(len(s.file)) }

// Len is the number of documents.
func (s *Segment) Len() int { return int(s.trailer.docs) }

// Totals returns the summed lengths of all documents.
func (s *Segment) Totals() Totals { return s.trailer.totals }

// Reference returns the average lengths for which bounds of impact are kept.
func (s *Segment) Reference() bm25.Averages { return s.trailer.reference }

// Terms returns the dictionary.
func (s *Segment) Terms() *dictionary.Dictionary { return s.terms }

// List returns the postings of a dictionary's entry.
func (s *Segment) List(e dictionary.Entry) (postings.List, error) {
	if e.Count == 1 {
		return postings.NewList(e.Inline, 1, postings.FormOf(1), e.HasPositions), nil
	}
	if e.Offset > uint64(len(s.lists)) || uint64(e.Length) > uint64(len(s.lists))-e.Offset || e.Count > s.Len() {
		return postings.List{}, fmt.Errorf("segment %s: list: %w", s.path, ErrDamaged)
	}
	return postings.NewList(s.lists[e.Offset:], e.Count, postings.FormOf(e.Count), e.HasPositions), nil
}

// Lookup returns the postings of a term; a list of no documents if the segment
// lacks the term.
func (s *Segment) Lookup(term []byte) (postings.List, error) {
	e, ok, err := s.terms.Get(term)
	if err != nil {
		return postings.List{}, fmt.Errorf("segment %s: %w", s.path, err)
	}
	if !ok {
		return postings.List{}, nil
	}
	return s.List(e)
}

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
func (s *Segment) Popularity() []byte { return s.section(PopularityColumn) }

// Keyword returns a keyword column.
func (s *Segment) Keyword(k Kind) *Keyword { return s.keywords[k] }

// Text returns the stored text of a document.
func (s *Segment) Text(doc uint32) (Text, error) {
	t, err := s.texts.text(doc)
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

// VerifyLists decodes every list of postings.
func (s *Segment) VerifyLists(ctx context.Context) error {
	var c postings.Cursor
	it := s.terms.Seek(nil)
	for n := 0; it.Valid(); it.Next() {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		l, err := s.List(it.Entry())
		if err != nil {
			return err
		}
		count := 0
		for c.Open(&l); c.Doc() < s.trailer.docs; c.Next() {
			c.Positions()
			count++
		}
		if c.Err() != nil || c.Doc() != postings.End || count != l.Count() {
			return fmt.Errorf("list of %q: %w", it.Term(), ErrDamaged)
		}
	}
	return it.Err()
}
