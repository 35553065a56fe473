package state

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/sharetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	dirs := map[share.Store]string{}
	open := func(t testing.TB, dir string) share.Store {
		s, err := Open(dir, Config{})
		if err != nil {
			t.Fatal(err)
		}
		dirs[s] = dir
		t.Cleanup(func() { _ = closeOnce(s) })
		return s
	}
	sharetest.Run(
		t, func(t testing.TB) share.Store { return open(t, t.TempDir()) },
		func(t testing.TB, s share.Store) share.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, dirs[s])
		},
	)
}

// closeOnce closes a store that may have been closed by a reopen.
func closeOnce(s *Store) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r) // Pebble panics on a second close
		}
	}()
	return s.Close()
}

// What Commit returned for is there after a crash, whole batches or nothing of them.
func TestCrash(t *testing.T) {
	t.Parallel()
	for crash := range 8 {
		fs := vfs.NewCrashableMem()
		s, err := Open("db", Config{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		for i := range crash * 5 {
			b := share.Batch{Host: "h"}
			for j := range 10 {
				b.Put = append(b.Put, share.File{Path: fmt.Sprintf("%03d/%d", i, j)})
			}
			if err := s.Commit(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, err = Open("db", Config{FS: after})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = s.Files(context.Background(), "h", "", "\xff", func(string, *share.File) error { n++; return nil })
		if err != nil || n != crash*50 {
			t.Errorf("%d files after a crash, %v, want %d", n, err, crash*50)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
