package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func exchange(i int) *Exchange {
	return &Exchange{
		URL: fmt.Sprintf("http://h.example/%d", i), Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Status: 200,
		Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Content-Encoding": {"gzip"}},
		Body:   []byte(strings.Repeat(fmt.Sprintf("<p>žodis %d</p>", i), 50)),
	}
}

func open(t *testing.T, dir string, size int64, how ...Packing) *Writer {
	t.Helper()
	c := Config{Dir: dir, FileSize: size, Software: "test"}
	if len(how) > 0 {
		c.Packing = how[0]
	}
	w, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func write(t *testing.T, w *Writer, n int) []Position {
	t.Helper()
	var out []Position
	for i := range n {
		p, err := w.Write(exchange(i))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// Every record can be read at its position, in open, full and closed files.
func TestReadBack(t *testing.T) {
	t.Parallel()
	for _, how := range []Packing{Fast, Small, Plain} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			size := map[Packing]int64{Fast: 2000, Small: 2000, Plain: 9000}[how]
			w := open(t, dir, size, how)
			pos := write(t, w, 40)
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			check := func(when string) {
				for i, p := range pos {
					x, err := Read(dir, p)
					if err != nil {
						t.Fatalf("%s: %v", when, err)
					}
					if want := exchange(i); x.URL != want.URL || !bytes.Equal(x.Body, want.Body) || x.Status != 200 || !x.Time.Equal(want.Time) || x.Header.Get("Content-Encoding") != "" {
						t.Errorf("%s: record %d is %+v", when, i, x)
					}
				}
			}
			check("while open")
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			check("closed")
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			if len(files) < 3 {
				t.Errorf("only %d files", len(files))
			}
			for _, f := range files {
				if strings.HasSuffix(f, openSuffix) {
					t.Errorf("%s is still open", f)
				}
			}
		})
	}
}

// Writers opened one after the other in the same second do not write over each
// other's files.
func TestReopenedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var pos []Position
	for range 4 {
		w := open(t, dir, 0)
		pos = append(pos, write(t, w, 1)...)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range pos {
		if _, err := Read(dir, p); err != nil {
			t.Errorf("record %d: %v", i, err)
		}
		for _, q := range pos[:i] {
			if p == q {
				t.Errorf("two records at %+v", p)
			}
		}
	}
}

// unfinished returns the records of a file that is not closed, and its bytes.
func unfinished(t *testing.T, how Packing) (pos []Position, whole []byte) {
	t.Helper()
	dir := t.TempDir()
	w := open(t, dir, 0, how)
	pos = write(t, w, 6)
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, pos[0].File+openSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return pos, whole
}

// A file cut at any byte loses only the records behind the cut.
func TestRepair(t *testing.T) {
	t.Parallel()
	for _, how := range []Packing{Fast, Small, Plain} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			pos, whole := unfinished(t, how)
			for cut := 0; cut <= len(whole); cut += 37 {
				dir := t.TempDir()
				name := filepath.Join(dir, pos[0].File+openSuffix)
				if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
					t.Fatal(err)
				}
				if err := open(t, dir, 0, how).Close(); err != nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				for i, p := range pos {
					end := int64(len(whole))
					if i+1 < len(pos) {
						end = pos[i+1].Offset
					}
					_, err := Read(dir, p)
					if kept := err == nil; kept != (end <= int64(cut)) {
						t.Errorf("cut at %d: record %d (ends at %d) kept: %v, %v", cut, i, end, kept, err)
					}
				}
			}
		})
	}
}

// A file that is damaged in its middle keeps all other records, in their places, and
// the damage is told of, unless it cannot be told from a record that was being written.
func TestRepairKeepsWhatIsBehindDamage(t *testing.T) {
	t.Parallel()
	for _, how := range []Packing{Fast, Small, Plain} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			pos, whole := unfinished(t, how)
			for hit := range pos {
				b := bytes.Clone(whole[:len(whole)-3]) // the last record is not whole
				at := pos[hit].Offset
				copy(b[at:], "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
				dir := t.TempDir()
				name := filepath.Join(dir, pos[0].File+openSuffix)
				if err := os.WriteFile(name, b, 0o600); err != nil {
					t.Fatal(err)
				}
				again := open(t, dir, 0, how)
				for i, p := range pos[:len(pos)-1] {
					if _, err := Read(dir, p); (err == nil) != (i != hit) {
						t.Errorf("damage in record %d: record %d: %v", hit, i, err)
					}
				}
				if told := again.Mended(); (len(told) == 1) != (hit < len(pos)-2) {
					t.Errorf("damage in record %d: told %q", hit, told)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestRendered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := open(t, dir, 0)
	x := exchange(1)
	x.Rendered = true
	p, err := w.Write(x)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir, p)
	if err != nil || !got.Rendered || !bytes.Equal(got.Body, x.Body) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	for _, p := range []Position{{}, {File: "../x"}, {File: "none.warc.gz"}} {
		if _, err := Read(t.TempDir(), p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// Files of others: not packed, lower-case names, a continuation between records.
func TestForeignFile(t *testing.T) {
	t.Parallel()
	text := "WARC/1.0\r\nwarc-type: warcinfo\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n" +
		"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <http://x/>\r\nContent-Length: 38\r\n\r\nHTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n"
	text = strings.Replace(text, "Content-Length: 38", fmt.Sprintf("Content-Length: %d", len("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi")), 1)
	r := NewReader(strings.NewReader(text))
	if rec, err := r.Next(); err != nil || rec.Header.Get("WARC-Type") != "warcinfo" {
		t.Fatalf("%+v, %v", rec, err)
	}
	rec, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if x, err := rec.Exchange(); err != nil || x.URL != "http://x/" || string(x.Body) != "hi" {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func FuzzReader(f *testing.F) {
	dir := f.TempDir()
	w, err := Open(Config{Dir: dir})
	if err != nil {
		f.Fatal(err)
	}
	p, err := w.Write(exchange(1))
	if err != nil {
		f.Fatal(err)
	}
	w.Close()
	b, err := os.ReadFile(filepath.Join(dir, p.File))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("WARC/1.1\r\nContent-Length: 999999999999\r\n\r\n"))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		for {
			rec, err := r.Next()
			if err != nil {
				return
			}
			_, _ = rec.Exchange()
		}
	})
}

func TestUnknownPacking(t *testing.T) {
	t.Parallel()
	if _, err := Open(Config{Dir: t.TempDir(), Packing: "zip"}); err == nil || !strings.Contains(err.Error(), `"zip"`) {
		t.Error(err)
	}
}

func BenchmarkWrite(b *testing.B) {
	w, err := Open(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	x := exchange(1)
	x.Body = bytes.Repeat([]byte("some text of a page of about twelve kilobytes "), 260)
	b.SetBytes(int64(len(x.Body)))
	for range b.N {
		if _, err := w.Write(x); err != nil {
			b.Fatal(err)
		}
	}
}
