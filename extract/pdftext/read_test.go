package pdftext_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/extract/pdftext/pdftest"
)

var limits = pdftext.Limits{Pages: 50, Text: 1 << 20, Links: 100_000}

// paper is a document of two pages with title, author and two links.
func paper(t testing.TB, password string) []byte {
	t.Helper()
	d := fpdf.New("P", "mm", "A4", "")
	d.SetTitle("Žąsys ir ežeras", true)
	d.SetAuthor("A. Author", true)
	if password != "" {
		d.SetProtection(0, password, "owner")
	}
	d.SetFont("Helvetica", "", 12)
	d.AddPage()
	d.Write(6, "The first page is about rivers.")
	d.LinkString(10, 10, 50, 8, "/annex.html")
	d.AddPage()
	d.Write(6, "The second page is about snow.")
	d.LinkString(10, 10, 50, 8, "https://other.example/")
	var b bytes.Buffer
	if err := d.Output(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t testing.TB, p *pdftext.Pool, body []byte, l pdftext.Limits) (pdftext.Document, error) {
	t.Helper()
	return p.Read(t.Context(), bytes.NewReader(body), int64(len(body)), l)
}

func TestRead(t *testing.T) {
	t.Parallel()
	p := pdftest.NewPool(t, pdftext.Config{})
	body := paper(t, "")
	first, second := "The first page is about rivers.", "The second page is about snow."
	links := []string{"/annex.html", "https://other.example/"}
	tests := []struct {
		name   string
		limits pdftext.Limits
		text   string
		links  []string
	}{
		{"all", limits, first + " " + second, links},
		{"one page", pdftext.Limits{Pages: 1, Text: 100, Links: 9}, first, links[:1]},
		{"nine bytes", pdftext.Limits{Pages: 9, Text: 9, Links: 9}, "The first", links[:1]},
		{"one link", pdftext.Limits{Pages: 9, Text: 1000, Links: 1}, first + " " + second, links[:1]},
		{"nothing", pdftext.Limits{}, "", nil},
	}
	for _, tt := range tests {
		d, err := read(t, p, body, tt.limits)
		if err != nil || d.Title != "Žąsys ir ežeras" || d.Author != "A. Author" || d.Pages != 2 {
			t.Errorf("%s: title %q, author %q, %d pages, %v", tt.name, d.Title, d.Author, d.Pages, err)
		}
		if got := strings.Join(strings.Fields(d.Text), " "); got != tt.text || !slices.Equal(d.Links, tt.links) {
			t.Errorf("%s: text %q, links %q; want %q, %q", tt.name, got, d.Links, tt.text, tt.links)
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	body := paper(t, "")
	tests := []struct {
		name   string
		body   []byte
		config pdftext.Config
		want   pdftext.Reason
	}{
		{"password", paper(t, "secret"), pdftext.Config{}, pdftext.Encrypted},
		{"no PDF", []byte("no document"), pdftext.Config{}, pdftext.Damaged},
		{"empty", nil, pdftext.Config{}, pdftext.Damaged},
		{"no pages", []byte("%PDF-1.4\n1 0 obj\n<</Type/Catalog>>\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF"), pdftext.Config{}, pdftext.Damaged},
		{"memory", pdftest.Bomb(100 << 20), pdftext.Config{Memory: 48 << 20}, pdftext.MemoryLimit},
		{"time", pdftest.Bomb(2 << 20), pdftext.Config{Time: time.Millisecond}, pdftext.TimeLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := pdftest.NewPool(t, tt.config)
			_, err := read(t, p, tt.body, limits)
			var bad *pdftext.Error
			if !errors.As(err, &bad) || bad.Reason != tt.want {
				t.Errorf("error %v, want reason %q", err, tt.want)
			}
			if tt.want == pdftext.TimeLimit {
				return
			}
			if d, err := read(t, p, body, limits); err != nil || d.Pages != 2 {
				t.Errorf("the next document has %d pages, %v; want 2", d.Pages, err)
			}
		})
	}
}

// hostileMemory is what a process may take that reads all hostile documents one
// after the other with 64 MiB for each: itself, the module, and one sandbox.
const hostileMemory = 1200 << 20

// A process of its own reads every hostile document, so that what they do to it
// can be seen from outside.
func TestHostile(t *testing.T) {
	if os.Getenv("FRESHET_TEST_HOSTILE") != "" {
		readHostile(t)
		return
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHostile$")
	c.Env = append(os.Environ(), "FRESHET_TEST_HOSTILE=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range pdftest.Hostile() {
		if !strings.Contains(string(out), "read: "+f.Name+"\n") {
			t.Errorf("%s was not read", f.Name)
		}
	}
	for line := range strings.Lines(string(out)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 && kb<<10 > hostileMemory {
			t.Errorf("%d kB of memory, want at most %d", kb, hostileMemory>>10)
		}
	}
}

func readHostile(t *testing.T) {
	p := pdftest.NewPool(t, pdftext.Config{Memory: 64 << 20, Time: 10 * time.Second})
	good := paper(t, "")
	for _, f := range pdftest.Hostile() {
		d, err := read(t, p, f.Body, limits)
		var bad *pdftext.Error
		if err != nil && !errors.As(err, &bad) {
			t.Errorf("%s: %v", f.Name, err)
		}
		if len(d.Text) > limits.Text || len(d.Links) > limits.Links {
			t.Errorf("%s: %d bytes of text, %d links", f.Name, len(d.Text), len(d.Links))
		}
		if d, err := read(t, p, good, limits); err != nil || d.Pages != 2 {
			t.Errorf("after %s a good document has %d pages, %v; want 2", f.Name, d.Pages, err)
		}
		fmt.Println("read: " + f.Name)
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		fmt.Printf("%s", status)
	}
}

// readerFunc is a document whose reading calls a function.
type readerFunc func(b []byte, at int64) (int, error)

func (f readerFunc) ReadAt(b []byte, at int64) (int, error) { return f(b, at) }

// A cancelled context ends a document in the middle, and says nothing of it.
func TestCancel(t *testing.T) {
	t.Parallel()
	p := pdftest.NewPool(t, pdftext.Config{Instances: 1})
	body := pdftest.Bomb(4 << 20)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the process ends")
	_, err := p.Read(ctx, readerFunc(func(b []byte, at int64) (int, error) {
		cancel(cause)
		return bytes.NewReader(body).ReadAt(b, at)
	}), int64(len(body)), limits)
	if !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
	if d, err := read(t, p, paper(t, ""), limits); err != nil || d.Pages != 2 {
		t.Errorf("the next document has %d pages, %v; want 2", d.Pages, err)
	}
}

// An error of the file is returned as it is: the document is not to blame.
func TestFileError(t *testing.T) {
	t.Parallel()
	p := pdftest.NewPool(t, pdftext.Config{})
	lost := errors.New("connection lost")
	body := paper(t, "")
	for _, after := range []int32{0, 1, 2} {
		var reads atomic.Int32
		_, err := p.Read(t.Context(), readerFunc(func(b []byte, at int64) (int, error) {
			if reads.Add(1) > after {
				return 0, lost
			}
			return bytes.NewReader(body).ReadAt(b, at)
		}), int64(len(body)), limits)
		if !errors.Is(err, lost) {
			t.Errorf("after %d reads: error %v, want %v", after, err, lost)
		}
	}
}

// No more documents are read at the same time than there are instances.
func TestInstances(t *testing.T) {
	t.Parallel()
	p := pdftest.NewPool(t, pdftext.Config{Instances: 2})
	body := paper(t, "")
	var atWork, highest atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			in := false
			d, err := p.Read(t.Context(), readerFunc(func(b []byte, at int64) (int, error) {
				if !in {
					in = true
					if n := atWork.Add(1); n > highest.Load() {
						highest.Store(n)
					}
				}
				return bytes.NewReader(body).ReadAt(b, at)
			}), int64(len(body)), pdftext.Limits{Pages: 2, Text: 1000})
			atWork.Add(-1)
			if err != nil || d.Pages != 2 {
				t.Errorf("%d pages, %v", d.Pages, err)
			}
		})
	}
	wg.Wait()
	if n := highest.Load(); n > 2 {
		t.Errorf("%d documents at the same time, want at most 2", n)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	p := pdftext.NewPool(pdftext.Config{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, p, paper(t, ""), limits); !errors.Is(err, pdftext.ErrClosed) {
		t.Errorf("error %v, want %v", err, pdftext.ErrClosed)
	}
}

// Whatever the bytes, reading ends within the limits and without an error of the
// sandbox's surroundings.
func FuzzRead(f *testing.F) {
	f.Add(paper(f, ""))
	for _, h := range pdftest.Hostile() {
		if len(h.Body) < 10_000 {
			f.Add(h.Body)
		}
	}
	p := pdftest.NewPool(f, pdftext.Config{Memory: 64 << 20, Time: 5 * time.Second})
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := read(t, p, b, pdftext.Limits{Pages: 5, Text: 10_000, Links: 100})
		var bad *pdftext.Error
		if err != nil && !errors.As(err, &bad) {
			t.Error(err)
		}
		if len(d.Text) > 10_000 || len(d.Links) > 100 {
			t.Errorf("%d bytes of text, %d links", len(d.Text), len(d.Links))
		}
	})
}

// BenchmarkRead reads the documents that PDFS names, separated by colons.
func BenchmarkRead(b *testing.B) {
	p := pdftest.NewPool(b, pdftext.Config{})
	list := [][]byte{paper(b, "")}
	if names := os.Getenv("PDFS"); names != "" {
		list = nil
		for name := range strings.SplitSeq(names, ":") {
			body, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			list = append(list, body)
		}
	}
	for i, body := range list {
		b.Run(strconv.Itoa(i), func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Read(b.Context(), io.NewSectionReader(bytes.NewReader(body), 0, int64(len(body))), int64(len(body)), limits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
