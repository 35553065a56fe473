package fetch

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the longest window of zstd: what a decoder of bodies has to support
// and need not exceed (RFC 9659). A frame of a few bytes can ask for any.
const maxWindow = 8 << 20

// decoder undoes a Content-Encoding. Servers that call identity by some other
// name get what they send.
func decoder(encoding string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return r, nil
}

// packed is a body as it is transferred that is decoded. It keeps how that ended:
// decoders tell it in their own words.
type packed struct {
	*counter
	err error // nil while there is more
}

// Read implements io.Reader.
func (p *packed) Read(b []byte) (int, error) {
	n, err := p.counter.Read(b)
	if err != nil {
		p.err = err
	}
	return n, err
}

// outcome is the error of the whole body, decoded to b, where the decoder gave err.
func (p *packed) outcome(b []byte, err error) error {
	switch {
	case p.err != nil && !errors.Is(p.err, io.EOF): // it did not come whole, whatever the decoder thinks
		if p.slow.Load() {
			return errSlow
		}
		return fmt.Errorf("body cut off after %d bytes: %w", p.n.Load(), p.err)
	case err == nil:
		return nil
	case p.n.Load() == 0: // nothing at all is nothing, however packed: redirects come so
		return nil
	case errors.Is(err, gzip.ErrHeader) && len(b) > 0: // what follows a whole body is no concern of ours
		return nil
	}
	return fmt.Errorf("%w: %w", errEncoding, err)
}
