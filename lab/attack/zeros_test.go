package attack

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

// The stream of zeros is gzip that unpacks to zeros, as many as were asked for.
func TestZeros(t *testing.T) {
	t.Parallel()
	const size = 10 << 20
	var packed bytes.Buffer
	writeZeros(&packed, size)
	z, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	if err != io.ErrUnexpectedEOF || len(got) != size || bytes.ContainsFunc(got, func(r rune) bool { return r != 0 }) {
		t.Errorf("%d bytes, %v; want %d zeros and an end that is missing", len(got), err, size)
	}
}
