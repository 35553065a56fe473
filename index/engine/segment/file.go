package segment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/freshet/freshet/index/engine/dictionary"
	"github.com/freshet/freshet/index/engine/postings"
)

// Schema says what the documents of a file are.
type Schema uint32

// The schemas.
const (
	Pages Schema = iota // pages and documents with their words
	Names               // files of shares, see index/files
)

// File is an open file of sections, mapped into memory. It is safe for concurrent use.
// Close does not wait: the mapping lives until every Acquire has its Release,
// since reading it afterwards would end the process.
type File struct {
	path    string
	file    []byte
	trailer *trailer
	table   []section
	terms   *dictionary.Dictionary
	lists   []byte

	users   atomic.Int64
	removed atomic.Bool // remove the file with the last user
}

// OpenFile maps a file of a schema and reads its trailer, its section table and
// the index of its terms.
func OpenFile(path string, schema Schema) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	return mapSegmentFile(path, f, schema)
}

// mapSegmentFile maps f and closes it.
func mapSegmentFile(path string, f *os.File, schema Schema) (_ *File, err error) {
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
	s := &File{path: path, file: b}
	s.users.Store(1)
	if err := s.openFile(schema); err != nil {
		return nil, errors.Join(fmt.Errorf("segment %s: %w", path, err), unix.Munmap(b))
	}
	return s, nil
}

// openFile reads the trailer and opens the dictionary.
func (s *File) openFile(schema Schema) (err error) {
	if s.trailer, s.table, err = readTrailer(s.file); err != nil {
		return err
	}
	if s.trailer.schema != schema {
		return fmt.Errorf("schema %d, want %d: %w", s.trailer.schema, schema, ErrDamaged)
	}
	if err := s.CheckSection(TermIndex); err != nil {
		return err
	}
	s.lists = s.paddedSection(Lists)
	s.terms, err = dictionary.New(s.Section(Terms), s.Section(TermIndex))
	return err
}

// findSection returns the entry of a section, nil if there is none.
func (s *File) findSection(k Kind) *section {
	for i := range s.table {
		if s.table[i].kind == k {
			return &s.table[i]
		}
	}
	return nil
}

// Section returns the bytes of a section, nil if there is none.
func (s *File) Section(k Kind) []byte {
	if e := s.findSection(k); e != nil {
		return s.file[e.offset : e.offset+e.length : e.offset+e.length]
	}
	return nil
}

// paddedSection returns a section with the zeros behind it.
func (s *File) paddedSection(k Kind) []byte {
	if e := s.findSection(k); e != nil {
		return s.file[e.offset : e.offset+e.length+padding]
	}
	return nil
}

// CheckSection compares the checksum of a section.
func (s *File) CheckSection(k Kind) error {
	e := s.findSection(k)
	if e == nil || xxh3.Hash(s.Section(k)) != e.sum {
		return fmt.Errorf("section %d: checksum: %w", k, ErrDamaged)
	}
	return nil
}

// Verify reads the whole file and compares all checksums. Bytes between
// sections must be zero.
func (s *File) Verify() error {
	end := uint64(len(magic))
	for _, e := range s.table {
		if err := s.CheckSection(e.kind); err != nil {
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

// Acquire keeps the file mapped until Release.
func (s *File) Acquire() { s.users.Add(1) }

// Release gives the file back.
func (s *File) Release() {
	if s.users.Add(-1) > 0 {
		return
	}
	_ = unix.Munmap(s.file)
	if s.removed.Load() {
		_ = os.Remove(s.path)
	}
}

// RemoveAfterUse removes the file when nobody uses it any more.
func (s *File) RemoveAfterUse() { s.removed.Store(true) }

// Close gives back the reference that OpenFile returned.
func (s *File) Close() error {
	s.Release()
	return nil
}

// Path is the path of the file.
func (s *File) Path() string { return s.path }

// Size is the size of the file.
func (s *File) Size() int64 { return int64(len(s.file)) }

// Len is the number of documents.
func (s *File) Len() int { return int(s.trailer.docs) }

// Terms returns the dictionary.
func (s *File) Terms() *dictionary.Dictionary { return s.terms }

// List returns the postings of a dictionary's entry.
func (s *File) List(e dictionary.Entry) (postings.List, error) {
	if e.Count == 1 {
		return postings.NewList(e.Inline, 1, postings.FormOf(1), e.HasPositions), nil
	}
	if e.Offset > uint64(len(s.lists)) || uint64(e.Length) > uint64(len(s.lists))-e.Offset || e.Count > s.Len() {
		return postings.List{}, fmt.Errorf("segment %s: list: %w", s.path, ErrDamaged)
	}
	return postings.NewList(s.lists[e.Offset:], e.Count, postings.FormOf(e.Count), e.HasPositions), nil
}

// Lookup returns the postings of a term; a list of no documents if the file
// lacks the term.
func (s *File) Lookup(term []byte) (postings.List, error) {
	e, ok, err := s.terms.Get(term)
	if err != nil {
		return postings.List{}, fmt.Errorf("segment %s: %w", s.path, err)
	}
	if !ok {
		return postings.List{}, nil
	}
	return s.List(e)
}

// VerifyLists decodes every list of postings.
func (s *File) VerifyLists(ctx context.Context) error {
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
