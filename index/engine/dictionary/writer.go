package dictionary

import "encoding/binary"

// blockTerms is the number of terms of a block.
const blockTerms = 16

// Writer collects terms in ascending order. The zero value is ready.
type Writer struct {
	blocks []byte
	index  []byte
	last   []byte
	count  int
}

// Add appends a term that is greater than the one before. offset and length
// are those of its list; inline is the list itself if it has one document.
func (w *Writer) Add(term []byte, count int, hasPositions bool, offset uint64, length int, inline []byte) {
	shared := 0
	if w.count%blockTerms == 0 {
		w.index = binary.LittleEndian.AppendUint32(w.index, uint32(len(w.blocks)))
		w.blocks = binary.AppendUvarint(w.blocks, offset)
	} else {
		shared = commonPrefix(w.last, term)
	}
	head := uint64(count) << 1
	if hasPositions {
		head |= 1
	}
	w.blocks = binary.AppendUvarint(w.blocks, uint64(shared))
	w.blocks = binary.AppendUvarint(w.blocks, uint64(len(term)-shared))
	w.blocks = append(w.blocks, term[shared:]...)
	w.blocks = binary.AppendUvarint(w.blocks, head)
	if count == 1 {
		length = len(inline)
	}
	w.blocks = binary.AppendUvarint(w.blocks, uint64(length))
	if count == 1 {
		w.blocks = append(w.blocks, inline...)
	}
	w.last = append(w.last[:0], term...)
	w.count++
}

// Blocks returns the section of blocks.
func (w *Writer) Blocks() []byte { return w.blocks }

// Index returns the section that leads to the blocks.
func (w *Writer) Index() []byte { return binary.LittleEndian.AppendUint32(w.index, uint32(w.count)) }

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
