package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"github.com/zeebo/xxh3"
)

// state is what changes in a segment after it was written: which documents are
// deleted, and popularity. A change replaces it; searches go on with the old one.
//
//	"freshst1"           8 bytes
//	number of documents  8
//	deleted documents    a bit each, in words of 8 bytes
//	popularity           a byte each
//	XXH3 of all of it    8
type state struct {
	dead       []uint64 // nil for none
	popularity []byte
}

const stateMagic = "freshst1"

// withDead returns a state in which more documents are deleted.
func (s state) withDead(docs []uint32) state {
	dead := slices.Clone(s.dead)
	if dead == nil {
		dead = make([]uint64, (len(s.popularity)+63)/64)
	}
	for _, d := range docs {
		dead[d/64] |= 1 << (d % 64)
	}
	return state{dead, s.popularity}
}

// encode returns the file of a state.
func (s state) encode() []byte {
	out := append([]byte(stateMagic), make([]byte, 8)...)
	binary.LittleEndian.PutUint64(out[8:], uint64(len(s.popularity)))
	for i := range (len(s.popularity) + 63) / 64 {
		var w uint64
		if s.dead != nil {
			w = s.dead[i]
		}
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	out = append(out, s.popularity...)
	return binary.LittleEndian.AppendUint64(out, xxh3.Hash(out))
}

// readState reads the state of a segment of docs documents.
func readState(path string, docs int) (state, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return state{}, fmt.Errorf("index: %w", err)
	}
	s, err := decodeState(b, docs)
	if err != nil {
		return state{}, fmt.Errorf("index: %s: %w", path, err)
	}
	return s, nil
}

func decodeState(b []byte, docs int) (state, error) {
	words := (docs + 63) / 64
	if len(b) != 16+8*words+docs+8 || string(b[:8]) != stateMagic || binary.LittleEndian.Uint64(b[8:]) != uint64(docs) || xxh3.Hash(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return state{}, ErrDamaged
	}
	s := state{dead: make([]uint64, words), popularity: b[16+8*words : len(b)-8]}
	any := uint64(0)
	for i := range s.dead {
		s.dead[i] = binary.LittleEndian.Uint64(b[16+8*i:])
		any |= s.dead[i]
	}
	if any == 0 {
		s.dead = nil
	}
	return s, nil
}
