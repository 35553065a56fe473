package testweb

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"golang.org/x/text/encoding"
)

// negotiateCoding chooses a content coding from an Accept-Encoding field: br before gzip
// before none. Weights matter only where they are 0, as in most servers.
func negotiateCoding(accept string) string {
	best := ""
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(part, ";")
		if q, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok && strings.Trim(q, "0.") == "" {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "br":
			return "br"
		case "gzip", "x-gzip", "*":
			best = "gzip"
		}
	}
	return best
}

// coder compresses bodies; it is used by one request at a time.
type coder struct {
	w interface {
		io.WriteCloser
		Reset(io.Writer)
	}
	out bytes.Buffer
}

// encodeBody returns the coded body, valid until the next call.
func (c *coder) encodeBody(body []byte) []byte {
	c.out.Reset()
	c.w.Reset(&c.out)
	// A bytes.Buffer takes everything.
	_, _ = c.w.Write(body)
	_ = c.w.Close()
	return c.out.Bytes()
}

// coders keeps compressors for use again: making one costs more than a page.
type coders struct {
	gzip, br sync.Pool
	once     sync.Once
	member   []byte
}

func (p *coders) getCoder(name string) *coder {
	if name == "br" {
		if c, ok := p.br.Get().(*coder); ok {
			return c
		}
		return &coder{w: brotli.NewWriterLevel(nil, 1)}
	}
	if c, ok := p.gzip.Get().(*coder); ok {
		return c
	}
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return &coder{w: w}
}

func (p *coders) putCoder(name string, c *coder) {
	if name == "br" {
		p.br.Put(c)
	} else {
		p.gzip.Put(c)
	}
}

// zerosSize is the number of zero bytes in a member of a gzip bomb.
const zerosSize = 16 << 20

// gzipZeros returns a gzip member of zerosSize zero bytes, a thousandth as long.
func (p *coders) gzipZeros() []byte {
	p.once.Do(func() {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		block := make([]byte, 1<<16)
		for range zerosSize / len(block) {
			_, _ = w.Write(block)
		}
		_ = w.Close()
		p.member = out.Bytes()
	})
	return p.member
}

// htmlEscaped returns the encoder of a charset that writes character references
// for letters it lacks.
func htmlEscaped(e encoding.Encoding) *encoding.Encoder {
	return encoding.HTMLEscapeUnsupported(e.NewEncoder())
}
