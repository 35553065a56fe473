// Package archive keeps the bodies of fetched pages as WARC 1.1 files (ISO
// 28500:2017), one gzip member a record, so that any WARC reader can use them
// and a record is read by one seek.
//
// A file is written under a name that ends in .open and renamed when it is
// full or closed. What a crash leaves behind the last whole record is cut off
// at the next start, before anything else is written.
package archive

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Position says where a record lies. The zero value is no record.
type Position struct {
	File   string `json:"file,omitempty"` // name in the archive's folder
	Offset int64  `json:"offset,omitempty"`
}

// IsZero reports whether p is no record.
func (p Position) IsZero() bool { return p.File == "" }

// Config are the options of a Writer.
type Config struct {
	Dir      string
	Prefix   string // of file names; default "freshet"
	FileSize int64  // default 1 GiB
	Software string // named in warcinfo
	Agent    string // User-Agent, named in warcinfo
}

// Writer appends records. It is safe for concurrent use.
type Writer struct {
	config Config

	mu   sync.Mutex
	f    *os.File
	buf  *bufio.Writer
	name string // without .open
	size int64
	seq  int

	syncing sync.Mutex // before mu
	durable Position   // up to where the last Sync got; guarded by syncing
}

const openSuffix = ".open"

// Open repairs what a crash left in the folder and returns a writer.
func Open(c Config) (*Writer, error) {
	if c.FileSize <= 0 {
		c.FileSize = 1 << 30
	}
	if c.Prefix == "" {
		c.Prefix = "freshet"
	}
	if err := os.MkdirAll(c.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(c.Dir, "*.warc.gz"+openSuffix))
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", c.Dir, err)
	}
	for _, name := range left {
		if err := repair(name); err != nil {
			return nil, fmt.Errorf("archive: repair %s: %w", name, err)
		}
	}
	return &Writer{config: c}, nil
}

// repair cuts a file behind its last whole record and gives it its final name.
func repair(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	whole := int64(0)
	r := newReader(f)
	for {
		if _, err := r.Next(); err != nil {
			break
		}
		if err := r.skip(); err != nil {
			break
		}
		whole = r.offset()
	}
	err = errors.Join(f.Truncate(whole), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if whole == 0 {
		return os.Remove(name)
	}
	return os.Rename(name, strings.TrimSuffix(name, openSuffix))
}

// Exchange is one request and its answer.
type Exchange struct {
	URL      string
	Time     time.Time
	IP       string
	Proto    string // HTTP/1.1
	Status   int
	Header   http.Header
	Body     []byte // without Content-Encoding
	Rendered bool   // the body is the document as a browser built it
	Referer  string
	// Truncated says why the body is not whole: "length", "time" or "".
	Truncated string
}

// Write appends a response record (a resource record where Rendered) and
// returns where it lies. It is durable after the next Sync. Records are
// compressed side by side; only appending them waits for others.
func (w *Writer) Write(x *Exchange) (Position, error) {
	fields := [][2]string{{"WARC-Target-URI", x.URL}, {"WARC-Date", x.Time.UTC().Format("2006-01-02T15:04:05Z")}}
	if x.IP != "" {
		fields = append(fields, [2]string{"WARC-IP-Address", x.IP})
	}
	fields = append(fields, [2]string{"WARC-Payload-Digest", digest(x.Body)})
	if x.Truncated != "" {
		fields = append(fields, [2]string{"WARC-Truncated", x.Truncated})
	}
	kind := "response"
	var head bytes.Buffer
	if x.Rendered {
		kind = "resource"
		fields = append(fields, [2]string{"Content-Type", contentType(x.Header)})
	} else {
		fields = append(fields, [2]string{"Content-Type", "application/http;msgtype=response"})
		writeHead(&head, x)
	}
	m := members.Get().(*member)
	defer members.Put(m)
	if err := m.encode(kind, fields, head.Bytes(), x.Body); err != nil {
		return Position{}, fmt.Errorf("archive: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ready(); err != nil {
		return Position{}, fmt.Errorf("archive: %w", err)
	}
	pos := Position{File: w.name, Offset: w.size}
	if err := w.append(m); err != nil {
		return Position{}, fmt.Errorf("archive %s: %w", w.name, err)
	}
	return pos, nil
}

func contentType(h http.Header) string {
	if ct := h.Get("Content-Type"); ct != "" {
		return ct
	}
	return "application/octet-stream"
}

// writeHead writes the status line and header as of a message whose body is
// not encoded: the transfer's own fields are renamed, as other archives do.
func writeHead(b *bytes.Buffer, x *Exchange) {
	fmt.Fprintf(b, "HTTP/1.1 %d %s\r\n", x.Status, http.StatusText(x.Status))
	keys := make([]string, 0, len(x.Header))
	for k := range x.Header {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		name := k
		switch k {
		case "Content-Encoding", "Transfer-Encoding", "Content-Length":
			name = "X-Archive-Orig-" + k
		}
		for _, v := range x.Header[k] {
			b.WriteString(name + ": " + v + "\r\n")
		}
	}
	fmt.Fprintf(b, "Content-Length: %d\r\n\r\n", len(x.Body))
}

func digest(b []byte) string {
	sum := sha1.Sum(b)
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}

func recordID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	h := hex.EncodeToString(u[:])
	return "<urn:uuid:" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:] + ">"
}

// member is one compressed record.
type member struct {
	gz   *gzip.Writer
	data bytes.Buffer
}

var members = sync.Pool{New: func() any {
	gz, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return &member{gz: gz}
}}

// encode makes a record of a header and a block of two parts.
func (m *member) encode(kind string, fields [][2]string, block ...[]byte) error {
	length := 0
	for _, b := range block {
		length += len(b)
	}
	head := make([]byte, 0, 1024)
	head = append(head, "WARC/1.1\r\nWARC-Type: "+kind+"\r\nWARC-Record-ID: "+recordID()+"\r\n"...)
	for _, f := range fields {
		head = append(head, f[0]+": "+f[1]+"\r\n"...)
	}
	head = append(head, "Content-Length: "+strconv.Itoa(length)+"\r\n\r\n"...)
	m.data.Reset()
	m.gz.Reset(&m.data)
	if _, err := m.gz.Write(head); err != nil {
		return err
	}
	for _, b := range block {
		if _, err := m.gz.Write(b); err != nil {
			return err
		}
	}
	if _, err := m.gz.Write([]byte("\r\n\r\n")); err != nil {
		return err
	}
	return m.gz.Close()
}

// append writes a record. The caller holds mu.
func (w *Writer) append(m *member) error {
	n, err := w.buf.Write(m.data.Bytes())
	w.size += int64(n)
	return err
}

// ready opens a file if there is none, or the present one is full.
func (w *Writer) ready() error {
	if w.f != nil && w.size >= w.config.FileSize {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.f != nil {
		return nil
	}
	for {
		w.seq++
		w.name = fmt.Sprintf("%s-%s-%05d-%d.warc.gz", w.config.Prefix, time.Now().UTC().Format("20060102150405"), w.seq, os.Getpid())
		path := filepath.Join(w.config.Dir, w.name)
		if _, err := os.Lstat(path); err == nil { // a finished file of the same second
			continue
		}
		f, err := os.OpenFile(path+openSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		w.f, w.size, w.buf = f, 0, bufio.NewWriterSize(f, 256<<10)
		break
	}
	info := "software: " + w.config.Software + "\r\nformat: WARC File Format 1.1\r\nconformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"
	if w.config.Agent != "" {
		info += "http-header-user-agent: " + w.config.Agent + "\r\n"
	}
	m := members.Get().(*member)
	defer members.Put(m)
	err := m.encode("warcinfo", [][2]string{
		{"WARC-Date", time.Now().UTC().Format("2006-01-02T15:04:05Z")}, {"WARC-Filename", w.name}, {"Content-Type", "application/warc-fields"},
	}, []byte(info))
	if err != nil {
		return err
	}
	return w.append(m)
}

// finish closes the present file under its final name.
func (w *Writer) finish() error {
	err := errors.Join(w.buf.Flush(), w.f.Sync(), w.f.Close())
	if err == nil {
		path := filepath.Join(w.config.Dir, w.name)
		err = os.Rename(path+openSuffix, path)
	}
	w.f = nil
	return err
}

// Flush makes what was written readable by ReadAt, Sync makes it survive a
// crash of the machine.
func (w *Writer) Flush() error { return w.flush(false) }

// Sync flushes and waits for the disk.
func (w *Writer) Sync() error { return w.flush(true) }

func (w *Writer) flush(sync bool) error {
	f, name, upTo, err := w.written()
	if f == nil || err != nil || !sync {
		return err
	}
	w.syncing.Lock()
	defer w.syncing.Unlock()
	if w.durable.File == name && w.durable.Offset >= upTo {
		return nil // the sync of somebody who waited with us was late enough
	}
	// What others wrote while we waited is synced along, so that they need not.
	if now, as, later, err := w.written(); err != nil {
		return err
	} else if now == f && as == name {
		upTo = later
	}
	// Without mu: others write on meanwhile. A file that was finished in between
	// was synced then.
	if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("archive: %w", err)
	}
	w.durable = Position{File: name, Offset: upTo}
	return nil
}

// written hands what is buffered to the operating system and tells up to where
// the present file then goes; without a file f is nil.
func (w *Writer) written() (f *os.File, name string, upTo int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return nil, "", 0, nil
	}
	if err := w.buf.Flush(); err != nil {
		return nil, "", 0, fmt.Errorf("archive: %w", err)
	}
	return w.f, w.name, w.size, nil
}

// Close finishes the present file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return nil
	}
	return w.finish()
}
