package archive

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// An error of finishing a file is everybody's who has written to it: nobody may
// take records for durable of which some may be lost.
func TestFinishFails(t *testing.T) {
	t.Parallel()
	w, err := Open(Config{Dir: t.TempDir(), FileSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	x := &Exchange{URL: "http://a/", Time: time.Now(), Status: 200, Body: []byte("x")}
	if _, err := w.Write(x); err != nil { // one agent
		t.Fatal(err)
	}
	r, broken, err := os.Pipe() // takes what is written, cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.mu.Lock()
	whole := w.f
	w.f = broken
	w.buf.Reset(broken)
	w.mu.Unlock()
	defer whole.Close()
	if _, err := w.Write(x); err == nil { // another, for whom the full file is finished
		t.Error("written behind a file that could not be finished")
	}
	if err := w.Sync(); err == nil {
		t.Error("the first agent is told that its record is on the disk")
	}
	if _, err := w.Write(x); err == nil {
		t.Error("written after that")
	}
	if err := w.Sync(); err == nil {
		t.Error("synced after that")
	}
}

// Every change of any byte of a record is noticed or has no effect.
func TestEveryByteIsChecked(t *testing.T) {
	t.Parallel()
	for _, packing := range []Packing{Fast, Small, Plain} {
		dir := t.TempDir()
		w, err := Open(Config{Dir: dir, Packing: packing})
		if err != nil {
			t.Fatal(err)
		}
		x := &Exchange{URL: "http://a/", Time: time.Unix(1780000000, 0), Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: bytes.Repeat([]byte("a heron stands in the water. "), 20)}
		first, err := w.Write(x)
		if err != nil {
			t.Fatal(err)
		}
		next, err := w.Write(x)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, first.File))
		if err != nil {
			t.Fatal(err)
		}
		name := "damaged" + packing.fileSuffix()
		for i := first.Offset; i < next.Offset; i++ {
			bad := slices.Clone(data)
			bad[i] ^= 0x10
			if err := os.WriteFile(filepath.Join(dir, name), bad, 0o640); err != nil {
				t.Fatal(err)
			}
			got, err := Read(dir, Position{File: name, Offset: first.Offset})
			if err != nil {
				if !errors.Is(err, ErrDamaged) || Damage(err) != "damaged" {
					t.Fatalf("%s, byte %d: %v of kind %q, want ErrDamaged", packing, i, err, Damage(err))
				}
				continue
			}
			if !bytes.Equal(got.Body, x.Body) {
				t.Fatalf("%s, byte %d: another body was read", packing, i)
			}
		}
	}
}

// What this process cannot repair is left as it is and keeps nobody from starting.
func TestOpenBesideOddFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder.warc.gz.open"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"both.warc.gz", "both.warc.gz.open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatalf("%v, want an archive", err)
	}
	if got := w.Mended(); len(got) != 2 {
		t.Errorf("told of %q, want of both files", got)
	}
	for _, name := range []string{"both.warc.gz", "both.warc.gz.open"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != name {
			t.Errorf("%s holds %q, %v, want what it held", name, b, err)
		}
	}
}
