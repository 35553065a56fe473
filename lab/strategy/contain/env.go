// Package contain holds the containers of the strategy language: queues,
// stacks, sorted queues and queues by server, of any size in a fixed amount of
// memory each. What does not fit goes to files: queues and stacks to a file a
// block, sorted queues to sorted runs, queues by server to chunks in one mapped
// file.
//
// Nothing here is safe for concurrent use: a script is one thread.
package contain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// ErrLimit is wrapped by errors about a limit that was reached.
var ErrLimit = errors.New("limit reached")

// Env is where the containers of one script put their files, and counts what
// they use. Bytes; a limit of 0 is none.
type Env struct {
	Dir                    string // exists; private to the script
	MaxMemory, MaxDisk     int64
	memory, disk           int64
	peakMemory, peakDisk   int64
	files                  int
	blockBytes, sortedKept int // sizes of buffers; tests make them small
}

// NewEnv returns an environment for files in dir.
func NewEnv(dir string, maxMemory, maxDisk int64) *Env {
	return &Env{Dir: dir, MaxMemory: maxMemory, MaxDisk: maxDisk, blockBytes: 1 << 20, sortedKept: 1 << 18}
}

// Peak returns the greatest use of memory and disk so far.
func (e *Env) Peak() (memory, disk int64) { return e.peakMemory, e.peakDisk }

// Memory counts n more bytes of memory (less if negative).
func (e *Env) Memory(n int64) error {
	e.memory += n
	e.peakMemory = max(e.peakMemory, e.memory)
	if n > 0 && e.MaxMemory > 0 && e.memory > e.MaxMemory {
		return fmt.Errorf("memory: %w: more than %d bytes (--max-memory)", ErrLimit, e.MaxMemory)
	}
	return nil
}

// Disk counts n more bytes of disk (less if negative).
func (e *Env) Disk(n int64) error {
	if n > 0 && e.MaxDisk > 0 && e.disk+n > e.MaxDisk {
		return fmt.Errorf("disk: %w: more than %d bytes (--max-disk)", ErrLimit, e.MaxDisk)
	}
	e.disk += n
	e.peakDisk = max(e.peakDisk, e.disk)
	return nil
}

// newFileName returns the name of a new file.
func (e *Env) newFileName(kind string) string {
	e.files++
	return filepath.Join(e.Dir, kind+strconv.Itoa(e.files))
}

// createTempFile makes a new file of the environment.
func (e *Env) createTempFile(kind string) (*os.File, error) {
	return os.OpenFile(e.newFileName(kind), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// removeTempFile deletes a file and gives its disk space back.
func (e *Env) removeTempFile(path string, bytes int64) error {
	_ = e.Disk(-bytes)
	return os.Remove(path)
}
