package bucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/freshet/freshet/archive"
)

// server is an S3 server with one bucket.
func server(t *testing.T) (address string, s *httptest.Server) {
	t.Helper()
	memory := s3mem.New()
	if err := memory.CreateBucket("bodies"); err != nil {
		t.Fatal(err)
	}
	s = httptest.NewServer(gofakes3.New(memory).Server())
	t.Cleanup(s.Close)
	return "s3://bodies/web/one?insecure=true&region=us-east-1&endpoint=" + strings.TrimPrefix(s.URL, "http://"), s
}

func open(t *testing.T, c Config) *Bucket {
	t.Helper()
	c.Access, c.Secret = "key", "secret"
	b, err := Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wrote makes an archive of n bodies in two or more files.
func wrote(t *testing.T, dir string, n int) (at []archive.Position) {
	t.Helper()
	w, err := archive.Open(archive.Config{Dir: dir, FileSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		p, err := w.Write(&archive.Exchange{URL: fmt.Sprint("http://h/", i), Time: time.Now(), Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, Body: fmt.Appendf(nil, "body %d", i)})
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, p)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return at
}

// Bodies of one node are read by another from the bucket; local files go when
// they were there long enough; a second round sends nothing twice.
func TestBucket(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address, _ := server(t)
	dir := t.TempDir()
	at := wrote(t, dir, 60)
	if at[0].File == at[len(at)-1].File {
		t.Fatal("one file only")
	}
	writer := open(t, Config{Address: address, Dir: dir, Keep: time.Nanosecond})
	reader := open(t, Config{Address: address, Dir: t.TempDir()})
	if _, err := reader.Read(ctx, at[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before it was sent: %v", err)
	}
	if err := writer.Upload(ctx); err != nil {
		t.Fatal(err)
	}
	if !reader.Has(ctx, at[0].File) || reader.Has(ctx, "no.warc.gz") {
		t.Error("what is in the bucket")
	}
	for i, p := range at {
		x, err := reader.Read(ctx, p)
		if err != nil || string(x.Body) != fmt.Sprint("body ", i) || x.URL != fmt.Sprint("http://h/", i) {
			t.Fatalf("body %d: %+v, %v", i, x, err)
		}
	}
	if err := writer.Upload(ctx); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("%d files are left", len(left))
	}
	if _, err := reader.Read(ctx, at[3]); err != nil {
		t.Error(err)
	}
	for _, p := range []archive.Position{{}, {File: "../x"}, {File: "no.warc.gz", Offset: 4}} {
		if _, err := reader.Read(ctx, p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := reader.Read(ctx, archive.Position{File: at[0].File, Offset: at[0].Offset + 1}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in the middle of a record: %v", err)
	}
}

// A file that arrived cut off, as by a server that died, is sent again; while
// the server is away nothing is lost or removed.
func TestTroubles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address, s := server(t)
	dir := t.TempDir()
	at := wrote(t, dir, 3)
	first := open(t, Config{Address: address, Dir: dir, Keep: time.Nanosecond})
	path := filepath.Join(dir, at[0].File)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Upload(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Upload(ctx); err == nil { // it would have removed the file
		t.Error("a file that differs was taken for sent")
	}
	again := open(t, Config{Address: address, Dir: dir})
	if err := again.Upload(ctx); err != nil {
		t.Fatal(err)
	}
	if x, err := again.Read(ctx, at[2]); err != nil || string(x.Body) != "body 2" {
		t.Errorf("%+v, %v", x, err)
	}
	s.Close()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := first.Upload(short); err == nil {
		t.Error("sent to a server that is away")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	address, _ := server(t)
	for _, bad := range []string{"", "http://x/", "s3://", "s3://key:secret@b/", "s3://b?endpoint=x&color=red", strings.Replace(address, "bodies", "absent", 1)} {
		if _, err := Open(context.Background(), Config{Address: bad, Access: "k", Secret: "s"}); err == nil {
			t.Errorf("%q was opened", bad)
		}
	}
}
