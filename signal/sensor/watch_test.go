package sensor

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
			time.Sleep(500 * time.Millisecond)
			expect := func(what, event, url string) {
				t.Helper()
				for range 50 {
					time.Sleep(100 * time.Millisecond)
					if e := got.take(); len(e) > 0 {
						if len(e) != 1 || e[0].Event != event || e[0].URL != url {
							t.Errorf("%s: %+v", what, e)
						}
						return
					}
				}
				t.Errorf("%s: no event", what)
			}
			if e := got.take(); len(e) != 0 {
				t.Errorf("the first scan told %+v", e)
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
