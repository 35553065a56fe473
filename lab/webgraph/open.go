package webgraph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Open opens a stored graph and checks all of it, as OpenTold does.
func Open(dir string) (*Graph, error) { return OpenTold(context.Background(), dir, nil) }

// OpenTold opens a stored graph. It checks graph.json and the sizes of all files.
// Of a graph of up to 256 MB (coded: 16 MB) it also checks everything else, as Verify does; of a
// greater one when that was not done since its files were changed, which a file
// "verified" in the folder tells (where that cannot be written, each time). tell
// is told how many bytes are checked; nil: nobody. What is wrong with a file is a
// *DamagedError.
func OpenTold(ctx context.Context, dir string, tell func(done, total int64)) (*Graph, error) {
	return openVerified(ctx, dir, checkedAlways, tell)
}

// openVerified opens a graph, and trusts the mark that it was verified if it has more than
// always bytes.
func openVerified(ctx context.Context, dir string, always int64, tell func(done, total int64)) (*Graph, error) {
	g, err := OpenUnchecked(dir)
	if err != nil {
		return nil, err
	}
	if g.meta.verifyEffort() > always && g.isMarkedVerified() {
		return g, nil
	}
	if err := g.Verify(ctx, tell); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if g.meta.verifyEffort() > always {
		g.markVerified()
	}
	return g, nil
}

// OpenUnchecked opens a stored graph without reading more than graph.json,
// whatever its size. Reading links of a damaged one may panic.
func OpenUnchecked(dir string) (*Graph, error) {
	if !littleEndian() {
		return nil, errors.New("stored graphs can be opened on little-endian machines only")
	}
	meta, err := readMeta(dir)
	if err != nil {
		return nil, err
	}
	g := &Graph{dir: dir, meta: meta}
	if err := g.mapAll(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// mapAll maps the files of the graph, columns excepted.
func (g *Graph) mapAll() (err error) {
	n := g.meta.Nodes
	if g.meta.Sites > 0 {
		if g.sites, err = mapNumbers[uint32](g, sitesFile, g.meta.Sites+1); err != nil {
			return err
		}
	}
	if g.meta.Names > 0 {
		if g.names, err = mapNumbers[uint8](g, namesFile, g.meta.Names); err != nil {
			return err
		}
		if g.nameAt, err = mapNumbers[uint64](g, nameStartsFile, n+1); err != nil {
			return err
		}
	}
	if g.meta.Coded {
		return g.mapCoded()
	}
	for _, d := range g.linkDirections() {
		if d.rows.starts, err = mapNumbers[uint64](g, d.starts, n+1); err != nil {
			return err
		}
		if d.rows.links, err = mapNumbers[uint32](g, d.links, g.meta.Links); err != nil {
			return err
		}
		if s := d.rows.starts; s[0] != 0 || s[n] != uint64(g.meta.Links) {
			return &DamagedError{filepath.Join(g.dir, d.starts), fmt.Sprintf("it begins with %d and ends with %d, not %d", s[0], s[n], g.meta.Links)}
		}
	}
	return nil
}

// direction is the links of one direction and the files that hold them.
type direction struct {
	rows          *rows
	starts, links string
}

func (g *Graph) linkDirections() []direction {
	return []direction{{&g.out, outStartsFile, outLinksFile}, {&g.in, inStartsFile, inLinksFile}}
}

// mapNumbers maps a file of n numbers.
func mapNumbers[T Number](g *Graph, name string, n int64) ([]T, error) {
	var t T
	size := n * int64(numberSize(t))
	if f := g.meta.fileNamed(name); f == nil || f.Bytes != size {
		return nil, &DamagedError{filepath.Join(g.dir, metaFile), fmt.Sprintf("it does not list %s with %d bytes", name, size)}
	}
	return mapSome[T](g, name)
}

// mapSome maps a file of as many numbers as graph.json tells.
func mapSome[T Number](g *Graph, name string) ([]T, error) {
	f := g.meta.fileNamed(name)
	if f == nil {
		return nil, &DamagedError{filepath.Join(g.dir, metaFile), fmt.Sprintf("it does not list %s", name)}
	}
	path := filepath.Join(g.dir, name)
	m, err := mapFile(path, f.Bytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &DamagedError{path, "it is missing"}
	}
	if err != nil {
		return nil, err
	}
	g.mappings = append(g.mappings, m)
	return bytesAsNumbers[T](m.data), nil
}
