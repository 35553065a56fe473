// Package manifest keeps the list of files that are an index: the one file
// that is replaced, so that a change of many files happens at once.
//
// A manifest is written to MANIFEST.new, synced, renamed to MANIFEST, and the
// directory is synced. Files that it does not name are left over from a crash.
//
//	freshet index 1 0123456789abcdef     version and XXH3 of the rest, in hex
//	{"cursor": ..., "segments": [...]}   JSON
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zeebo/xxh3"
)

// Version is the format that this package writes and reads.
const Version = 1

// Name is the file of the manifest.
const Name = "MANIFEST"

// ErrDamaged is the error of a manifest that is not as it was written.
var ErrDamaged = errors.New("the list of the index's files is damaged")

// ErrVersion is the error of an index in another format.
var ErrVersion = errors.New("the index was written by another version")

// Manifest is what an index consists of.
type Manifest struct {
	// Cursor is what Engine.Cursor returns.
	Cursor []byte `json:"cursor,omitempty"`
	// Next is the number of the next file.
	Next     uint64    `json:"next"`
	Segments []Segment `json:"segments"`
}

// Segment names the files of a segment.
type Segment struct {
	File string `json:"file"`
	Size int64  `json:"size"`
	// State, if not empty, is the file of deleted documents and popularity.
	State string `json:"state,omitempty"`
}

// Read reads the manifest of a directory; fs.ErrNotExist if there is none.
func Read(dir string) (*Manifest, error) {
	path := filepath.Join(dir, Name)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	m, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("index: %s: %w", path, err)
	}
	return m, nil
}

// Parse reads a manifest.
func Parse(b []byte) (*Manifest, error) {
	head, body, ok := strings.Cut(string(b), "\n")
	var version int
	var sum uint64
	if n, err := fmt.Sscanf(head, "freshet index %d %016x", &version, &sum); !ok || err != nil || n != 2 {
		return nil, ErrDamaged
	}
	if headerLine(version, body) != head+"\n" {
		return nil, ErrDamaged
	}
	if version != Version {
		return nil, fmt.Errorf("format %d, this program reads %d: %w", version, Version, ErrVersion)
	}
	var m Manifest
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, s := range m.Segments {
		for _, name := range []string{s.File, s.State} {
			if name != "" && (filepath.Base(name) != name || name == "." || name == "..") {
				return nil, fmt.Errorf("file name %q: %w", name, ErrDamaged)
			}
		}
	}
	return &m, nil
}

// headerLine returns the first line.
func headerLine(version int, body string) string {
	return fmt.Sprintf("freshet index %d %016x\n", version, xxh3.HashString(fmt.Sprint(version)+body))
}

// Write replaces the manifest of a directory; it is durable when Write returns.
// All files that it names must be.
func Write(dir string, m *Manifest) error {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	fresh := filepath.Join(dir, Name+".new")
	if err := WriteFile(fresh, []byte(headerLine(Version, string(body))+string(body))); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(dir, Name)); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return SyncDir(dir)
}

// WriteFile writes and syncs a file; a file of that name is replaced.
func WriteFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// SyncFile makes the contents of a file durable.
func SyncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// SyncDir makes the names of a directory durable.
func SyncDir(dir string) error { return SyncFile(dir) }

// RemoveOthers removes files that an index wrote and the manifest does not name.
func (m *Manifest) RemoveOthers(dir string) error {
	named := map[string]bool{}
	for _, s := range m.Segments {
		named[s.File], named[s.State] = true, true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if ext != SegmentExt && ext != StateExt && e.Name() != Name+".new" || named[e.Name()] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("index: %w", err)
		}
	}
	return nil
}

// Extensions of the files of an index.
const (
	SegmentExt = ".segment"
	StateExt   = ".state"
)
