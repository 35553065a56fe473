package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
	if err := r.skipRecord(); err != nil {
		return nil, err
	}
	if err := r.openMember(); err != nil {
		return nil, err
	}
	rec := &Record{Header: textproto.MIMEHeader{}}
	line, err := r.readHeaderLine()
	for err == nil && line == "" { // blank lines between records of others
		line, err = r.readHeaderLine()
	}
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(line, "WARC/") {
		return nil, fmt.Errorf("%w: begins with %.20q", errSyntax, line)
	}
	rec.Version = line
	for n := 0; ; n++ {
		line, err := r.readHeaderLine()
		if err != nil {
			return nil, asUnexpectedEOF(err)
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

// openMember opens the next gzip member, or notices that the file is not packed.
func (r *Reader) openMember() error {
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
			return asUnexpectedEOF(err)
		}
	} else if err = r.gz.Reset(r.in); err != nil {
		return asUnexpectedEOF(err)
	}
	r.gz.Multistream(false)
	if r.text == nil {
		r.text = bufio.NewReader(r.gz)
	} else {
		r.text.Reset(r.gz)
	}
	return nil
}

// skipRecord reads over the rest of the present record. In a packed file that is the
// rest of the member, whose checksum is thereby checked.
func (r *Reader) skipRecord() error {
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
		return asUnexpectedEOF(err)
	}
	if r.gz != nil {
		_, err = io.Copy(io.Discard, r.text)
	} else {
		_, err = io.CopyN(io.Discard, r.text, 4)
	}
	return asUnexpectedEOF(err)
}

// recordOffset is how many bytes of the file the records read so far take.
func (r *Reader) recordOffset() int64 {
	if r.gz == nil && r.text != nil {
		return r.in.n - int64(r.text.Buffered())
	}
	return r.in.n
}

func asUnexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) readHeaderLine() (string, error) {
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
				err = asUnexpectedEOF(err)
			}
			return "", err
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
}

// maxExchange bounds a body read back into memory.
const maxExchange = 256 << 20

// ErrDamaged is the error of a record that cannot be read back as it was written:
// cut off, overwritten, or of a file that holds something else.
var ErrDamaged = errors.New("the record is damaged")

// Passing reports whether reading a body failed for a reason that lies in this
// machine, the network or the caller and not in the file or record: it is tried
// again, while every other error excludes the one body that it is about.
//
// A read error of the disk (EIO) is the file's: bad sectors take single records.
// A disk that fails altogether shows by what is written to it.
func Passing(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var network net.Error
	if errors.As(err, &network) {
		if _, system := network.(syscall.Errno); !system { // which has the methods of a net.Error, too
			return true
		}
	}
	for _, own := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EINTR, syscall.EAGAIN,
		syscall.ESTALE, syscall.ENOTCONN, syscall.ETIMEDOUT, syscall.EHOSTDOWN, // of a file system elsewhere
	} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// Damage names the kind of an error that excludes a body: "missing" where there
// is no such file, "unreadable" where the system refuses to read it, "damaged"
// where it holds something else. It is "" for nil and for errors that pass.
func Damage(err error) string {
	var path *fs.PathError
	switch {
	case err == nil || Passing(err):
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return "missing"
	case errors.As(err, &path):
		return "unreadable"
	}
	return "damaged"
}

// Read returns the exchange at a position of the archive in dir. The error is
// fs.ErrNotExist without the file, ErrDamaged where no whole record lies there.
func Read(dir string, p Position) (*Exchange, error) {
	if p.File != filepath.Base(p.File) || p.IsZero() {
		return nil, fmt.Errorf("archive: %q is no file of the archive: %w", p.File, fs.ErrNotExist)
	}
	path := filepath.Join(dir, p.File)
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = openRegular(path + openSuffix)
	}
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	defer f.Close()
	if p.Offset < 0 {
		return nil, fmt.Errorf("archive %s at %d: %w", p.File, p.Offset, ErrDamaged)
	}
	if _, err := f.Seek(p.Offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	x, err := ReadRecord(f)
	if err != nil {
		return nil, fmt.Errorf("archive %s at %d: %w", p.File, p.Offset, err)
	}
	return x, nil
}

// Has reports whether a file lies in the archive in dir.
func Has(dir, file string) bool {
	if file == "" || file != filepath.Base(file) {
		return false
	}
	for _, name := range []string{file, file + openSuffix} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// IsEmpty reports whether the archive in dir has no files.
func IsEmpty(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.warc*"))
	return err == nil && len(files) == 0
}

// openRegular opens a file, and nothing else that may stand in its place: opening a
// named pipe would wait for its writer.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return os.Open(path)
}

// ReadRecord reads the exchange with which r begins, as this package has written
// it, and compares record and body with their checksums. Every error that is not
// r's own is ErrDamaged.
func ReadRecord(r io.Reader) (*Exchange, error) {
	in := &sourceReader{r: r}
	x, err := readExchange(in)
	if in.err != nil {
		return nil, in.err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return x, nil
}

// sourceReader remembers the error of its reader that is not its end.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func readExchange(r io.Reader) (*Exchange, error) {
	in := newReader(r)
	rec, err := in.Next()
	if err != nil {
		return nil, asUnexpectedEOF(err) // a position is never that of a file's end
	}
	x, err := rec.Exchange()
	if err == nil {
		err = in.skipRecord() // which checks the sum of a packed record
	}
	if err != nil {
		return nil, asUnexpectedEOF(err)
	}
	if want := rec.Header.Get("WARC-Payload-Digest"); strings.HasPrefix(want, "sha1:") {
		if got := sha1Digest(x.Body); got != want {
			return nil, fmt.Errorf("the body's digest is %s, not %s", got, want)
		}
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
			return nil, asUnexpectedEOF(err)
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
