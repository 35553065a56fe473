// Package archive keeps the bodies of fetched pages as WARC 1.1 files (ISO
// 28500:2017), one gzip member a record (or plain), so that any WARC reader can
// use them and a record is read by one seek.
//
// A file is written under a name that ends in .open and renamed when it is
// full or closed. What a crash leaves behind the last whole record is cut off
// at the next start, before anything else is written.
package archive

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/freshet/freshet/archive/member"
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
	Packing  Packing
	Software string // named in warcinfo
	Agent    string // User-Agent, named in warcinfo
}

// Packing says how records are packed.
type Packing string

// The packings. What they cost and save is in docs/benchmarks/core.md.
const (
	Fast  Packing = "fast" // gzip in one pass (package member); the default
	Small Packing = "gzip" // gzip at its usual level: fewer bytes, three to five times the work
	Plain Packing = "none" // .warc
)

// fileSuffix of the names of files.
func (p Packing) fileSuffix() string {
	if p == Plain {
		return ".warc"
	}
	return ".warc.gz"
}

// IsFile reports whether name is the name of a finished archive file.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".warc.gz") || strings.HasSuffix(name, ".warc")
}

// Writer appends records. It is safe for concurrent use.
type Writer struct {
	config  Config
	mended  []string
	packers sync.Pool // of *packer

	mu   sync.Mutex
	f    *os.File
	buf  *bufio.Writer
	name string // without .open
	size int64
	seq  int
	// failed is why the writer cannot go on: which of the records that were written
	// since the last Sync are on the disk is not known, so that no later Sync may succeed.
	failed error

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
	switch c.Packing {
	case "":
		c.Packing = Fast
	case Fast, Small, Plain:
	default:
		return nil, fmt.Errorf("archive: no packing %q: there are fast, gzip, none", c.Packing)
	}
	left, err := filepath.Glob(filepath.Join(c.Dir, "*"+openSuffix))
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", c.Dir, err)
	}
	var mended []string
	for _, name := range left {
		if !IsFile(strings.TrimSuffix(name, openSuffix)) {
			continue
		}
		damage, err := repairFile(name)
		mended = append(mended, damage...)
		if err != nil && Passing(err) {
			return nil, fmt.Errorf("archive: repair %s: %w", name, err)
		}
		if err != nil { // it is no file that this process could write: what can be read of it stays readable
			mended = append(mended, fmt.Sprintf("%s: left as it is: %v", filepath.Base(name), err))
		}
	}
	return &Writer{config: c, mended: mended}, nil
}

// Mended tells what Open found damaged in files that a crash left behind, but for
// records that were being written.
func (w *Writer) Mended() []string { return w.mended }

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
	fields = append(fields, [2]string{"WARC-Payload-Digest", sha1Digest(x.Body)})
	if x.Truncated != "" {
		fields = append(fields, [2]string{"WARC-Truncated", x.Truncated})
	}
	kind := "response"
	var head []byte
	if x.Rendered {
		kind = "resource"
		fields = append(fields, [2]string{"Content-Type", contentType(x.Header)})
	} else {
		fields = append(fields, [2]string{"Content-Type", "application/http;msgtype=response"})
		head = appendHead(make([]byte, 0, 1024), x)
	}
	m := w.idlePacker()
	defer w.packers.Put(m)
	if err := m.encodeRecord(kind, fields, head, x.Body); err != nil {
		return Position{}, fmt.Errorf("archive: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ensureFile(); err != nil {
		return Position{}, fmt.Errorf("archive: %w", err)
	}
	pos := Position{File: w.name, Offset: w.size}
	if err := w.appendRecord(m); err != nil {
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

// appendHead appends the status line and header as of a message whose body is
// not encoded: the transfer's own fields are renamed, as other archives do.
func appendHead(b []byte, x *Exchange) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(x.Status), 10)
	b = append(append(append(b, ' '), http.StatusText(x.Status)...), "\r\n"...)
	keys := make([]string, 0, 32)
	for k := range x.Header {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		for _, v := range x.Header[k] {
			switch k {
			case "Content-Encoding", "Transfer-Encoding", "Content-Length":
				b = append(b, "X-Archive-Orig-"...)
			}
			b = append(append(append(append(b, k...), ": "...), v...), "\r\n"...)
		}
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(x.Body)), 10)
	return append(b, "\r\n\r\n"...)
}

func sha1Digest(b []byte) string {
	sum := sha1.Sum(b)
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}

// appendID appends a random UUID (RFC 9562, version 4). It need not be secret.
func appendID(b []byte) []byte {
	var u [16]byte
	binary.LittleEndian.PutUint64(u[:], rand.Uint64())
	binary.LittleEndian.PutUint64(u[8:], rand.Uint64())
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	b = append(b, "<urn:uuid:"...)
	for i, c := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(b, '>')
}

const hexDigits = "0123456789abcdef"

// packer makes one record after the other.
type packer struct {
	packing Packing
	plain   []byte         // the record
	packed  []byte         // and what is written of it
	fast    member.Encoder // of Fast
	small   *gzip.Writer   // of Small
}

// idlePacker returns one that nobody uses; it goes back to packers.
func (w *Writer) idlePacker() *packer {
	if p, ok := w.packers.Get().(*packer); ok {
		return p
	}
	return &packer{packing: w.config.Packing}
}

// roomKept is how much room for a record is kept for the next.
const roomKept = 1 << 20

// encodeRecord makes a record of a header and a block of parts.
func (p *packer) encodeRecord(kind string, fields [][2]string, block ...[]byte) error {
	length := 0
	for _, b := range block {
		length += len(b)
	}
	if cap(p.plain) > roomKept || cap(p.packed) > roomKept {
		p.plain, p.packed = nil, nil
	}
	b := append(p.plain[:0], "WARC/1.1\r\nWARC-Type: "...)
	b = append(b, kind...)
	b = append(b, "\r\nWARC-Record-ID: "...)
	b = appendID(b)
	b = append(b, "\r\n"...)
	for _, f := range fields {
		b = append(append(append(append(b, f[0]...), ": "...), f[1]...), "\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	b = append(b, "\r\n\r\n"...)
	for _, part := range block {
		b = append(b, part...)
	}
	p.plain = append(b, "\r\n\r\n"...)
	return p.packRecord()
}

// packRecord packs the record.
func (p *packer) packRecord() error {
	switch p.packing {
	case Plain:
		p.packed, p.plain = p.plain, p.packed
		return nil
	case Fast:
		p.packed = p.fast.Append(p.packed[:0], p.plain)
		return nil
	}
	out := bytes.NewBuffer(p.packed[:0])
	if p.small == nil {
		p.small = gzip.NewWriter(out)
	} else {
		p.small.Reset(out)
	}
	_, err := p.small.Write(p.plain)
	err = errors.Join(err, p.small.Close())
	p.packed = out.Bytes()
	return err
}

// appendRecord writes a record. The caller holds mu.
func (w *Writer) appendRecord(m *packer) error {
	n, err := w.buf.Write(m.packed)
	w.size += int64(n)
	if err != nil {
		return w.keepError(err)
	}
	return nil
}

// ensureFile opens a file if there is none, or the present one is full.
func (w *Writer) ensureFile() error {
	if w.failed == nil && w.f != nil && w.size >= w.config.FileSize {
		if err := w.finishFile(); err != nil {
			return err
		}
	}
	if w.failed != nil {
		return w.failed
	}
	if w.f != nil {
		return nil
	}
	for {
		w.seq++
		w.name = fmt.Sprintf("%s-%s-%05d-%d%s", w.config.Prefix, time.Now().UTC().Format("20060102150405"), w.seq, os.Getpid(), w.config.Packing.fileSuffix())
		path := filepath.Join(w.config.Dir, w.name)
		if _, err := os.Lstat(path); err == nil { // a finished file of the same second
			continue
		}
		f, err := os.OpenFile(path+openSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = syncFolder(w.config.Dir) // or a crash of the machine could leave synced records under no name
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
	m := w.idlePacker()
	defer w.packers.Put(m)
	err := m.encodeRecord("warcinfo", [][2]string{
		{"WARC-Date", time.Now().UTC().Format("2006-01-02T15:04:05Z")}, {"WARC-Filename", w.name}, {"Content-Type", "application/warc-fields"},
	}, []byte(info))
	if err != nil {
		return err
	}
	return w.appendRecord(m)
}

// finishFile closes the present file under its final name.
func (w *Writer) finishFile() error {
	err := errors.Join(w.buf.Flush(), w.f.Sync(), w.f.Close())
	if err == nil {
		path := filepath.Join(w.config.Dir, w.name)
		err = os.Rename(path+openSuffix, path)
	}
	if err == nil {
		err = syncFolder(w.config.Dir)
	}
	w.f = nil
	return w.keepError(err)
}

// keepError keeps the first error after which records may be lost. The caller holds mu.
func (w *Writer) keepError(err error) error {
	if err != nil && w.failed == nil {
		w.failed = fmt.Errorf("%s was not written whole: %w; check the disk and start again", w.name, err)
	}
	return w.failed
}

// syncFolder makes names that were made or changed in a folder survive a crash of
// the machine. File systems that cannot sync folders need not.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Flush makes what was written readable by ReadAt, Sync makes it survive a
// crash of the machine.
func (w *Writer) Flush() error { return w.flushRecords(false) }

// Sync flushes and waits for the disk. Once writing, syncing or finishing a file
// has failed, every Sync fails: all who shared the file learn of it.
func (w *Writer) Sync() error { return w.flushRecords(true) }

func (w *Writer) flushRecords(sync bool) error {
	f, name, upTo, err := w.flushBuffered()
	if f == nil || err != nil || !sync {
		return err
	}
	w.syncing.Lock()
	defer w.syncing.Unlock()
	if w.durable.File == name && w.durable.Offset >= upTo {
		return nil // the sync of somebody who waited with us was late enough
	}
	// What others wrote while we waited is synced along, so that they need not.
	if now, as, later, err := w.flushBuffered(); err != nil {
		return err
	} else if now == f && as == name {
		upTo = later
	}
	// Without mu: others write on meanwhile. A file that was finished in between
	// was synced then.
	err = f.Sync()
	w.mu.Lock()
	if err != nil && !errors.Is(err, os.ErrClosed) {
		_ = w.keepError(err)
	}
	err = w.failed
	w.mu.Unlock()
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	w.durable = Position{File: name, Offset: upTo}
	return nil
}

// flushBuffered hands what is buffered to the operating system and tells up to where
// the present file then goes; without a file f is nil.
func (w *Writer) flushBuffered() (f *os.File, name string, upTo int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return nil, "", 0, fmt.Errorf("archive: %w", w.failed)
	}
	if w.f == nil {
		return nil, "", 0, nil
	}
	if err := w.buf.Flush(); err != nil {
		return nil, "", 0, fmt.Errorf("archive: %w", w.keepError(err))
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
	return w.finishFile()
}
