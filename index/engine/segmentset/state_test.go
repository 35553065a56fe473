package segmentset

import (
	"bytes"
	"testing"
)

// Whatever the bytes are, a state is refused or is one of that many documents.
func FuzzState(f *testing.F) {
	s := State{Docs: 70, Bytes: make([]byte, 70)}
	f.Add(s.encodeState(), 70, true)
	f.Add(State{Docs: 70}.encodeState(), 70, false)
	f.Add(s.WithDead([]uint32{0, 69}).encodeState(), 70, true)
	f.Add([]byte(stateMagic), 0, true)
	f.Fuzz(func(t *testing.T, b []byte, docs int, hasBytes bool) {
		if docs < 0 || docs > 1<<20 {
			return
		}
		s, err := decodeState(b, docs, hasBytes)
		if err == nil && (s.Docs != docs || hasBytes && len(s.Bytes) != docs || !bytes.Equal(s.encodeState(), b)) {
			t.Errorf("%d bytes are taken for the state of %d documents", len(b), docs)
		}
	})
}
