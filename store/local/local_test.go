package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/storetest"
	"github.com/freshet/freshet/weburl"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{"default": {}, "small table": {Known: 64}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) storetest.Opener {
				dir := filepath.Join(t.TempDir(), "store")
				return func(t *testing.T) store.Store {
					t.Helper()
					s, err := Open(dir, c)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
			})
		})
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	if err := s.Put(context.Background(), "version", []byte("99")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Config{}); !errors.Is(err, store.ErrVersion) {
		t.Errorf("other version: %v", err)
	}
}

// The table of known keys against a map, with removals.
func TestSeen(t *testing.T) {
	t.Parallel()
	s := newSeen(1 << 20)
	r := rand.New(rand.NewPCG(1, 1))
	model := map[weburl.Key]bool{}
	for range 50_000 {
		u, err := weburl.Parse(fmt.Sprintf("http://h%d/%d", r.IntN(5), r.IntN(4000)))
		if err != nil {
			t.Fatal(err)
		}
		k := u.Key()
		if r.IntN(4) == 0 {
			s.remove(k)
			delete(model, k)
			continue
		}
		fresh, maybe := s.add(k)
		if maybe || fresh == model[k] {
			t.Fatalf("%s: fresh %v, maybe %v, known %v", u, fresh, maybe, model[k])
		}
		model[k] = true
	}
	if s.len() != int64(len(model)) {
		t.Errorf("%d keys, want %d", s.len(), len(model))
	}
}

func BenchmarkSeen(b *testing.B) {
	s := newSeen(1 << 26)
	var k weburl.Key
	for i := range b.N {
		k[0], k[8], k[9], k[10], k[11] = byte(i>>20), byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		s.add(k)
	}
}

func BenchmarkAdd(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "store"), Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const batch = 1000
	b.ReportAllocs()
	for i := 0; i < b.N; i += batch {
		found := make([]store.Found, batch)
		for j := range found {
			u, err := weburl.Parse(fmt.Sprintf("http://host%d.example/section/page-%d.html", (i+j)%50, i+j))
			if err != nil {
				b.Fatal(err)
			}
			found[j] = store.Found{URL: u, Order: uint64(i + j + 1)}
		}
		if _, err := s.Add(context.Background(), found); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store {
		s, err := Open(filepath.Join(b.TempDir(), "store"), Config{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	})
}
