package webgraph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// checkedAlways is the size of a graph up to which it is checked whole whenever it
// is opened: a tenth of a second of reading.
const checkedAlways = 256 << 20

// totalBytes returns the size of all files.
func (m *Meta) totalBytes() (size int64) {
	for _, f := range m.Files {
		size += f.Bytes
	}
	return size
}

// verifyEffort is how many bytes could be read while the graph is verified: coded lists
// are decoded.
func (m *Meta) verifyEffort() int64 {
	if m.Coded {
		return 16 * m.totalBytes()
	}
	return m.totalBytes()
}

// Verify reads the whole graph and compares it with its checksums; then no list
// of links can lead outside the graph. It takes about a second for 2 GB in
// memory. tell is told how many bytes are done; nil: nobody. Damage is a
// *DamagedError that names the file and, of one over 16 MiB, the place.
func (g *Graph) Verify(ctx context.Context, tell func(done, total int64)) error {
	if g.dir == "" {
		return nil
	}
	if err := g.verifyFiles(ctx, tell); err != nil {
		return err
	}
	return g.checkPlausible(ctx)
}

// verifyFiles checks the pieces of all files.
func (g *Graph) verifyFiles(ctx context.Context, tell func(done, total int64)) (err error) {
	var done atomic.Int64
	var telling sync.Mutex // one at a time
	total := g.meta.totalBytes()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var open []mapping
	defer func() {
		for _, m := range open {
			err = errors.Join(err, m.unmap())
		}
	}()
	for i := range g.meta.Files {
		f := &g.meta.Files[i]
		path := filepath.Join(g.dir, f.Name)
		m, err := mapFile(path, f.Bytes)
		if errors.Is(err, os.ErrNotExist) {
			err = &DamagedError{path, "it is missing"}
		}
		if err != nil {
			return errors.Join(group.Wait(), err)
		}
		open = append(open, m)
		for piece := range f.pieceCount() {
			group.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				if why := f.checkPiece(m.data, piece); why != "" {
					return &DamagedError{path, why}
				}
				if d := done.Add(f.Bytes / int64(f.pieceCount())); tell != nil && telling.TryLock() {
					tell(d, total)
					telling.Unlock()
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// checkPlausible checks that the files fit each other: a folder can be forged or
// mixed from two graphs with all its checksums right.
func (g *Graph) checkPlausible(ctx context.Context) error {
	for u := 1; u < len(g.nameAt); u++ {
		if a, b := g.nameAt[u-1], g.nameAt[u]; a > b || b > uint64(len(g.names)) {
			return &DamagedError{filepath.Join(g.dir, nameStartsFile), fmt.Sprintf("the name of page %d ends before it begins or after the last", u-1)}
		}
	}
	if g.isCoded() {
		return g.plausibleCoded(ctx)
	}
	for _, d := range g.linkDirections() {
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
	return g.plausibleSites()
}

// plausibleSites checks the table of sites.
func (g *Graph) plausibleSites() error {
	n := g.Sites()
	if n == 0 {
		return nil
	}
	path := filepath.Join(g.dir, sitesFile)
	if err := checkSites(g.sites[:n], uint64(g.Nodes())); err != nil {
		return &DamagedError{path, err.Error()}
	}
	if int(g.sites[n]) != g.Nodes() {
		return &DamagedError{path, "it does not end with the last page"}
	}
	return nil
}

// markFile tells that a great graph was verified, and how its files were then.
const markFile = "verified"

// verified is what the mark holds: anything that writes to a file, or puts
// another in its place, changes it.
type verified struct {
	Meta  string  `json:"meta"` // checksum of graph.json
	Files []stamp `json:"files"`
}

type stamp struct {
	Name  string `json:"name"`
	Inode uint64 `json:"inode"`
	Bytes int64  `json:"bytes"`
	Wrote int64  `json:"wrote"`   // time of the last writing, ns
	Since int64  `json:"changed"` // of the last change of anything
}

// fileStamps returns how the files are now.
func (g *Graph) fileStamps() (*verified, error) {
	v := &verified{Meta: g.meta.Checksum}
	for _, f := range g.meta.Files {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(g.dir, f.Name), &st); err != nil {
			return nil, err
		}
		v.Files = append(v.Files, stamp{f.Name, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()})
	}
	return v, nil
}

// isMarkedVerified reports whether the graph was verified as it is now.
func (g *Graph) isMarkedVerified() bool {
	have, err := os.ReadFile(filepath.Join(g.dir, markFile))
	if err != nil {
		return false
	}
	v, err := g.fileStamps()
	if err != nil {
		return false
	}
	want, err := json.Marshal(v)
	return err == nil && string(have) == string(want)
}

// markVerified tells that the graph is verified. Where it cannot, as in a folder that may
// only be read, the graph will be verified again.
func (g *Graph) markVerified() {
	v, err := g.fileStamps()
	if err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		return
	}
	path := filepath.Join(g.dir, markFile)
	if writeSyncedFile(path+".new", b) == nil {
		_ = os.Rename(path+".new", path)
	}
}
