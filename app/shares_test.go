package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
)

func writeAll(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func playURL(address, host, path string) string {
	return address + "/play?" + url.Values{"host": {host}, "path": {path}}.Encode()
}

// Only audio and video of the configured shares are played, whole or in ranges, and
// never through a link.
func TestPlay(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	root, outside := filepath.Join(top, "share"), filepath.Join(top, "outside")
	writeAll(t, root, map[string]string{
		"song.mp3": "la la la", "a/b/film.mp4": "moving", "a/b/later.mp4": "moved", "salaries.txt": "alice 100", "page.html": "<b>x</b>", "id_rsa": "key", "x.ts": "let x", "pic.svg": "<svg/>",
		"c/d/film.mkv": "frames",
	})
	writeAll(t, outside, map[string]string{"b/film.mp4": "secret", "film.mkv": "secret", "later.mp4": "secret"})
	c := config.Default()
	c.Console.Media, c.Share.Media = true, false
	c.Sources = []config.Source{{URL: "file://" + root}}
	n, address := start(t, c, t.TempDir())
	eventually(t, "the scan", func() bool { return n.files.Status().Hosts[0].Files == 9 })
	n.files.SetRobots(0) // so that it does not see what follows
	eventually(t, "the robot's rest", func() bool { return n.files.Status().Working == 0 })
	host := "file://" + root
	for path, want := range map[string]int{
		"song.mp3": 200, "a/b/film.mp4": 200, "c/d/film.mkv": 200,
		"salaries.txt": 403, "page.html": 403, "id_rsa": 403, "pic.svg": 403,
		"none.mp3": 404, "../outside/film.mkv": 404, "a/../song.mp3": 404, "": 404, "/song.mp3": 404,
	} {
		if code, body := get(t, playURL(address, host, path)); code != want || strings.Contains(body, "secret") {
			t.Errorf("play %q: %d %q, want %d", path, code, body, want)
		}
	}
	if code, body := get(t, playURL(address, host, "song.mp3"), "Range", "bytes=3-4"); code != http.StatusPartialContent || body != "la" {
		t.Errorf("a range: %d %q, want 206 \"la\"", code, body)
	}
	for _, other := range []string{"file:///etc", "file://" + top, "file://" + root + "/a", "smb://nas", ""} {
		if code, _ := get(t, playURL(address, other, "song.mp3")); code != http.StatusNotFound {
			t.Errorf("play of host %q: %d, want 404", other, code)
		}
	}
	// Between scan and play folders and files are replaced by links.
	for link, target := range map[string]string{"a": outside, "c/d": outside, "song.mp3": filepath.Join(outside, "film.mkv")} {
		if err := os.Rename(filepath.Join(root, link), filepath.Join(top, "old"+filepath.Base(link))); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"a/b/film.mp4", "c/d/film.mkv", "song.mp3"} {
		if code, body := get(t, playURL(address, host, path)); code != http.StatusBadGateway || strings.Contains(body, "secret") {
			t.Errorf("play %q through a link: %d %q, want 502", path, code, body)
		}
	}
}

// indexServer is a directory index with one film. It keeps the logins that it is
// offered.
type indexServer struct {
	mu     sync.Mutex
	logins map[string]bool
}

func (s *indexServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	s.mu.Lock()
	s.logins[user+":"+password] = true
	s.mu.Unlock()
	switch r.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `[{"name":"film.mp4","type":"file","size":6}]`)
	case "/film.mp4":
		http.ServeContent(w, r, "film.mp4", time.Unix(1, 0), strings.NewReader("moving"))
	}
}

// serveAt serves at a loopback port until the test ends; ok is false if it is taken.
func serveAt(t *testing.T, port int) (*indexServer, bool) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, false
	}
	s := &indexServer{logins: map[string]bool{}}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return s, true
}

// A server is offered its own login only, also where its address begins like that of
// another one.
func TestPlayWithTheHostsOwnLogin(t *testing.T) {
	t.Parallel()
	for port := 2100; port < 6400; port++ {
		short, ok := serveAt(t, port)
		if !ok {
			continue
		}
		long, ok := serveAt(t, port*10+1)
		if !ok {
			continue
		}
		c := config.Default()
		c.Console.Media, c.Share.Media = true, false
		guest, closed := fmt.Sprintf("webdav://127.0.0.1:%d1", port), fmt.Sprintf("index+http://127.0.0.1:%d/", port)
		c.Sources = []config.Source{
			{URL: strings.Replace(guest, "webdav", "index+http", 1)},
			{URL: closed, User: "svc", Password: "topsecret", Open: true},
		}
		n, address := start(t, c, t.TempDir())
		eventually(t, "both scans", func() bool {
			h := n.files.Status().Hosts
			return len(h) == 2 && h[0].Files == 1 && h[1].Files == 1
		})
		for _, h := range n.files.Status().Hosts {
			if code, body := get(t, playURL(address, h.Name, "film.mp4")); code != http.StatusOK || body != "moving" {
				t.Errorf("play of %s: %d %q", h.Name, code, body)
			}
		}
		short.mu.Lock()
		defer short.mu.Unlock()
		long.mu.Lock()
		defer long.mu.Unlock()
		if len(short.logins) != 1 || !short.logins["svc:topsecret"] || len(long.logins) != 1 || !long.logins[":"] {
			t.Errorf("the server with a login was offered %v, the other %v", short.logins, long.logins)
		}
		return
	}
	t.Fatal("no free ports")
}

// Names and contents of a share with a login are for those who log in, unless the
// source is open.
func TestShareWithLoginNeedsLogin(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("geese"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	writeAll(t, root, map[string]string{"song.mp3": "la"})
	for _, tt := range []struct {
		name   string
		source config.Source
		want   bool // an anonymous search is answered
	}{
		{"a guest's share", config.Source{}, true},
		{"a user", config.Source{User: "carol"}, false},
		{"a password in the URL", config.Source{URL: "smb://carol:pw@127.0.0.1:1/x"}, false},
		{"a user, but open", config.Source{User: "carol", Open: true}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := config.Default()
			c.Console.Password, c.Console.Tokens, c.Console.Media = string(hash), []string{"a-long-token-of-a-program-1234567890"}, true
			if tt.source.URL == "" {
				tt.source.URL = "file://" + root
			}
			c.Sources = []config.Source{tt.source}
			_, address := start(t, c, t.TempDir())
			// The play page says that there is no such file, or leads to the login.
			for path, answered := range map[string]int{"/api/search?q=song": http.StatusOK, "/play?host=x&path=y": http.StatusNotFound} {
				if code, body := get(t, address+path); (code == answered) != tt.want {
					t.Errorf("GET %s without login: %d %.100s, want an answer: %v", path, code, body, tt.want)
				}
			}
			if code, _ := get(t, address+"/api/search?q=song", "Authorization", "Bearer a-long-token-of-a-program-1234567890"); code != http.StatusOK {
				t.Errorf("with a token: %d, want 200", code)
			}
		})
	}
}

// Folders of this machine are shared by the configuration file alone, and logins are
// added only where searching needs one.
func TestSharesThatTheAPIMayNotAdd(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Sources = []config.Source{{URL: "file://" + t.TempDir()}}
	n, _ := start(t, c, t.TempDir())
	for spec, want := range map[string]string{
		"file:///etc": "configuration file", "FILE:///etc": "configuration file", " file:///etc": "configuration file", "file://localhost/etc": "configuration file", "/etc": "configuration file",
		"file://a,b/etc": "configuration file", "file:/etc": "configuration file", "ftp://carol:s3cret@127.0.0.1:1/": "open: true",
	} {
		err := n.AddSource(t.Context(), console.Source{URL: spec})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("AddSource(%q) = %v, want an error with %q", spec, err, want)
		}
	}
	if err := n.AddSource(t.Context(), console.Source{URL: "ftp://127.0.0.1:1/"}); err != nil {
		t.Error(err)
	}
	b, err := json.Marshal(n.files.Status())
	if err != nil || bytes.Contains(b, []byte("etc")) {
		t.Errorf("%s, %v", b, err)
	}
}
