package sensor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/signal"
)

// Files that are written, replaced, moved and removed are told of once.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, rescan := range map[string]time.Duration{"kernel": time.Hour, "rescan too": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write := func(name, body string) {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				// As editors do: written aside, then put in place. A file that is
				// written where it stands may be seen half-way, and told of twice.
				aside := filepath.Join(t.TempDir(), "aside")
				if err := os.WriteFile(aside, []byte(body), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(aside, path); err != nil {
					t.Fatal(err)
				}
			}
			write("index.html", "1")
			write("a/index.html", "1")
			var got collector
			w := &Watch{Root: root, Base: "http://h", Rescan: rescan, To: got.add}
			done := make(chan error, 1)
			go func() { done <- w.Run(t.Context()) }()
			// The first scan has ended when the growth of a file is told of.
			size := 0
			var told []signal.Event
			eventually(t, "the first scan", func() bool {
				if len(told) == 0 {
					size++
					write("grows.txt", strings.Repeat("x", size))
					time.Sleep(3 * settle) // until it has rested
				}
				told = append(told, got.take()...)
				return len(told) > 0 && told[len(told)-1].Size == int64(size)
			})
			for _, e := range told {
				if e.URL != "http://h/grows.txt" {
					t.Errorf("the first scan told %+v", e)
				}
			}
			expect := func(what, event, url string) {
				t.Helper()
				var e []signal.Event
				eventually(t, what, func() bool { e = got.take(); return len(e) > 0 })
				if len(e) != 1 || e[0].Event != event || e[0].URL != url {
					t.Errorf("%s: %+v", what, e)
				}
			}
			write("index.html", "22")
			expect("written", "updated", "http://h/")
			write("a/index.html", "22")
			expect("written below", "updated", "http://h/a/")
			write("b/c/naujienos ąčę.html", "1")
			expect("new in a new folder", "updated", "http://h/b/c/naujienos%20%C4%85%C4%8D%C4%99.html")
			write("b/c/naujienos ąčę.html", "22")
			expect("in a folder made later", "updated", "http://h/b/c/naujienos%20%C4%85%C4%8D%C4%99.html")
			if err := os.RemoveAll(filepath.Join(root, "b")); err != nil {
				t.Fatal(err)
			}
			expect("removed", "deleted", "http://h/b/c/naujienos%20%C4%85%C4%8D%C4%99.html")
		})
	}
}
