package dump

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/freshet/freshet/store"
)

// heap is a target that keeps what it is given.
type heap struct {
	store.Part
	ended bool
}

func (h *heap) Load(_ context.Context, p *store.Part) error {
	h.Hosts, h.Pages, h.Links = append(h.Hosts, p.Hosts...), append(h.Pages, p.Pages...), append(h.Links, p.Links...)
	h.Visits, h.Settings = append(h.Visits, p.Visits...), append(h.Settings, p.Settings...)
	return nil
}

func (h *heap) Loaded(context.Context) error { h.ended = true; return nil }

func example(t testing.TB) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	err = errors.Join(
		w.Load(ctx, &store.Part{Hosts: []store.Host{{Name: "a"}}, Pages: []store.Page{{URL: "http://a/", State: store.OK}}}),
		w.Load(ctx, &store.Part{Links: []store.PageLinks{{}}, Visits: []store.VisitLog{{URL: "http://a/"}}, Settings: []store.Setting{{Name: "x", Value: []byte{0}}}}),
		w.Loaded(ctx),
	)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pack(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A whole file comes back whole; one that was cut off anywhere is an error.
func TestCut(t *testing.T) {
	t.Parallel()
	file := example(t)
	var h heap
	n, err := Restore(context.Background(), bytes.NewReader(file), &h, nil)
	if err != nil || !h.ended || n != (store.Copied{Hosts: 1, Pages: 1, Links: 1, Visits: 1, Settings: 1}) || h.Pages[0].URL != "http://a/" {
		t.Fatalf("%+v, %v", n, err)
	}
	for i := range len(file) - 1 {
		var h heap
		if _, err := Restore(context.Background(), bytes.NewReader(file[:i]), &h, nil); err == nil && h.ended {
			// The checksum of the frame may be cut without loss.
			if i < len(file)-8 {
				t.Errorf("a file of %d of %d bytes was restored", i, len(file))
			}
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"other format":  `{"freshet":99}`,
		"no head":       `{"host":{"n":"a"}}`,
		"wrong count":   `{"freshet":1}` + "\n" + `{"end":{"hosts":3}}`,
		"no end":        `{"freshet":1}` + "\n" + `{"host":{"n":"a"}}`,
		"bad URL":       `{"freshet":1}` + "\n" + `{"page":{"u":"::"}}`,
		"unknown":       `{"freshet":1}` + "\n" + `{"dog":1}`,
		"no name":       `{"freshet":1}` + "\n" + `{"host":{}}`,
		"not even JSON": "hello",
	} {
		var h heap
		if _, err := Restore(context.Background(), bytes.NewReader(pack(t, text)), &h, nil); err == nil || h.ended {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Pages and visits that no store could work on are left out and counted; the rest comes.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"freshet":1}`, `{"host":{"n":"a"}}`, `{"page":{"u":"http://a/good","s":"queued"}}`, `{"page":{"u":"http://a/a/../b","s":"queued"}}`, `{"page":{"u":"::","s":"ok"}}`,
		`{"page":{"u":"http://a/state","s":"lost"}}`, `{"page":{"u":"http://a/old","s":"failed","er":"robots.txt cannot be had"}}`, `{"visit":{"url":"no URL"}}`, `{"visit":{"url":"http://a/good"}}`,
		`{"end":{"hosts":1,"pages":5,"visits":2}}`,
	}
	var h heap
	n, err := Restore(t.Context(), bytes.NewReader(pack(t, strings.Join(lines, "\n"))), &h, nil)
	if want := (store.Copied{Hosts: 1, Pages: 2, Visits: 1, LeftOut: 4}); err != nil || n != want || len(h.Pages) != 2 || len(h.Visits) != 1 {
		t.Fatalf("%+v, %v, want %+v", n, err, want)
	}
	for _, p := range h.Pages {
		if !p.IsNamed() {
			t.Errorf("%s has the key %x", p.URL, p.Key)
		}
	}
	if got := h.Pages[1].Reason; got != store.ReasonRobotsUnavailable {
		t.Errorf("reason %q, want %q", got, store.ReasonRobotsUnavailable)
	}
}

// Whatever a file holds, reading it is an error or a store, never a panic.
func FuzzRestore(f *testing.F) {
	f.Add(example(f))
	f.Add(pack(f, `{"freshet":1}`+"\n"+`{"end":{}}`))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h heap
		n, err := Restore(context.Background(), bytes.NewReader(b), &h, nil)
		if err == nil && int64(len(h.Pages)) != n.Pages {
			t.Errorf("%d pages, told %d", len(h.Pages), n.Pages)
		}
	})
}
