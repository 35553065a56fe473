package segmentset

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"github.com/zeebo/xxh3"
)

// State is what changes in a segment after it was written: which documents are
// deleted, and perhaps a byte for each document. A change replaces it; searches go on
// with the old one.
//
//	"freshst1"           8 bytes
//	number of documents  8
//	deleted documents    a bit each, in words of 8 bytes
//	changeable bytes     one each, or none
//	XXH3 of all of it    8
type State struct {
	Docs  int      // number of documents
	Dead  []uint64 // bits of deleted documents; nil for none
	Bytes []byte   // by document; nil if the schema has none
}

const stateMagic = "freshst1"

// WithDead returns a state in which more documents are deleted.
func (s State) WithDead(docs []uint32) State {
	dead := slices.Clone(s.Dead)
	if dead == nil {
		dead = make([]uint64, (s.Docs+63)/64)
	}
	for _, d := range docs {
		dead[d/64] |= 1 << (d % 64)
	}
	return State{s.Docs, dead, s.Bytes}
}

// encodeState returns the file of a state.
func (s State) encodeState() []byte {
	out := append([]byte(stateMagic), make([]byte, 8)...)
	binary.LittleEndian.PutUint64(out[8:], uint64(s.Docs))
	for i := range (s.Docs + 63) / 64 {
		var w uint64
		if s.Dead != nil {
			w = s.Dead[i]
		}
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	out = append(out, s.Bytes...)
	return binary.LittleEndian.AppendUint64(out, xxh3.Hash(out))
}

// readState reads the state of a segment of docs documents.
func readState(path string, docs int, hasBytes bool) (State, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return State{}, fmt.Errorf("index: %w", err)
	}
	s, err := decodeState(b, docs, hasBytes)
	if err != nil {
		return State{}, fmt.Errorf("index: %s: %w", path, err)
	}
	return s, nil
}

func decodeState(b []byte, docs int, hasBytes bool) (State, error) {
	words, size := (docs+63)/64, 0
	if hasBytes {
		size = docs
	}
	if len(b) != 16+8*words+size+8 || string(b[:8]) != stateMagic || binary.LittleEndian.Uint64(b[8:]) != uint64(docs) || xxh3.Hash(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return State{}, ErrDamaged
	}
	s := State{Docs: docs, Dead: make([]uint64, words)}
	if hasBytes {
		s.Bytes = b[16+8*words : len(b)-8]
	}
	anyBit := uint64(0)
	for i := range s.Dead {
		s.Dead[i] = binary.LittleEndian.Uint64(b[16+8*i:])
		anyBit |= s.Dead[i]
	}
	if anyBit == 0 {
		s.Dead = nil
	}
	return s, nil
}
