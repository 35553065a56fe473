package webgraph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"
)

// checkedAtOpen is the size of a graph up to which Open checks it whole: a tenth
// of a second of reading.
const checkedAtOpen = 256 << 20

// Open opens a stored graph. It checks graph.json and the sizes of all files,
// and, of a graph of up to 256 MB, everything else as Verify does. What is wrong
// with a file is a *DamagedError.
func Open(dir string) (*Graph, error) {
	g, err := OpenUnchecked(dir)
	if err != nil {
		return nil, err
	}
	var size int64
	for _, f := range g.meta.Files {
		size += f.Bytes
	}
	if size <= checkedAtOpen {
		if err := g.Verify(context.Background()); err != nil {
			return nil, errors.Join(err, g.Close())
		}
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
	n, m := g.meta.Nodes, g.meta.Links
	for _, d := range []struct {
		rows          *rows
		starts, links string
	}{{&g.out, outStartsFile, outLinksFile}, {&g.in, inStartsFile, inLinksFile}} {
		if d.rows.starts, err = mapNumbers[uint64](g, d.starts, n+1); err != nil {
			return err
		}
		if d.rows.links, err = mapNumbers[uint32](g, d.links, m); err != nil {
			return err
		}
		if s := d.rows.starts; s[0] != 0 || s[n] != uint64(m) {
			return &DamagedError{filepath.Join(g.dir, d.starts), fmt.Sprintf("it begins with %d and ends with %d, not %d", s[0], s[n], m)}
		}
	}
	if g.meta.Sites > 0 {
		if g.sites, err = mapNumbers[uint32](g, sitesFile, g.meta.Sites+1); err != nil {
			return err
		}
	}
	if g.meta.Names > 0 {
		if g.names, err = mapNumbers[uint8](g, namesFile, g.meta.Names); err != nil {
			return err
		}
		g.nameAt, err = mapNumbers[uint64](g, nameStartsFile, n+1)
	}
	return err
}

// mapNumbers maps a file of n numbers.
func mapNumbers[T Number](g *Graph, name string, n int64) ([]T, error) {
	var t T
	path := filepath.Join(g.dir, name)
	size := n * int64(sizeOf(t))
	if f := g.meta.file(name); f == nil || f.Bytes != size {
		return nil, &DamagedError{filepath.Join(g.dir, metaFile), fmt.Sprintf("it does not list %s with %d bytes", name, size)}
	}
	m, err := mapFile(path, size)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &DamagedError{path, "it is missing"}
	}
	if err != nil {
		return nil, err
	}
	g.mappings = append(g.mappings, m)
	return numbers[T](m.data), nil
}

// Verify reads the whole graph and compares it with its checksums; then no list
// of links can lead outside the graph. It takes about a second for 2 GB in
// memory. Damage is a *DamagedError that names the file.
func (g *Graph) Verify(ctx context.Context) error {
	if g.dir == "" {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, f := range g.meta.Files {
		group.Go(func() error { return verifyFile(ctx, filepath.Join(g.dir, f.Name), f) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return g.plausible()
}

func verifyFile(ctx context.Context, path string, f FileInfo) error {
	m, err := mapFile(path, f.Bytes)
	if errors.Is(err, os.ErrNotExist) {
		return &DamagedError{path, "it is missing"}
	}
	if err != nil {
		return err
	}
	h := xxh3.New()
	for rest := m.data; len(rest) > 0 && err == nil; {
		n := min(len(rest), 16<<20)
		_, _ = h.Write(rest[:n]) // never fails
		rest = rest[n:]
		err = ctx.Err()
	}
	if err == nil && sumString(h.Sum64()) != f.XXH3 {
		err = &DamagedError{path, "its checksum is wrong"}
	}
	return errors.Join(err, m.close())
}

// plausible checks that the files fit each other: a folder can be forged or
// mixed from two graphs with all its checksums right.
func (g *Graph) plausible() error {
	for _, d := range []struct {
		rows          rows
		starts, links string
	}{{g.out, outStartsFile, outLinksFile}, {g.in, inStartsFile, inLinksFile}} {
		for u := range g.Nodes() {
			if d.rows.starts[u] > d.rows.starts[u+1] {
				return &DamagedError{filepath.Join(g.dir, d.starts), fmt.Sprintf("the links of page %d end before they begin", u)}
			}
		}
		n := uint32(g.Nodes())
		for i, v := range d.rows.links {
			if v >= n {
				return &DamagedError{filepath.Join(g.dir, d.links), fmt.Sprintf("link %d goes to page %d of %d", i, v, n)}
			}
		}
	}
	for u := 1; u < len(g.nameAt); u++ {
		if a, b := g.nameAt[u-1], g.nameAt[u]; a > b || b > uint64(len(g.names)) {
			return &DamagedError{filepath.Join(g.dir, nameStartsFile), fmt.Sprintf("the name of page %d ends before it begins or after the last", u-1)}
		}
	}
	if n := g.Sites(); n > 0 {
		if err := checkSites(g.sites[:n], uint64(g.Nodes())); err != nil {
			return &DamagedError{filepath.Join(g.dir, sitesFile), err.Error()}
		}
		if int(g.sites[n]) != g.Nodes() {
			return &DamagedError{filepath.Join(g.dir, sitesFile), "it does not end with the last page"}
		}
	}
	return nil
}
