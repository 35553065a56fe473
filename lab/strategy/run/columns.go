package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"github.com/freshet/freshet/lab/strategy/check"
	"github.com/freshet/freshet/lab/strategy/contain"
)

// column holds an attribute of all nodes: an array in a mapped file, because a
// number of a database row costs hundreds of times as much. One of the slices
// is set, by type; nodes are stored with 1 added, so that 0 is none.
type column struct {
	attr  *check.Attr
	file  *contain.Mapped
	bools []uint8
	ints  []int64
	reals []float64
	nodes []uint32
}

// valueBytes is the number of bytes of a value.
func valueBytes(t *check.Type) int64 {
	switch t.Kind {
	case check.Boolean:
		return 1
	case check.Node:
		return 4
	}
	return 8
}

func newColumn(env *contain.Env, a *check.Attr, nodes int) (*column, error) {
	f, err := contain.NewMapped(env, "column", int64(nodes)*valueBytes(a.Type))
	if err != nil {
		return nil, err
	}
	c := &column{attr: a, file: f}
	b := f.Data()
	switch a.Type.Kind {
	case check.Boolean:
		c.bools = b
	case check.Node:
		c.nodes = mappedNumbers[uint32](b)
	case check.Real:
		c.reals = mappedNumbers[float64](b)
	default:
		c.ints = mappedNumbers[int64](b)
	}
	return c, nil
}

// mappedNumbers shows mapped bytes as numbers; a mapping begins at a page, so it is
// aligned for all.
func mappedNumbers[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// saved describes the attributes that a checkpoint holds.
type saved struct {
	Nodes   int           `json:"nodes"`
	Columns []savedColumn `json:"columns"`
}

type savedColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Names in a folder of attributes: current holds the name of the folder with
// the last checkpoint.
const (
	currentFile = "current"
	savedFile   = "columns.json"
	columnExt   = ".column"
)

// loadCheckpoint fills columns from the last checkpoint in dir. Columns that the
// checkpoint does not have stay zero.
func loadCheckpoint(dir string, cols []*column, nodes int) error {
	gen, err := os.ReadFile(filepath.Join(dir, currentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	at := filepath.Join(dir, filepath.Base(strings.TrimSpace(string(gen))))
	b, err := os.ReadFile(filepath.Join(at, savedFile))
	if err != nil {
		return err
	}
	var s saved
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(at, savedFile), err)
	}
	if s.Nodes != nodes {
		return fmt.Errorf("%s: the attributes there are of a web of %d pages, this one has %d; choose another --work or remove it", dir, s.Nodes, nodes)
	}
	for _, c := range cols {
		for _, k := range s.Columns {
			if k.Name != c.attr.Name {
				continue
			}
			if k.Type != c.attr.Type.String() {
				return fmt.Errorf("%s: attribute %q is %s there, %s in the script; choose another --work or remove it", dir, k.Name, k.Type, c.attr.Type)
			}
			if err := readColumn(filepath.Join(at, k.Name+columnExt), c); err != nil {
				return err
			}
		}
	}
	return nil
}

func readColumn(path string, c *column) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	data := c.file.Data()
	if st.Size() != int64(len(data)) {
		return fmt.Errorf("%s: %d bytes, want %d: damaged; remove the folder of attributes", path, st.Size(), len(data))
	}
	if _, err := f.ReadAt(data, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if n := uint32(len(c.nodes)); n > 0 { // a stored node must be one
		for _, v := range c.nodes {
			if v > n {
				return fmt.Errorf("%s: node %d of %d: damaged; remove the folder of attributes", path, v-1, n)
			}
		}
	}
	for i, v := range c.bools {
		if v > 1 {
			return fmt.Errorf("%s: value %d of page %d is no boolean: damaged; remove the folder of attributes", path, v, i)
		}
	}
	return nil
}

// saveCheckpoint writes a checkpoint into dir: a new folder first, then its name, so that
// there is always a whole one. Attributes of the last checkpoint that this
// script does not have are kept.
func saveCheckpoint(dir string, cols []*column, nodes int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old := ""
	if b, err := os.ReadFile(filepath.Join(dir, currentFile)); err == nil {
		old = filepath.Base(strings.TrimSpace(string(b)))
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(old, "checkpoint-"))
	name := "checkpoint-" + strconv.Itoa(n+1)
	at := filepath.Join(dir, name)
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	s := saved{Nodes: nodes}
	for _, c := range cols {
		s.Columns = append(s.Columns, savedColumn{c.attr.Name, c.attr.Type.String()})
		if err := writeSynced(filepath.Join(at, c.attr.Name+columnExt), c.file.Data()); err != nil {
			return fmt.Errorf("checkpoint of attributes: %w", err)
		}
	}
	if old != "" {
		if err := keepOldColumns(filepath.Join(dir, old), at, &s); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(at, savedFile), append(b, '\n')); err != nil {
		return err
	}
	current := filepath.Join(dir, currentFile)
	if err := writeSynced(current+".new", []byte(name+"\n")); err != nil {
		return err
	}
	if err := os.Rename(current+".new", current); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(dir, old))
	}
	return nil
}

// keepOldColumns moves columns of the old checkpoint that the new one lacks.
func keepOldColumns(old, at string, s *saved) error {
	b, err := os.ReadFile(filepath.Join(old, savedFile))
	if err != nil {
		return err
	}
	var was saved
	if err := json.Unmarshal(b, &was); err != nil {
		return err
	}
	have := map[string]bool{}
	for _, k := range s.Columns {
		have[k.Name] = true
	}
	for _, k := range was.Columns {
		if have[k.Name] || k.Name != filepath.Base(k.Name) {
			continue
		}
		if err := os.Link(filepath.Join(old, k.Name+columnExt), filepath.Join(at, k.Name+columnExt)); err != nil {
			return err
		}
		s.Columns = append(s.Columns, k)
	}
	return nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
