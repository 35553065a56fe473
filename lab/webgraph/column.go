package webgraph

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// ColumnInfo describes an attribute of the pages.
type ColumnInfo struct {
	Name string `json:"name"`
	Type string `json:"type"` // of Go: uint8 ... float64
	File string `json:"file"`
}

// columnName is what a column may be called: it becomes part of a file's name and
// an identifier of scripts.
var columnName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// typeName returns the name of the type that T's numbers have in a file.
func typeName[T Number]() string {
	switch any(*new(T)).(type) {
	case uint8:
		return "uint8"
	case uint16:
		return "uint16"
	case uint32:
		return "uint32"
	case uint64:
		return "uint64"
	case int8:
		return "int8"
	case int16:
		return "int16"
	case int32:
		return "int32"
	case int64:
		return "int64"
	case float32:
		return "float32"
	case float64:
		return "float64"
	}
	return fmt.Sprintf("%T", *new(T))
}

// SetColumn adds an attribute to a stored graph, one value a page, or replaces
// it. Whoever has the graph open keeps seeing the old one. Two programs must not
// do so at the same time.
func SetColumn[T Number](dir, name string, values []T) error {
	m, err := readMeta(dir)
	if err != nil {
		return err
	}
	if !columnName.MatchString(name) {
		return fmt.Errorf("column %.50q: a name is a small letter and up to 39 small letters, digits and _", name)
	}
	if int64(len(values)) != m.Nodes {
		return fmt.Errorf("column %s: %d values for %d pages", name, len(values), m.Nodes)
	}
	if err := Room(dir, uint64(len(values)*numberSize(values[0]))); err != nil {
		return err
	}
	// A file of a new name: until graph.json names it, the old column is whole.
	file := "column." + name
	for i := 2; m.fileNamed(file) != nil; i++ {
		file = fmt.Sprintf("column.%s.%d", name, i)
	}
	if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // left by a program that was killed
	}
	info, err := writeNumbers(dir, file, values)
	if err != nil {
		return fmt.Errorf("column %s: %w", name, err)
	}
	old := m.dropColumn(name)
	m.Files = append(m.Files, info)
	m.Columns = append(m.Columns, ColumnInfo{Name: name, Type: typeName[T](), File: file})
	if err := m.writeMeta(dir); err != nil {
		return fmt.Errorf("column %s: %w", name, err)
	}
	if old != "" {
		return os.Remove(filepath.Join(dir, old))
	}
	return nil
}

// dropColumn forgets a column and returns its file, "" if there was none.
func (m *Meta) dropColumn(name string) string {
	i := slices.IndexFunc(m.Columns, func(c ColumnInfo) bool { return c.Name == name })
	if i < 0 {
		return ""
	}
	file := m.Columns[i].File
	m.Columns = slices.Delete(m.Columns, i, i+1)
	m.Files = slices.DeleteFunc(m.Files, func(f FileInfo) bool { return f.Name == file })
	return file
}

// Column returns an attribute of all pages, mapped from its file. T must be the
// type it was written with.
func Column[T Number](g *Graph, name string) ([]T, error) {
	c, err := g.findColumn(name)
	if err != nil {
		return nil, err
	}
	if want := typeName[T](); c.Type != want {
		return nil, fmt.Errorf("column %s holds %s, not %s", name, c.Type, want)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return mapNumbers[T](g, c.File, g.meta.Nodes)
}

func (g *Graph) findColumn(name string) (ColumnInfo, error) {
	names := make([]string, len(g.meta.Columns))
	for i, c := range g.meta.Columns {
		if c.Name == name {
			return c, nil
		}
		names[i] = c.Name
	}
	return ColumnInfo{}, fmt.Errorf("the graph has no column %q; it has %q", name, names)
}

// Values returns an attribute of any type as a function.
func (g *Graph) Values(name string) (func(u uint32) float64, error) {
	c, err := g.findColumn(name)
	if err != nil {
		return nil, err
	}
	switch c.Type {
	case "uint8":
		return valuesOf[uint8](g, name)
	case "uint16":
		return valuesOf[uint16](g, name)
	case "uint32":
		return valuesOf[uint32](g, name)
	case "uint64":
		return valuesOf[uint64](g, name)
	case "int8":
		return valuesOf[int8](g, name)
	case "int16":
		return valuesOf[int16](g, name)
	case "int32":
		return valuesOf[int32](g, name)
	case "int64":
		return valuesOf[int64](g, name)
	case "float32":
		return valuesOf[float32](g, name)
	case "float64":
		return valuesOf[float64](g, name)
	}
	return nil, fmt.Errorf("column %s: no numbers of type %q are known", name, c.Type)
}

func valuesOf[T Number](g *Graph, name string) (func(uint32) float64, error) {
	v, err := Column[T](g, name)
	return func(u uint32) float64 { return float64(v[u]) }, err
}
