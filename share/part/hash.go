package part

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"
)

func (h Hash) plusHash(o Hash) Hash {
	low, carry := bits.Add64(h.Low, o.Low, 0)
	high, _ := bits.Add64(h.High, o.High, carry)
	return Hash{High: high, Low: low}
}

// hasher hashes the entries of one folder after another without allocating.
type hasher struct {
	folder uint64 // hash of the folder's key
	buf    []byte
}

func (h *hasher) enterFolder(folderKey []byte) { h.folder = xxh3.Hash(folderKey) }

// hashEntry returns H(folder, sign, name, size, mtime) of one entry. XXH3 with 128
// bits: no protection against somebody who builds collisions, who could only
// hide a change of his own files.
func (h *hasher) hashEntry(sign, name string, size, modified int64) Hash {
	b := append(h.buf[:0], sign...)
	b = append(b, name...)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	b = binary.LittleEndian.AppendUint64(b, uint64(modified))
	h.buf = b
	s := xxh3.Hash128Seed(b, h.folder)
	return Hash{High: s.Hi, Low: s.Lo}
}
