package source_test

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

	"github.com/freshet/freshet/internal/shareservers"
	"github.com/freshet/freshet/share/source"
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
	for _, run := range shareservers.All() {
		t.Run("server", func(t *testing.T) {
			t.Parallel()
			root := shareservers.Reachable(t)
			mtime := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
			names := []string{"plain.txt", "with space & 100%.txt", "Пугачёва - Миллион алых роз.mp3", "žąsys.txt", "#hash.txt"}
			for i, n := range names {
				p := shareservers.Write(t, filepath.Join(root, "Музыка", n), strings.Repeat("x", 10+i))
				if err := os.Chtimes(p, mtime, mtime); err != nil {
					t.Fatal(err)
				}
			}
			big := bytes.Repeat([]byte("0123456789abcdef"), 8192)
			shareservers.Write(t, filepath.Join(root, "big.bin"), string(big))
			for _, d := range []string{"empty", "sealed", "listless"} {
				if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			shareservers.Write(t, filepath.Join(root, "listless", "inside.txt"), "x")
			if err := os.Chmod(filepath.Join(root, "sealed"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(root, "listless"), 0o711); err != nil {
				t.Fatal(err)
			}
			s := run(t, root)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			src, err := source.Dial(ctx, parse(t, s.URL), s.Options)
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			defer src.Close()
			checkRoot(t, ctx, s, src)
			checkNames(t, ctx, s, src, names, mtime)
			checkReads(t, ctx, s, src, big)
			checkErrors(t, ctx, s, src)
		})
	}
}

func checkRoot(t *testing.T, ctx context.Context, s shareservers.Server, src source.Source) {
	entries, err := src.List(ctx, "")
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
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
		t.Errorf("%s: root is %q, want %q", s.Name, got, want)
	}
	if entries, err = src.List(ctx, "empty"); err != nil || len(entries) != 0 {
		t.Errorf("%s: empty folder: %v, %v", s.Name, entries, err)
	}
}

func checkNames(t *testing.T, ctx context.Context, s shareservers.Server, src source.Source, names []string, mtime time.Time) {
	entries, err := src.List(ctx, "Музыка")
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	byName := map[string]source.Entry{}
	for _, e := range entries {
		byName[e.Name] = e
	}
	if len(entries) != len(names) {
		t.Errorf("%s: %d entries, want %d: %v", s.Name, len(entries), len(names), entries)
	}
	for i, n := range names {
		e := byName[n]
		if e.Dir || e.Size != int64(10+i) || !near(e.Modified, mtime.Unix()) {
			t.Errorf("%s: %q is %+v, want %d bytes of %v", s.Name, n, e, 10+i, mtime)
		}
	}
}

// near allows for LIST, which gives days alone for files older than half a year.
func near(a, b int64) bool { return a/86400 == b/86400 }

func checkReads(t *testing.T, ctx context.Context, s shareservers.Server, src source.Source, big []byte) {
	f, err := src.Open(ctx, "big.bin")
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	defer f.Close()
	if f.Size() != int64(len(big)) {
		t.Errorf("%s: size %d, want %d", s.Name, f.Size(), len(big))
	}
	for _, off := range []int64{0, 32768, 100, 131000, 65536} {
		buf := make([]byte, 5000)
		n, err := f.ReadAt(buf, off)
		want := big[off:min(int64(len(big)), off+5000)]
		if !bytes.Equal(buf[:n], want) || (n < len(buf) && !errors.Is(err, io.EOF)) {
			t.Errorf("%s: read at %d: %d bytes, %v; want %d", s.Name, off, n, err, len(want))
		}
	}
	f.Close()
	if _, err := src.List(ctx, "empty"); err != nil {
		t.Errorf("%s: listing after a read that was broken off: %v", s.Name, err)
	}
}

func checkErrors(t *testing.T, ctx context.Context, s shareservers.Server, src source.Source) {
	for _, path := range []string{"missing", "missing/deeper", "Музыка/нет"} {
		if _, err := src.List(ctx, path); source.ClassOf(err) != source.Gone {
			t.Errorf("%s: list %s: %v, want gone", s.Name, path, err)
		}
	}
	if _, err := src.Open(ctx, "missing.txt"); source.ClassOf(err) != source.Gone {
		t.Errorf("%s: open a missing file: %v", s.Name, err)
	}
	if s.Name == "file" || s.Name == "sftp" {
		return // as root: nothing is denied
	}
	for _, path := range []string{"sealed", "listless"} {
		if s.Name == "webdav" && path == "listless" {
			// mod_dav drops the connection; the host is not offline for that.
			if _, err := src.List(ctx, path); source.ClassOf(err) != source.Protocol {
				t.Errorf("webdav: list %s: %v, want a protocol error", path, err)
			}
			continue
		}
		if entries, err := src.List(ctx, path); source.ClassOf(err) != source.Denied || err == nil {
			t.Errorf("%s: list %s: %v, %v, want denied", s.Name, path, entries, err)
		}
	}
}

// A server without a share in its URL is a folder of its shares, hidden ones
// left out.
func TestShareEnumeration(t *testing.T) {
	t.Parallel()
	root := shareservers.Reachable(t)
	shareservers.Write(t, filepath.Join(root, "a.txt"), "a")
	s := shareservers.Samba(t, root)
	src, err := source.Dial(t.Context(), parse(t, strings.TrimSuffix(s.URL, "/share")), s.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	entries, err := src.List(t.Context(), "")
	if err != nil || len(entries) != 2 || entries[0].Name != "share" || entries[1].Name != "private" || !entries[0].Dir { // not the hidden one
		t.Fatalf("shares %v, %v", entries, err)
	}
	if entries, err = src.List(t.Context(), "share"); err != nil || len(entries) != 1 || entries[0].Name != "a.txt" {
		t.Errorf("share %v, %v", entries, err)
	}
	if _, err = src.List(t.Context(), "nosuch"); source.ClassOf(err) != source.Gone {
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
	closed := shareservers.FreePort(t)
	for _, scheme := range source.Names() {
		if scheme == "file" {
			continue
		}
		hasty, patient := source.Options{Timeout: 400 * time.Millisecond}, source.Options{Timeout: 5 * time.Minute}
		if _, err := source.Dial(t.Context(), parse(t, scheme+"://127.0.0.1:"+closed+"/x"), patient); source.ClassOf(err) != source.Refused {
			t.Errorf("%s: closed port: %v, want refused", scheme, err)
		}
		best := time.Hour // of several: a busy machine makes it longer, never shorter
		for try := 0; try < 6 && best > 5*time.Second; try++ {
			begin := time.Now()
			if _, err := source.Dial(t.Context(), parse(t, scheme+"://"+silent.Addr().String()+"/x"), hasty); source.ClassOf(err) != source.Timeout {
				t.Errorf("%s: silent host: %v, want timeout", scheme, err)
			}
			best = min(best, time.Since(begin))
		}
		if best > 5*time.Second {
			t.Errorf("%s: gave up after %v", scheme, best)
		}
		if _, err := source.Dial(t.Context(), parse(t, scheme+"://no-such-host.invalid/x"), hasty); source.ClassOf(err) != source.Offline && source.ClassOf(err) != source.Timeout {
			t.Errorf("%s: unknown name: %v, want offline", scheme, err)
		}
	}
	if _, err := source.Dial(t.Context(), parse(t, "file:///no/such/folder"), source.Options{}); source.ClassOf(err) != source.Gone {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := source.Dial(t.Context(), parse(t, "gopher://127.0.0.1/"), source.Options{}); source.ClassOf(err) != source.Protocol {
		t.Errorf("unknown scheme: %v", err)
	}
}

// Wrong credentials are denied.
func TestCredentials(t *testing.T) {
	t.Parallel()
	root := shareservers.Reachable(t)
	for _, run := range []shareservers.Start{shareservers.VSFTPD, shareservers.SSHD} {
		s := run(t, root)
		u := parse(t, s.URL)
		u.User = url.UserPassword("somebody", "wrong")
		if src, err := source.Dial(t.Context(), u, source.Options{}); source.ClassOf(err) != source.Denied {
			t.Errorf("%s: %v, %v, want denied", s.Name, src, err)
		} else if strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: the error tells the password: %v", s.Name, err)
		}
	}
}

// A share that is closed to guests opens with user and password, wherever they
// stand, and only with the right ones.
func TestUserOfShare(t *testing.T) {
	t.Parallel()
	root := shareservers.Reachable(t)
	shareservers.Write(t, filepath.Join(root, "тайна.txt"), "x")
	s := shareservers.Samba(t, root)
	list := func(user, password string, o source.Options) ([]source.Entry, error) {
		u := parse(t, strings.TrimSuffix(s.URL, "share")+"private")
		if user != "" {
			u.User = url.UserPassword(user, password)
		}
		src, err := source.Dial(t.Context(), u, o)
		if err != nil {
			return nil, err
		}
		defer src.Close()
		return src.List(t.Context(), "")
	}
	for name, got := range map[string]func() ([]source.Entry, error){
		"in the URL": func() ([]source.Entry, error) {
			return list(shareservers.User, shareservers.Password, source.Options{})
		},
		"in the options": func() ([]source.Entry, error) {
			return list("", "", source.Options{User: shareservers.User, Password: shareservers.Password})
		},
	} {
		entries, err := got()
		if err != nil || len(entries) != 1 || entries[0].Name != "тайна.txt" {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
	}
	for _, bad := range [][2]string{{shareservers.User, "wrong"}, {"", ""}} {
		if entries, err := list(bad[0], bad[1], source.Options{}); source.ClassOf(err) != source.Denied {
			t.Errorf("%q: %v, %v, want denied", bad, entries, err)
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
		urls, err := source.Expand(t.Context(), tt.spec, source.Options{})
		var got []string
		for _, u := range urls {
			got = append(got, u.String())
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("Expand(%q) = %v, %v, want %s", tt.spec, got, err, tt.want)
		}
	}
	for _, bad := range []string{"srv", "nfs://srv/x", "smb:///x", "smb://10.0.0.0/8", "smb://10.0.0.0/40", "file://10.0.0.0/24"} {
		if urls, err := source.Expand(t.Context(), bad, source.Options{}); err == nil {
			t.Errorf("Expand(%q) = %v, want an error", bad, urls)
		}
	}
}

// An address range becomes the hosts that answer at the port.
// Whatever is wrong with a source, its error does not tell the password.
func TestErrorsTellNoPassword(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		"nosuch://carol:s3cret@..", "ftp://carol:s3cret@/x", "ftp://carol:s3cret@nas:port/x", "smb://carol:s3cret@10.0.0.0/8/x", "smb://carol:s3cret@10.0.0.0/99",
		"smb://carol:s3/cret@nas/x", "smb://carol:s3%zzcret@nas/x", "smb://carol:s3 cret@nas/x", "carol:s3cret@nas", "smb:/carol:s3cret@nas", "sftp://carol:s3cret@[::1/x",
	} {
		urls, err := source.Expand(t.Context(), spec, source.Options{})
		if err == nil {
			t.Errorf("Expand(%q) = %v, want an error", spec, urls)
		} else if strings.Contains(err.Error(), "cret") || strings.Contains(err.Error(), "s3") {
			t.Errorf("Expand(%q): the error tells the password: %v", spec, err)
		}
	}
}

// A password is not offered to whatever answers in an address range, unless the
// server proves first who it is, or the source says so.
func TestPasswordsForRanges(t *testing.T) {
	t.Parallel()
	closed := shareservers.FreePort(t)
	for _, tt := range []struct {
		spec    string
		options source.Options
		ok      bool
	}{
		{"ftp://u:pw@127.0.0.0:PORT/31", source.Options{}, false},
		{"webdav://u:pw@127.0.0.0:PORT/31/x", source.Options{}, false},
		{"http://u:pw@127.0.0.0:PORT/31", source.Options{}, false},
		{"index+http://u:pw@127.0.0.0:PORT/31", source.Options{}, false},
		{"sftp://u:pw@127.0.0.0:PORT/31", source.Options{}, false},
		{"ftp://127.0.0.0:PORT/31", source.Options{User: "u", Password: "pw"}, false},
		{"ftp://u:pw@127.0.0.0:PORT/31", source.Options{TrustRange: true}, true},
		{"sftp://u:pw@127.0.0.0:PORT/31", source.Options{HostKeys: []byte("ssh-ed25519 AAAA")}, true},
		{"sftp://u@127.0.0.0:PORT/31", source.Options{Key: []byte("key")}, true},
		{"ftp://127.0.0.0:PORT/31", source.Options{}, true},
		{"ftp://anonymous@127.0.0.0:PORT/31", source.Options{}, true},
		{"webdavs://u:pw@127.0.0.0:PORT/31", source.Options{}, true},
		{"ftpes://u:pw@127.0.0.0:PORT/31", source.Options{}, true},
		{"smb://u:pw@127.0.0.0:PORT/31", source.Options{}, true},
		{"ftp://u:pw@127.0.0.1,127.0.0.2:PORT/x", source.Options{}, true},
	} {
		_, err := source.Expand(t.Context(), strings.Replace(tt.spec, "PORT", closed, 1), tt.options)
		if (err == nil) != tt.ok || err != nil && (!strings.Contains(err.Error(), "trust_range") || strings.Contains(err.Error(), "pw")) {
			t.Errorf("Expand(%q, %+v): %v, want no error: %v", tt.spec, tt.options, err, tt.ok)
		}
	}
}

func TestExpandRange(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.5:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	urls, err := source.Expand(t.Context(), "ftp://127.0.0.0:"+port+"/28/pub", source.Options{})
	if err != nil || len(urls) != 1 || urls[0].String() != "ftp://127.0.0.5:"+port+"/pub" {
		t.Errorf("%v, %v", urls, err)
	}
	if !source.IsRange("ftp://127.0.0.0/28/pub") || source.IsRange("ftp://host/28") {
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
	src, err := source.Dial(t.Context(), parse(t, (&url.URL{Scheme: "file", Path: root}).String()), source.Options{})
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
		path = strings.TrimPrefix(path+"/"+entries[0].Name, "/")
	}
	if entries, err := src.List(t.Context(), path); err != nil || len(entries) != 0 {
		t.Errorf("bottom: %v, %v", entries, err)
	}
}
