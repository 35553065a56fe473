package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func parse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// One suite for every protocol against a real server: listing, names of many
// scripts, ranged reads, missing and denied folders.
func TestSources(t *testing.T) {
	t.Parallel()
	for _, run := range servers() {
		t.Run("server", func(t *testing.T) {
			t.Parallel()
			root := reachable(t)
			mtime := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
			names := []string{"plain.txt", "with space & 100%.txt", "Пугачёва - Миллион алых роз.mp3", "žąsys.txt", "#hash.txt"}
			for i, n := range names {
				p := write(t, filepath.Join(root, "Музыка", n), strings.Repeat("x", 10+i))
				if err := os.Chtimes(p, mtime, mtime); err != nil {
					t.Fatal(err)
				}
			}
			big := bytes.Repeat([]byte("0123456789abcdef"), 8192)
			write(t, filepath.Join(root, "big.bin"), string(big))
			for _, d := range []string{"empty", "sealed", "listless"} {
				if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(root, "listless", "inside.txt"), "x")
			if err := os.Chmod(filepath.Join(root, "sealed"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(root, "listless"), 0o711); err != nil {
				t.Fatal(err)
			}
			s := run(t, root)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			src, err := Dial(ctx, parse(t, s.url), s.opt)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			defer src.Close()
			checkRoot(t, ctx, s, src)
			checkNames(t, ctx, s, src, names, mtime)
			checkReads(t, ctx, s, src, big)
			checkErrors(t, ctx, s, src)
		})
	}
}

func checkRoot(t *testing.T, ctx context.Context, s server, src Source) {
	entries, err := src.List(ctx, "")
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	var got []string
	for _, e := range entries {
		if e.Dir {
			got = append(got, e.Name+"/")
		} else {
			got = append(got, e.Name)
		}
	}
	slices.Sort(got)
	// Apache's index leaves out what its user may not read.
	got = slices.DeleteFunc(got, func(n string) bool { return n == "sealed/" || n == "listless/" || n == "hidden/" })
	if want := "big.bin empty/ Музыка/"; strings.Join(got, " ") != want {
		t.Errorf("%s: root is %q, want %q", s.name, got, want)
	}
	if entries, err = src.List(ctx, "empty"); err != nil || len(entries) != 0 {
		t.Errorf("%s: empty folder: %v, %v", s.name, entries, err)
	}
}

func checkNames(t *testing.T, ctx context.Context, s server, src Source, names []string, mtime time.Time) {
	entries, err := src.List(ctx, "Музыка")
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	byName := map[string]Entry{}
	for _, e := range entries {
		byName[e.Name] = e
	}
	if len(entries) != len(names) {
		t.Errorf("%s: %d entries, want %d: %v", s.name, len(entries), len(names), entries)
	}
	for i, n := range names {
		e := byName[n]
		if e.Dir || e.Size != int64(10+i) || !near(e.Modified, mtime.Unix()) {
			t.Errorf("%s: %q is %+v, want %d bytes of %v", s.name, n, e, 10+i, mtime)
		}
	}
}

// near allows for LIST, which gives days alone for files older than half a year.
func near(a, b int64) bool { return a/86400 == b/86400 }

func checkReads(t *testing.T, ctx context.Context, s server, src Source, big []byte) {
	f, err := src.Open(ctx, "big.bin")
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	defer f.Close()
	if f.Size() != int64(len(big)) {
		t.Errorf("%s: size %d, want %d", s.name, f.Size(), len(big))
	}
	for _, off := range []int64{0, 32768, 100, 131000, 65536} {
		buf := make([]byte, 5000)
		n, err := f.ReadAt(buf, off)
		want := big[off:min(int64(len(big)), off+5000)]
		if !bytes.Equal(buf[:n], want) || (n < len(buf) && !errors.Is(err, io.EOF)) {
			t.Errorf("%s: read at %d: %d bytes, %v; want %d", s.name, off, n, err, len(want))
		}
	}
	f.Close()
	if _, err := src.List(ctx, "empty"); err != nil {
		t.Errorf("%s: listing after a read that was broken off: %v", s.name, err)
	}
}

func checkErrors(t *testing.T, ctx context.Context, s server, src Source) {
	for _, path := range []string{"missing", "missing/deeper", "Музыка/нет"} {
		if _, err := src.List(ctx, path); ClassOf(err) != Gone {
			t.Errorf("%s: list %s: %v, want gone", s.name, path, err)
		}
	}
	if _, err := src.Open(ctx, "missing.txt"); ClassOf(err) != Gone {
		t.Errorf("%s: open a missing file: %v", s.name, err)
	}
	if s.name == "file" || s.name == "sftp" {
		return // as root: nothing is denied
	}
	for _, path := range []string{"sealed", "listless"} {
		if s.name == "webdav" && path == "listless" {
			// mod_dav drops the connection; the host is not offline for that.
			if _, err := src.List(ctx, path); ClassOf(err) != Protocol {
				t.Errorf("webdav: list %s: %v, want a protocol error", path, err)
			}
			continue
		}
		if entries, err := src.List(ctx, path); ClassOf(err) != Denied || err == nil {
			t.Errorf("%s: list %s: %v, %v, want denied", s.name, path, entries, err)
		}
	}
}

// A server without a share in its URL is a folder of its shares, hidden ones
// left out.
func TestShareEnumeration(t *testing.T) {
	t.Parallel()
	root := reachable(t)
	write(t, filepath.Join(root, "a.txt"), "a")
	s := samba(t, root)
	src, err := Dial(t.Context(), parse(t, strings.TrimSuffix(s.url, "/share")), s.opt)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	entries, err := src.List(t.Context(), "")
	if err != nil || len(entries) != 1 || entries[0].Name != "share" || !entries[0].Dir {
		t.Fatalf("shares %v, %v", entries, err)
	}
	if entries, err = src.List(t.Context(), "share"); err != nil || len(entries) != 1 || entries[0].Name != "a.txt" {
		t.Errorf("share %v, %v", entries, err)
	}
	if _, err = src.List(t.Context(), "nosuch"); ClassOf(err) != Gone {
		t.Errorf("unknown share: %v", err)
	}
}

// A host that is not there, refuses, stays silent, or talks nonsense is told
// apart, by every protocol.
func TestDialErrors(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed := freePort(t)
	for _, scheme := range Names() {
		if scheme == "file" {
			continue
		}
		o := Options{Timeout: 400 * time.Millisecond}
		if _, err := Dial(t.Context(), parse(t, scheme+"://127.0.0.1:"+closed+"/x"), o); ClassOf(err) != Refused {
			t.Errorf("%s: closed port: %v, want refused", scheme, err)
		}
		begin := time.Now()
		if _, err := Dial(t.Context(), parse(t, scheme+"://"+silent.Addr().String()+"/x"), o); ClassOf(err) != Timeout {
			t.Errorf("%s: silent host: %v, want timeout", scheme, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: gave up after %v", scheme, took)
		}
		if _, err := Dial(t.Context(), parse(t, scheme+"://no-such-host.invalid/x"), o); ClassOf(err) != Offline && ClassOf(err) != Timeout {
			t.Errorf("%s: unknown name: %v, want offline", scheme, err)
		}
	}
	if _, err := Dial(t.Context(), parse(t, "file:///no/such/folder"), Options{}); ClassOf(err) != Gone {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := Dial(t.Context(), parse(t, "gopher://127.0.0.1/"), Options{}); ClassOf(err) != Protocol {
		t.Errorf("unknown scheme: %v", err)
	}
}

// Wrong credentials are denied.
func TestCredentials(t *testing.T) {
	t.Parallel()
	root := reachable(t)
	for _, run := range []func(testing.TB, string) server{vsftpd, sshd} {
		s := run(t, root)
		u := parse(t, s.url)
		u.User = url.UserPassword("somebody", "wrong")
		if src, err := Dial(t.Context(), u, Options{}); ClassOf(err) != Denied {
			t.Errorf("%s: %v, %v, want denied", s.name, src, err)
		} else if strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: the error tells the password: %v", s.name, err)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		spec, want string
	}{
		{"smb://srv/share", "smb://srv/share"},
		{"ftp://a,b,10.0.0.3/pub", "ftp://a/pub ftp://b/pub ftp://10.0.0.3/pub"},
		{"smb://u:p@a,b/x", "smb://u:p@a/x smb://u:p@b/x"},
		{"/tmp/x", "file:///tmp/x"},
	}
	for _, tt := range tests {
		urls, err := Expand(t.Context(), tt.spec, Options{})
		var got []string
		for _, u := range urls {
			got = append(got, u.String())
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("Expand(%q) = %v, %v, want %s", tt.spec, got, err, tt.want)
		}
	}
	for _, bad := range []string{"srv", "nfs://srv/x", "smb:///x", "smb://10.0.0.0/8", "smb://10.0.0.0/40", "file://10.0.0.0/24"} {
		if urls, err := Expand(t.Context(), bad, Options{}); err == nil {
			t.Errorf("Expand(%q) = %v, want an error", bad, urls)
		}
	}
}

// An address range becomes the hosts that answer at the port.
func TestExpandRange(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.5:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	urls, err := Expand(t.Context(), "ftp://127.0.0.0:"+port+"/28/pub", Options{})
	if err != nil || len(urls) != 1 || urls[0].String() != "ftp://127.0.0.5:"+port+"/pub" {
		t.Errorf("%v, %v", urls, err)
	}
	if !IsRange("ftp://127.0.0.0/28/pub") || IsRange("ftp://host/28") {
		t.Error("IsRange")
	}
}

// Paths beyond the system's limit are read name by name.
func TestDeepPath(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const depth = 3000
	if err := mkdirDeep(root, depth); err != nil {
		t.Fatal(err)
	}
	src, err := Dial(t.Context(), parse(t, (&url.URL{Scheme: "file", Path: root}).String()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	path := ""
	for i := range depth {
		entries, err := src.List(t.Context(), path)
		if err != nil || len(entries) != 1 || !entries[0].Dir {
			t.Fatalf("level %d: %v, %v", i, entries, err)
		}
		path = below(path, entries[0].Name)
	}
	if entries, err := src.List(t.Context(), path); err != nil || len(entries) != 0 {
		t.Errorf("bottom: %v, %v", entries, err)
	}
}

func FuzzParseHTMLIndex(f *testing.F) {
	f.Add([]byte(`<html><head><title>Index of /</title></head><body><pre><a href="../">../</a>
<a href="a%20b.txt">a b.txt</a>  04-Mar-2026 05:06   12
</pre></body></html>`))
	f.Add([]byte(`<title>Index of /x</title><table><tr><td><a href="?C=N">N</a></td><td><a href="x.mp3">x</a></td><td>2026-03-04 05:06</td><td>1.5M</td></table></html>`))
	self := &url.URL{Scheme: "http", Host: "h", Path: "/"}
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseHTMLIndex(b, self)
		for _, e := range entries {
			if e.Name == "" || strings.Contains(e.Name, "/") || e.Size < 0 {
				t.Errorf("entry %+v, %v", e, err)
			}
		}
	})
}

func FuzzParseMultistatus(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>/a%20b/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>`))
	self := &url.URL{Scheme: "http", Host: "h", Path: "/"}
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseMultistatus(bytes.NewReader(b), self)
		for _, e := range entries {
			if e.Name == "" || strings.Contains(e.Name, "/") || e.Size < 0 {
				t.Errorf("entry %+v, %v", e, err)
			}
		}
	})
}

func FuzzParseJSONIndex(f *testing.F) {
	f.Add([]byte(`[{"name":"a","type":"file","mtime":"Wed, 04 Mar 2026 05:06:00 GMT","size":12}]`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseJSONIndex(b) })
}
