package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/freshet/freshet/store"
)

// Identity is who a process is among those that share a database. It belongs to the
// data directory: a process that starts again there is the same node, whose bodies lie
// there and whose changes wait for it.
type Identity struct {
	Name string
	ID   string // random, made with the data directory
	Run  string // random, of this process
	// PreviousRuns are earlier processes of the data directory, oldest first: this one
	// takes their place in the registry. A process that works in a copy of the directory
	// is none of them.
	PreviousRuns []string

	lock *os.File
}

const (
	identityFile = "node.id"   // holds Identity.ID
	lockFile     = "node.lock" // is locked by the process at work
	runsFile     = "node.runs" // names the last processes of the data directory
	maxKeptRuns  = 16          // in runsFile
)

// Identify locks a data directory against other processes and returns who works
// there: name, or one made of the host's name and the directory's ID. The error is
// store.ErrLocked if another process works there.
func Identify(dir, name string) (*Identity, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", dir, store.ErrLocked), lock.Close())
	}
	id, err := readID(filepath.Join(dir, identityFile))
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "node"
		}
		name = host + "-" + id[:6]
	}
	runs, err := appendRun(filepath.Join(dir, runsFile))
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	last := len(runs) - 1
	return &Identity{Name: name, ID: id, Run: runs[last], PreviousRuns: runs[:last], lock: lock}, nil
}

// readID returns the ID in a file, which it makes if it is missing.
func readID(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var random [8]byte
		_, _ = rand.Read(random[:]) // never fails
		b = []byte(hex.EncodeToString(random[:]))
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(b))
	if len(id) < 8 {
		return "", fmt.Errorf("%s: %q is no identity: remove the file", path, id)
	}
	return id, nil
}

// appendRun adds this process to the file of runs and returns all that it names, this
// process last.
func appendRun(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	runs := append(strings.Fields(string(b)), rand.Text())
	runs = runs[max(0, len(runs)-maxKeptRuns):]
	return runs, os.WriteFile(path, []byte(strings.Join(runs, "\n")+"\n"), 0o600)
}

// FilePrefix returns how names of archive files of the node begin, so that those of
// two nodes differ in a bucket.
func (i *Identity) FilePrefix() string {
	return "freshet-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, i.Name) + "-" + i.ID[:6]
}

// Close unlocks the data directory.
func (i *Identity) Close() error { return i.lock.Close() }
