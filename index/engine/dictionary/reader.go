package dictionary

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrDamaged is the error of a dictionary that cannot be decoded.
var ErrDamaged = errors.New("a dictionary is damaged")

// Entry is what the dictionary says of a term.
type Entry struct {
	Count        int // documents
	HasPositions bool
	Offset       uint64 // of the list in its section; none for Inline
	Length       int
	Inline       []byte // the list of one document
}

// Dictionary reads what Writer wrote. It is safe for concurrent use.
type Dictionary struct {
	blocks []byte
	index  []byte
	count  int
}

// New returns the dictionary of two sections.
func New(blocks, index []byte) (*Dictionary, error) {
	if len(index) < 4 || len(index)%4 != 0 {
		return nil, ErrDamaged
	}
	d := &Dictionary{blocks: blocks, index: index[:len(index)-4], count: int(binary.LittleEndian.Uint32(index[len(index)-4:]))}
	if n := (d.count + blockTerms - 1) / blockTerms; n != len(d.index)/4 {
		return nil, ErrDamaged
	}
	return d, nil
}

// Len is the number of terms.
func (d *Dictionary) Len() int { return d.count }

// blockAt returns the bytes from block k on.
func (d *Dictionary) blockAt(k int) []byte {
	at := binary.LittleEndian.Uint32(d.index[4*k:])
	if uint64(at) > uint64(len(d.blocks)) {
		return nil
	}
	return d.blocks[at:]
}

// firstTerm returns the first term of block k, nil if it is damaged.
func (d *Dictionary) firstTerm(k int) []byte {
	b := d.blockAt(k)
	_, n := binary.Uvarint(b)
	if n <= 0 || n >= len(b) {
		return nil
	}
	b = b[n+1:] // the first term shares nothing: one byte
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil
	}
	return b[n : n+int(size)]
}

// Get returns the entry of a term.
func (d *Dictionary) Get(term []byte) (Entry, bool, error) {
	it := d.Seek(term)
	if it.Valid() && bytes.Equal(it.Term(), term) {
		return it.Entry(), true, nil
	}
	return Entry{}, false, it.Err()
}

// Seek returns an iterator at the first term that is at least term.
func (d *Dictionary) Seek(term []byte) *Iterator {
	low, high := 0, len(d.index)/4
	for low < high { // the first block whose first term is greater
		if mid := (low + high) / 2; bytes.Compare(d.firstTerm(mid), term) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	it := &Iterator{dictionary: d, next: max(low-1, 0) * blockTerms}
	for it.advanceTerm(); it.valid && bytes.Compare(it.term, term) < 0; it.advanceTerm() {
	}
	return it
}

// Iterator walks over terms in ascending order.
type Iterator struct {
	dictionary *Dictionary
	rest       []byte // behind the entry
	next       int    // number of the next term
	term       []byte
	entry      Entry
	offset     uint64 // of the next list
	valid      bool
	err        error
}

// Valid reports whether the iterator stands at a term.
func (it *Iterator) Valid() bool { return it.valid }

// Term returns the term until the next call of Next.
func (it *Iterator) Term() []byte { return it.term }

// Entry returns the entry of the term.
func (it *Iterator) Entry() Entry { return it.entry }

// Err is ErrDamaged after damaged data was met.
func (it *Iterator) Err() error { return it.err }

// Next moves to the next term.
func (it *Iterator) Next() { it.advanceTerm() }

func (it *Iterator) advanceTerm() {
	it.valid = false
	if it.err != nil || it.next >= it.dictionary.count {
		return
	}
	if it.next%blockTerms == 0 {
		it.rest = it.dictionary.blockAt(it.next / blockTerms)
		it.offset = it.readVarint()
		it.term = it.term[:0]
	}
	shared, size := it.readVarint(), it.readVarint()
	if it.err != nil || shared > uint64(len(it.term)) || size > uint64(len(it.rest)) {
		it.err = ErrDamaged
		return
	}
	it.term = append(it.term[:shared], it.rest[:size]...)
	it.rest = it.rest[size:]
	it.readEntry()
	it.next++
	it.valid = it.err == nil
}

func (it *Iterator) readEntry() {
	head, length := it.readVarint(), it.readVarint()
	e := Entry{Count: int(head >> 1), HasPositions: head&1 != 0, Offset: it.offset, Length: int(length)}
	switch {
	case it.err != nil || head>>1 == 0 || head>>1 >= 1<<32 || length >= 1<<40:
		it.err = ErrDamaged
		return
	case e.Count == 1:
		if length > uint64(len(it.rest)) {
			it.err = ErrDamaged
			return
		}
		e.Inline = it.rest[:length:length]
		it.rest = it.rest[length:]
	default:
		it.offset += length
	}
	it.entry = e
}

// readVarint reads a varint.
func (it *Iterator) readVarint() uint64 {
	v, n := binary.Uvarint(it.rest)
	if n <= 0 {
		it.err = ErrDamaged
		return 0
	}
	it.rest = it.rest[n:]
	return v
}
