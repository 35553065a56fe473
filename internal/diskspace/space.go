// Package diskspace guards a data directory against a full disk: databases that run
// out of space in the middle of a write end the process, so work stops while
// there is still room to write down what was done.
package diskspace

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrFull is the error of a disk with too little room left.
var ErrFull = errors.New("the disk is full")

// MinFree is how many bytes a Guard keeps free unless told otherwise: enough
// for the writes under way of store, archive and index.
const MinFree = 256 << 20

// Guard watches the file system of a folder. Its zero value is not usable; make
// it with New. It may be used from many goroutines.
type Guard struct {
	dir  string
	keep uint64

	mu   sync.Mutex
	last time.Time
	err  error
}

// New returns a guard that keeps so many bytes free under dir; 0 means MinFree.
func New(dir string, keep uint64) *Guard {
	if keep == 0 {
		keep = MinFree
	}
	return &Guard{dir: dir, keep: keep}
}

// Check returns nil, or an error that wraps ErrFull and says how much is free.
// It asks the file system at most once a second.
func (g *Guard) Check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.last) >= time.Second {
		g.last, g.err = now, g.checkSpace()
	}
	return g.err
}

func (g *Guard) checkSpace() error {
	free, err := Free(g.dir)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", g.dir, err)
	}
	if free < g.keep {
		return fmt.Errorf("%s: %w: %d MB are free, %d MB are kept for what must be written; make room, or move the data directory (--data)", g.dir, ErrFull, free>>20, g.keep>>20)
	}
	return nil
}

// Free returns how many bytes an ordinary user may still write under dir.
func Free(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}
