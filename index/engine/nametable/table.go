// Package nametable keeps sorted names in blocks, and for every three bytes the
// blocks whose names have them, by which pieces of names are found.
//
// Names are front-coded in blocks of 64. A block is decoded by itself:
//
//	block   64 names: bytes shared with the name before (varint, 0 in the
//	        first), bytes that follow (varint), the bytes
//	index   offset of each block (8 bytes each)
//
// A trigram is a term of the dictionary whose list holds numbers of blocks; the
// names of these blocks are then looked at. A list of blocks takes a twentieth of
// a list of names, and a block is decoded faster than a list.
//
// Readers of damaged data return ErrDamaged and never panic.
package nametable

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/freshet/freshet/index/engine/segment"
)

// BlockSize is the number of names of a full block.
const BlockSize = 64

// maxName bounds a name in bytes.
const maxName = 1 << 20

// errDamaged is the error of a table that cannot be decoded.
var errDamaged = fmt.Errorf("a block of names: %w", segment.ErrDamaged)

// Writer encodes names in ascending order. The zero value is ready.
type Writer struct {
	index  []byte
	last   []byte
	count  int
	offset uint64
}

// Append appends the next name to dst, which is written where the block before
// ended.
func (w *Writer) Append(dst, name []byte) []byte {
	before := len(dst)
	shared := 0
	if w.count%BlockSize == 0 {
		w.index = binary.LittleEndian.AppendUint64(w.index, w.offset)
	} else {
		for n := min(len(w.last), len(name)); shared < n && w.last[shared] == name[shared]; {
			shared++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(shared))
	dst = binary.AppendUvarint(dst, uint64(len(name)-shared))
	dst = append(dst, name[shared:]...)
	w.last = append(w.last[:0], name...)
	w.count++
	w.offset += uint64(len(dst) - before)
	return dst
}

// Count is the number of names so far.
func (w *Writer) Count() int { return w.count }

// Index returns the section that leads to the blocks.
func (w *Writer) Index() []byte { return w.index }

// Table reads what Writer wrote. It is safe for concurrent use.
type Table struct {
	blocks []byte
	index  []byte
	count  int
}

// New returns the table of count names in two sections.
func New(blocks, index []byte, count int) (*Table, error) {
	if len(index) != 8*((count+BlockSize-1)/BlockSize) {
		return nil, errDamaged
	}
	return &Table{blocks: blocks, index: index, count: count}, nil
}

// Len is the number of names.
func (t *Table) Len() int { return t.count }

// Blocks is the number of blocks.
func (t *Table) Blocks() int { return len(t.index) / 8 }

// Block is a decoded block: its names, each followed by a zero byte.
type Block struct {
	Text  []byte
	ends  [BlockSize]uint32 // of names in Text
	count int
}

// Len is the number of names of the block.
func (b *Block) Len() int { return b.count }

// Name returns a name until the block is decoded again.
func (b *Block) Name(i int) []byte {
	if i >= b.count {
		return nil
	}
	start := uint32(0)
	if i > 0 {
		start = b.ends[i-1] + 1
	}
	return b.Text[start:b.ends[i]:b.ends[i]]
}

// End returns where a name ends in Text.
func (b *Block) End(i int) int { return int(b.ends[i]) }

// At returns the number of the name that has the byte at offset at of Text.
func (b *Block) At(at int) int {
	low, high := 0, b.count
	for low < high {
		if mid := (low + high) / 2; b.ends[mid] < uint32(at) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// blockAt returns the bytes from block k on.
func (t *Table) blockAt(k int) ([]byte, error) {
	at := binary.LittleEndian.Uint64(t.index[8*k:])
	if at > uint64(len(t.blocks)) {
		return nil, errDamaged
	}
	return t.blocks[at:], nil
}

// Decode decodes block k into b.
func (t *Table) Decode(k int, b *Block) error {
	b.Text, b.count = b.Text[:0], 0
	src, err := t.blockAt(k)
	if err != nil {
		return err
	}
	start := 0 // of the name before
	for i := range min(BlockSize, t.count-k*BlockSize) {
		shared, size, n := header(src)
		end := len(b.Text) - 1 // of the name before
		if n <= 0 || size > len(src)-n || shared > 0 && shared > end-start {
			b.Text, b.count = b.Text[:0], 0
			return errDamaged
		}
		next := len(b.Text)
		b.Text = append(b.Text, b.Text[start:start+shared]...)
		b.Text = append(b.Text, src[n:n+size]...)
		b.ends[i] = uint32(len(b.Text))
		b.Text = append(b.Text, 0)
		src, start = src[n+size:], next
		b.count++
	}
	return nil
}

// header reads the lengths of an entry and returns how many bytes they take, at
// most 0 for damaged data.
func header(src []byte) (shared, size, n int) {
	if len(src) >= 2 && src[0] < 0x80 && src[1] < 0x80 {
		return int(src[0]), int(src[1]), 2
	}
	a, k := binary.Uvarint(src)
	if k <= 0 || a > maxName {
		return 0, 0, -1
	}
	b, m := binary.Uvarint(src[k:])
	if m <= 0 || b > maxName {
		return 0, 0, -1
	}
	return int(a), int(b), k + m
}

// first returns the first name of block k.
func (t *Table) first(k int) ([]byte, error) {
	src, err := t.blockAt(k)
	if err != nil {
		return nil, err
	}
	_, size, n := header(src)
	if n <= 0 || size > len(src)-n {
		return nil, errDamaged
	}
	return src[n : n+size], nil
}

// Search returns the number of the first name in [low, high) that is at least
// name, and whether it is name; names in the range ascend. b is scratch space.
func (t *Table) Search(low, high uint32, name []byte, b *Block) (uint32, bool, error) {
	if low >= high || uint64(high) > uint64(t.count) {
		return high, false, nil
	}
	// The last block that begins in the range and whose first name is at most name.
	from, to := (int(low)+BlockSize-1)/BlockSize, (int(high)+BlockSize-1)/BlockSize
	for from < to {
		mid := (from + to) / 2
		first, err := t.first(mid)
		if err != nil {
			return 0, false, err
		}
		if bytes.Compare(first, name) <= 0 {
			from = mid + 1
		} else {
			to = mid
		}
	}
	k := max(from-1, int(low)/BlockSize)
	if err := t.Decode(k, b); err != nil {
		return 0, false, err
	}
	base := uint32(k) * BlockSize
	for i := max(low, base); i < min(high, base+uint32(b.count)); i++ {
		if c := bytes.Compare(b.Name(int(i-base)), name); c >= 0 {
			return i, c == 0, nil
		}
	}
	return min(high, base+uint32(b.count)), false, nil
}
