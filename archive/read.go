package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Record is one record of a WARC file: its header, and its block to be read.
type Record struct {
	Version string
	Header  textproto.MIMEHeader
	Length  int64
	Block   io.Reader
}

// Reader reads the records of a WARC file, compressed record by record or not
// at all, of this package or any other.
type Reader struct {
	in    *countingReader
	gz    *gzip.Reader
	text  *bufio.Reader
	block *io.LimitedReader
}

// countingReader knows how many bytes the layers above have taken.
type countingReader struct {
	r *bufio.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadByte lets gzip take no byte more than its member.
func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// NewReader reads records from r.
func NewReader(r io.Reader) *Reader { return newReader(r) }

func newReader(r io.Reader) *Reader {
	return &Reader{in: &countingReader{r: bufio.NewReaderSize(r, 64<<10)}}
}

// Bounds of a record's header.
const (
	maxHeaderLines = 200
	maxHeaderLine  = 64 << 10
)

var errSyntax = errors.New("not a WARC record")

// Next returns the next record, or io.EOF. The block of the one before is
// skipped. Damage is an error, never a panic; reading cannot go on after it.
func (r *Reader) Next() (*Record, error) {
	if err := r.skip(); err != nil {
		return nil, err
	}
	if err := r.member(); err != nil {
		return nil, err
	}
	rec := &Record{Header: textproto.MIMEHeader{}}
	line, err := r.line()
	for err == nil && line == "" { // blank lines between records of others
		line, err = r.line()
	}
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(line, "WARC/") {
		return nil, fmt.Errorf("%w: begins with %.20q", errSyntax, line)
	}
	rec.Version = line
	for n := 0; ; n++ {
		line, err := r.line()
		if err != nil {
			return nil, unexpected(err)
		}
		if line == "" {
			break
		}
		k, v, ok := strings.Cut(line, ":")
		if !ok || n > maxHeaderLines {
			return nil, fmt.Errorf("%w: header line %.40q", errSyntax, line)
		}
		rec.Header.Add(strings.TrimSpace(k), strings.TrimSpace(v))
	}
	rec.Length, err = strconv.ParseInt(rec.Header.Get("Content-Length"), 10, 64)
	if err != nil || rec.Length < 0 {
		return nil, fmt.Errorf("%w: Content-Length %q", errSyntax, rec.Header.Get("Content-Length"))
	}
	r.block = &io.LimitedReader{R: r.text, N: rec.Length}
	rec.Block = r.block
	return rec, nil
}

// member opens the next gzip member, or notices that the file is not packed.
func (r *Reader) member() error {
	head, err := r.in.r.Peek(2)
	if len(head) < 2 {
		if err == nil || errors.Is(err, io.EOF) {
			if len(head) == 0 && (r.text == nil || r.text.Buffered() == 0) {
				return io.EOF
			}
		}
	}
	if len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
		if r.gz == nil && r.text == nil {
			r.text = bufio.NewReader(r.in)
		}
		if r.gz != nil {
			return fmt.Errorf("%w: no gzip member", errSyntax)
		}
		return nil
	}
	if r.gz == nil {
		if r.gz, err = gzip.NewReader(r.in); err != nil {
			return unexpected(err)
		}
	} else if err = r.gz.Reset(r.in); err != nil {
		return unexpected(err)
	}
	r.gz.Multistream(false)
	if r.text == nil {
		r.text = bufio.NewReader(r.gz)
	} else {
		r.text.Reset(r.gz)
	}
	return nil
}

// skip reads over the rest of the present record. In a packed file that is the
// rest of the member, whose checksum is thereby checked.
func (r *Reader) skip() error {
	if r.block == nil {
		return nil
	}
	n, err := io.Copy(io.Discard, r.block)
	_ = n
	if err == nil && r.block.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	r.block = nil
	if err != nil {
		return unexpected(err)
	}
	if r.gz != nil {
		_, err = io.Copy(io.Discard, r.text)
	} else {
		_, err = io.CopyN(io.Discard, r.text, 4)
	}
	return unexpected(err)
}

// offset is how many bytes of the file the records read so far take.
func (r *Reader) offset() int64 {
	if r.gz == nil && r.text != nil {
		return r.in.n - int64(r.text.Buffered())
	}
	return r.in.n
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) line() (string, error) {
	var b []byte
	for {
		part, err := r.text.ReadSlice('\n')
		b = append(b, part...)
		if len(b) > maxHeaderLine {
			return "", fmt.Errorf("%w: a header line is longer than %d bytes", errSyntax, maxHeaderLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if len(b) > 0 {
				err = unexpected(err)
			}
			return "", err
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
}

// maxExchange bounds a body read back into memory.
const maxExchange = 256 << 20

// Read returns the exchange at a position of the archive in dir.
func Read(dir string, p Position) (*Exchange, error) {
	if p.File != filepath.Base(p.File) || p.IsZero() {
		return nil, fmt.Errorf("archive: %q is no file of the archive: %w", p.File, fs.ErrNotExist)
	}
	path := filepath.Join(dir, p.File)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(path + openSuffix)
	}
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(p.Offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	rec, err := newReader(f).Next()
	if err != nil {
		return nil, fmt.Errorf("archive %s at %d: %w", p.File, p.Offset, err)
	}
	x, err := rec.Exchange()
	if err != nil {
		return nil, fmt.Errorf("archive %s at %d: %w", p.File, p.Offset, err)
	}
	return x, nil
}

// Exchange reads a response or resource record whole.
func (r *Record) Exchange() (*Exchange, error) {
	x := &Exchange{URL: strings.Trim(r.Header.Get("WARC-Target-URI"), "<>"), IP: r.Header.Get("WARC-IP-Address"), Header: http.Header{}}
	x.Time, _ = time.Parse(time.RFC3339, r.Header.Get("WARC-Date"))
	body := io.LimitReader(r.Block, maxExchange)
	switch r.Header.Get("WARC-Type") {
	case "resource":
		x.Rendered, x.Status = true, http.StatusOK
		x.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	case "response":
		res, err := http.ReadResponse(bufio.NewReader(body), nil)
		if err != nil {
			return nil, unexpected(err)
		}
		defer res.Body.Close()
		x.Status, x.Proto, x.Header, body = res.StatusCode, res.Proto, res.Header, res.Body
	default:
		return nil, fmt.Errorf("a %s record holds no page", r.Header.Get("WARC-Type"))
	}
	var err error
	x.Body, err = io.ReadAll(body)
	return x, err
}
