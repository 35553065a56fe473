package webgraph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/freshet/freshet/internal/diskspace"
)

// ErrExists is wrapped by the error of Create for a folder that is not empty.
var ErrExists = errors.New("it exists already; remove it or choose another name")

// partial is a stored graph that is being written: a folder next to dir whose name
// tells that it is partial, which becomes dir when it is whole.
type partial struct {
	dir, tmp string
	meta     Meta
	lock     *os.File // held while the program runs
	ended    bool
}

// lockFile is held by the program that writes a partial folder: a folder whose
// lock is free was left by a program that was killed.
const lockFile = "lock"

// beginPartial makes the partial folder of dir, after it has looked whether the name is
// free and the disk has room. What killed programs left of dir is removed first.
func beginPartial(dir string, need uint64, made any) (_ *partial, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrExists)
	}
	parent, base := filepath.Split(filepath.Clean(dir))
	parent = filepath.Clean(parent + ".")
	if err := removeAbandoned(parent, base); err != nil {
		return nil, err
	}
	if err := Room(dir, need); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, err
	}
	p := &partial{dir: dir, meta: Meta{Format: formatName, Version: formatVersion, Sorted: true}}
	if made != nil {
		if p.meta.Made, err = json.Marshal(made); err != nil {
			return nil, fmt.Errorf("description of the graph: %w", err)
		}
	}
	if p.tmp, err = os.MkdirTemp(parent, base+partialInfix+"*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.abortPartial()
		}
	}()
	if err = os.Chmod(p.tmp, 0o755); err != nil { // MkdirTemp lets nobody else read
		return nil, err
	}
	// Locked before it has its name, so that nobody sees it free.
	lock := filepath.Join(p.tmp, lockFile)
	if p.lock, err = os.Create(lock + ".new"); err != nil {
		return nil, err
	}
	if err = unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, err
	}
	return p, os.Rename(lock+".new", lock)
}

const partialInfix = ".partial-"

// removeAbandoned removes partial folders of a graph whose writers are gone.
func removeAbandoned(parent, base string) error {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ok, _ := filepath.Match(globEscape(base)+partialInfix+"*", e.Name()); !ok || !e.IsDir() {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		f, err := os.Open(filepath.Join(dir, lockFile))
		if err != nil {
			continue // just being made, or not ours
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = os.RemoveAll(dir)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("remove %s, which a killed program left: %w", dir, err)
		}
	}
	return nil
}

// globEscape makes a name match itself only.
func globEscape(s string) string {
	var b []byte
	for i := range len(s) {
		switch s[i] {
		case '*', '?', '[', '\\':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}

// Room checks that the disk of a file or folder that may not exist yet has room
// for so many bytes, and a little more.
func Room(dir string, need uint64) error {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		have, err := diskspace.Free(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue
		}
		if err != nil {
			return fmt.Errorf("free space of %s: %w", at, err)
		}
		if have < need+64<<20 {
			return fmt.Errorf("%s: the graph needs %s and %s are free; make room or choose another disk", dir, formatBytes(need), formatBytes(have))
		}
		return nil
	}
}

// formatBytes prints a number of bytes.
func formatBytes(b uint64) string {
	if b < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(b)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(b)/1e9)
}

// wrapWriteError says which graph was being written.
func (p *partial) wrapWriteError(err error) error {
	if err != nil {
		return fmt.Errorf("write graph %s: %w", p.dir, err)
	}
	return nil
}

// noteFile notes a file that is whole.
func (p *partial) noteFile(f FileInfo, err error) error {
	p.meta.Files = append(p.meta.Files, f)
	return p.wrapWriteError(err)
}

// finishPartial writes graph.json and gives the folder its name.
func (p *partial) finishPartial(ctx context.Context) error {
	if err := p.meta.writeMeta(p.tmp); err != nil {
		return p.wrapWriteError(err)
	}
	if err := ctx.Err(); err != nil {
		return p.wrapWriteError(err)
	}
	if err := os.Remove(filepath.Join(p.tmp, lockFile)); err != nil {
		return p.wrapWriteError(err)
	}
	if err := syncGraphDir(p.tmp); err != nil {
		return p.wrapWriteError(err)
	}
	if err := os.Rename(p.tmp, p.dir); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s: %w", p.dir, ErrExists)
		}
		return err
	}
	p.ended = true
	return errors.Join(p.lock.Close(), syncGraphDir(filepath.Dir(filepath.Clean(p.dir))))
}

// syncGraphDir makes the names in a folder last.
func syncGraphDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// abortPartial removes what was written; after finish it does nothing.
func (p *partial) abortPartial() {
	if p.ended {
		return
	}
	p.ended = true
	_ = os.RemoveAll(p.tmp)
	if p.lock != nil {
		_ = p.lock.Close()
	}
}
