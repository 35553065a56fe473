package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Damage in what was synced of a store's log is an error that says so, from the
// first log on; it does not pass for the end of the log, by which all that follows
// would be lost silently. (Pebble tells it from an end by what lies in the blocks of
// 32 KB behind it.) What was being written when the machine stopped may be cut.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	const batches, urls = 30, 50
	for i := range batches {
		var found []store.Found
		for k := range urls {
			u, err := weburl.Parse(fmt.Sprintf("http://h/%d/%d", i, k))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, store.Found{URL: u})
		}
		if _, err := s.Add(context.Background(), found); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	size := func(name string) int64 {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	log := slices.MaxFunc(logs, func(a, b string) int { return cmp.Compare(size(a), size(b)) })
	for _, tt := range []struct {
		name string
		log  string
		do   func(b []byte) []byte
		want bool // an error
	}{
		{"begin", log, func(b []byte) []byte { b[len(b)/10] ^= 0x5a; return b }, true},
		{"middle", log, func(b []byte) []byte { b[len(b)/2] ^= 0x5a; return b }, true},
		{"zeros", log, func(b []byte) []byte { clear(b[len(b)/3 : len(b)/3+4096]); return b }, true},
		{"cut", log, func(b []byte) []byte { return b[:len(b)-100] }, false},
	} {
		whole, err := os.ReadFile(tt.log)
		if err != nil {
			t.Fatal(err)
		}
		damaged := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(damaged, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(damaged, filepath.Base(tt.log)), tt.do(whole), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(damaged, Config{})
		if err == nil {
			st, serr := s.Stats(context.Background())
			if serr != nil || !tt.want && st.URLs < (batches-2)*urls {
				t.Errorf("%s: %d URLs, %v", tt.name, st.URLs, serr)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if (err != nil) != tt.want || err != nil && !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
