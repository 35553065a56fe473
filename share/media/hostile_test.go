package media

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/extract/pdftext/pdftest"
)

// readBytes reads a file from memory through blocks, as a scan does.
func readBytes(t testing.TB, rd Reader, name string, body []byte) (Info, *Blocks, error) {
	t.Helper()
	b := NewBlocks(t.Context(), bytes.NewReader(body), int64(len(body)))
	in, err := rd.Read(t.Context(), name, b, int64(len(body)))
	return in, b, err
}

// Hostile PDF documents of a share end within the limits; those that exceed them
// have a Problem.
func TestHostilePDF(t *testing.T) {
	t.Parallel()
	rd := Reader{PDF: pdftest.NewPool(t, pdftext.Config{Memory: 48 << 20, Time: 30 * time.Second})}
	bounded := []string{"text of 200 MB", "string of 200 MB"}
	for _, f := range pdftest.Hostile() {
		in, b, err := readBytes(t, rd, "x.pdf", f.Body)
		if b.Err() != nil {
			t.Errorf("%s: %v", f.Name, b.Err())
		}
		if slices.Contains(bounded, f.Name) && (in.Problem != string(pdftext.MemoryLimit) || err == nil) {
			t.Errorf("%s: problem %q, error %v; want %q", f.Name, in.Problem, err, pdftext.MemoryLimit)
		}
	}
	if in, _, err := readBytes(t, rd, "x.pdf", smallPDF("still read")); err != nil || in.Text != "still read" || in.Problem != "" {
		t.Errorf("a good document after them: text %q, problem %q, %v", in.Text, in.Problem, err)
	}
	if _, _, err := readBytes(t, Reader{}, "x.pdf", smallPDF("x")); err == nil {
		t.Error("a PDF was read without a reader")
	}
}

// ifd is an image file directory: entries of 12 bytes, then the next one's offset.
func ifd(next uint32, entries ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(entries)))
	for _, e := range entries {
		b = append(b, e...)
	}
	return binary.LittleEndian.AppendUint32(b, next)
}

// entry is one entry of a directory.
func entry(tag, kind uint16, count, value uint32) []byte {
	b := binary.LittleEndian.AppendUint16(nil, tag)
	b = binary.LittleEndian.AppendUint16(b, kind)
	b = binary.LittleEndian.AppendUint32(b, count)
	return binary.LittleEndian.AppendUint32(b, value)
}

func tiff(parts ...[]byte) []byte {
	return append([]byte("II*\x00\x08\x00\x00\x00"), bytes.Join(parts, nil)...)
}

// exifFile is a JPEG file without pixels.
func exifFile(block []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(block)+8))
	return append(append(append(b, "Exif\x00\x00"...), block...), 0xff, 0xd9)
}

// loops are Exif blocks in which directories, pointers and counts lead back or far
// away.
var loops = []struct {
	name string
	tiff []byte
}{
	{"directories that follow each other", tiff(ifd(14), ifd(8))},
	{"directory that follows itself", tiff(ifd(8))},
	{"three directories in a ring", tiff(ifd(14), ifd(20), ifd(8))},
	{"Exif pointer to its own directory", tiff(ifd(0, entry(0x8769, 4, 1, 8)))},
	{"Exif and GPS pointers to each other", tiff(ifd(0, entry(0x8769, 4, 1, 26)), ifd(0, entry(0x8825, 4, 1, 8)))},
	{"directories below themselves, many times", tiff(ifd(8, entry(0x14a, 4, 1, 8), entry(0x8769, 4, 1, 8), entry(0x8825, 4, 1, 8), entry(0xa005, 4, 1, 8)))},
	{"65535 entries", tiff([]byte{0xff, 0xff})},
	{"value of 4 GB", tiff(ifd(0, entry(0x10e, 2, 0xffffffff, 8)))},
	{"4 billion numbers", tiff(ifd(0, entry(0x132, 5, 0x3fffffff, 8)))},
	{"value behind the end", tiff(ifd(0, entry(0x13b, 2, 100, 0xfffffff0)))},
	{"offset behind the end", []byte("II*\x00\xff\xff\xff\xff")},
	{"every entry a big value", tiff(ifd(8, slices.Repeat([][]byte{entry(0x10e, 2, 60000, 8)}, 5000)...))},
}

func TestExif(t *testing.T) {
	t.Parallel()
	text := "A lake\x00Somebody\x002019:05:04 03:02:01\x00"
	at := uint32(8 + 2 + 3*12 + 4)
	good := tiff(ifd(0, entry(0x10e, 2, 7, at), entry(0x13b, 2, 9, at+7), entry(0x132, 2, 20, at+16)), []byte(text))
	in, _, err := readBytes(t, Reader{}, "x.jpg", exifFile(good))
	if err != nil || in.Title != "A lake" || in.Artist != "Somebody" || in.Year != 2019 {
		t.Errorf("title %q, artist %q, year %d, %v; want A lake, Somebody, 2019", in.Title, in.Artist, in.Year, err)
	}
	for _, x := range loops {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _, _ = readBytes(t, Reader{}, "x.jpg", exifFile(x.tiff))
			}()
			select {
			case <-done:
			case <-time.After(time.Minute): // an endless loop could not be ended otherwise
				t.Error("no end")
			}
		})
	}
}

// packed is a zip archive of files of one name each, in order.
func packed(t testing.TB, names []string, body func(i int) io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i, name := range names {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, body(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func repeat(s string, n int) func(int) io.Reader {
	return func(int) io.Reader { return strings.NewReader(strings.Repeat(s, n)) }
}

// Office documents that unpack to much more than they are, nest without end or
// have their part many times are read to a bound, and their first words are kept.
func TestHostileOffice(t *testing.T) {
	t.Parallel()
	word := []string{"word/document.xml"}
	tests := []struct {
		name string
		body []byte
		want string // beginning of the text
	}{
		{"64 MB of white space", packed(t, word, repeat(" ", 64<<20)), ""},
		{"64 MB of words", packed(t, word, repeat("<p>word</p>", 6<<20)), "word word"},
		{"elements in each other", packed(t, word, repeat("<a>", 1<<20)), ""},
		{"words, then elements in each other", packed(t, word, func(int) io.Reader { return strings.NewReader("<d><p>word</p>" + strings.Repeat("<a>", 1<<20)) }), "word"},
		{"entities of entities", packed(t, word, func(int) io.Reader {
			return strings.NewReader(`<!DOCTYPE d [<!ENTITY a "` + strings.Repeat("x", 1000) + `"><!ENTITY b "` + strings.Repeat("&a;", 1000) + `">]><d><p>word</p>` + strings.Repeat("&b;", 1000) + "</d>")
		}), "word"},
		{"a million attributes", packed(t, word, func(int) io.Reader {
			return strings.NewReader("<d" + strings.Repeat(" a='b'", 600_000) + "><p>word</p></d>")
		}), "word"},
		{"the part 2,000 times", packed(t, slices.Repeat(word, 2000), func(i int) io.Reader {
			if i == 0 {
				return strings.NewReader("<p>first</p>")
			}
			return strings.NewReader(strings.Repeat(" ", 1<<16))
		}), "first"},
	}
	for _, tt := range tests {
		in, b, err := readBytes(t, Reader{}, "x.docx", tt.body)
		if !strings.HasPrefix(in.Text, tt.want) || len(in.Text) > MaxText || in.Problem != "" {
			t.Errorf("%s: text %.40q of %d bytes, problem %q, %v; want it to begin with %q", tt.name, in.Text, len(in.Text), in.Problem, err, tt.want)
		}
		if n := b.BytesRead(); n > MaxBlocks*BlockSize {
			t.Errorf("%s: %d bytes read", tt.name, n)
		}
	}
}

// A panic of a parser is a problem of its file.
func TestParserPanic(t *testing.T) {
	t.Parallel()
	in, err := readGuarded("odd", func(_ io.ReaderAt, _ int64, in *Info) error {
		in.Title = "read before"
		panic("index out of range")
	}, bytes.NewReader(nil), 0)
	if in.Problem != ParserFailed || in.Title != "read before" || err == nil {
		t.Errorf("problem %q, title %q, %v; want %q, read before, an error", in.Problem, in.Title, err, ParserFailed)
	}
}

// A parser that reads the same blocks without end stops with its context.
func TestEndOfReading(t *testing.T) {
	t.Parallel()
	b := NewBlocks(t.Context(), bytes.NewReader(make([]byte, 100)), 100)
	ended, cancel := context.WithCancel(t.Context())
	c := NewBlocks(ended, bytes.NewReader(make([]byte, 100)), 100)
	p := make([]byte, 10)
	for _, blocks := range []*Blocks{b, c} {
		if _, err := blocks.ReadAt(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if _, err := b.ReadAt(p, 0); err != nil {
		t.Errorf("a block that was read before: %v", err)
	}
	if _, err := c.ReadAt(p, 0); !errors.Is(err, ended.Err()) || c.Err() == nil {
		t.Errorf("after the end of its context: %v, want %v", err, ended.Err())
	}
}

// A tag that ends anywhere is an error or a shorter text, never a panic.
func TestTruncatedID3(t *testing.T) {
	t.Parallel()
	whole := "ID3\x04\x00\x00\x00\x00\x00\x20TIT2\x00\x00\x00\x06\x00\x00\x03Music" + "TPE1\x00\x00\x00\x06\x00\x00\x01\xff\xfea\x00b"
	for n := range len(whole) + 1 {
		in, err := Reader{}.Read(t.Context(), "x.mp3", strings.NewReader(whole[:n]), int64(n))
		if in.Problem != "" {
			t.Errorf("first %d bytes: %s, %v", n, in.Problem, err)
		}
	}
}
