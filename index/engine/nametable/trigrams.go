package nametable

import (
	"encoding/binary"

	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/segment"
)

// Trigrams collects which blocks have which three bytes. Blocks come in
// ascending order. The zero value is ready.
type Trigrams struct {
	pages [1 << 16]*[256]blockList // by the first two bytes
}

// blockList is the blocks of one trigram: gaps as varints.
type blockList struct {
	data []byte
	next uint32 // the last block and one, 0 for none
}

// Add notes all trigrams of a word in a block.
func (t *Trigrams) Add(word []byte, block uint32) {
	for i := 0; i+3 <= len(word); i++ {
		p := &t.pages[uint32(word[i])<<8|uint32(word[i+1])]
		if *p == nil {
			*p = new([256]blockList)
		}
		l := &(*p)[word[i+2]]
		if l.next == block+1 {
			continue
		}
		l.data = binary.AppendUvarint(l.data, uint64(block-l.next))
		l.next = block + 1
	}
}

// Write writes the lists as terms: the byte field, then the trigram.
func (t *Trigrams) Write(w *segment.FileWriter, field byte) error {
	for head, page := range t.pages {
		if page == nil {
			continue
		}
		for third := range page {
			l := &page[third]
			if l.next == 0 {
				continue
			}
			list := w.BeginTerm(false)
			block := uint32(0)
			for b := l.data; len(b) > 0; {
				gap, n := binary.Uvarint(b)
				b = b[n:]
				block += uint32(gap)
				list.Add(block, 0, nil)
				block++
			}
			if err := w.EndTerm([]byte{field, byte(head >> 8), byte(head), byte(third)}, false); err != nil {
				return err
			}
			l.data = nil
		}
	}
	return nil
}

// Candidates sets the bits of the blocks that have all trigrams of a piece of at
// least three bytes; it returns nil if there are none. Names of other blocks do not
// have the piece.
func Candidates(s *segment.File, field byte, piece string, blocks int) ([]uint64, error) {
	var out, one []uint64
	for i := 0; i+3 <= len(piece); i++ {
		list, err := s.Lookup([]byte{field, piece[i], piece[i+1], piece[i+2]})
		if err != nil || list.Count() == 0 {
			return nil, err
		}
		var c postings.Cursor
		c.Open(&list)
		if out == nil {
			out = make([]uint64, (blocks+63)/64)
			c.FillBits(0, out)
		} else {
			if one == nil {
				one = make([]uint64, len(out))
			}
			clear(one)
			c.FillBits(0, one)
			hasAny := uint64(0)
			for k := range out {
				out[k] &= one[k]
				hasAny |= out[k]
			}
			if hasAny == 0 {
				return nil, c.Err()
			}
		}
		if c.Err() != nil {
			return nil, c.Err()
		}
	}
	return out, nil
}
