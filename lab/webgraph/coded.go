package webgraph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/freshet/freshet/lab/webgraph/pack"
)

// coded is one direction of a graph whose lists are coded (package pack): a
// sixth of the room, and a list takes some microseconds to read instead of the time
// of a miss of the caches.
type coded struct {
	lists   *pack.Lists
	file    string    // of the bits
	readers sync.Pool // of *pack.Reader
}

// Names of the files of a coded direction, after "out." or "in.".
const (
	bitsFile   = "bits"
	codesFile  = "codes"
	placesFile = "places"
	ranksFile  = "ranks"
)

func (g *Graph) isCoded() bool { return g.meta.Coded }

// Coded reports whether the links are coded. Lists are then decoded when they are
// asked for; View makes that faster.
func (g *Graph) Coded() bool { return g.meta.Coded }

// mapCoded maps the files of coded links.
func (g *Graph) mapCoded() error {
	for i, prefix := range []string{"out.", "in."} {
		var p pack.Parts
		var errs [4]error
		p.Bits, errs[0] = mapSome[uint8](g, prefix+bitsFile)
		p.Codes, errs[1] = mapSome[uint8](g, prefix+codesFile)
		p.Places, errs[2] = mapSome[uint64](g, prefix+placesFile)
		p.Ranks, errs[3] = mapSome[uint64](g, prefix+ranksFile)
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		if err := g.plausibleSites(); err != nil { // lists are told by sites
			return err
		}
		c := &coded{file: filepath.Join(g.dir, prefix+bitsFile)}
		var err error
		if c.lists, err = pack.Open(p, g.meta.Nodes, g.meta.Links, g.sites); err != nil {
			return &DamagedError{filepath.Join(g.dir, prefix+"*"), err.Error()}
		}
		c.readers.New = func() any { return c.lists.NewReader() }
		g.codes[i] = c
	}
	return nil
}

// decodeOwnList decodes a list into a slice of its own.
func (c *coded) decodeOwnList(u uint32) []uint32 {
	r := c.readers.Get().(*pack.Reader)
	defer c.readers.Put(r)
	return slices.Clone(c.readCodedList(r, u))
}

// readCodedList decodes a list; the slice is the reader's. The graph was verified when it
// was opened, so an error means that its files were changed since.
func (c *coded) readCodedList(r *pack.Reader, u uint32) []uint32 {
	list, err := r.List(u)
	if err != nil {
		panic(&DamagedError{c.file, err.Error()})
	}
	return list
}

// Lists are the links of a graph as algorithms want them.
type Lists = interface {
	Nodes() int
	Links() int64
	Out(u uint32) []uint32
	In(u uint32) []uint32
}

// View returns the graph for the use of one goroutine. A list is valid until the
// next one of the same direction is asked for. Of a graph whose links are coded it
// is much faster than the graph itself, the more so the nearer lists are that are
// asked for one after another; of any other it is the graph.
func (g *Graph) View() Lists {
	if !g.isCoded() {
		return g
	}
	return &view{g, g.codes[0].lists.NewReader(), g.codes[1].lists.NewReader()}
}

// view is a graph with readers of its own.
type view struct {
	*Graph
	out, in *pack.Reader
}

func (v *view) Out(u uint32) []uint32 { return v.codes[0].readCodedList(v.out, u) }
func (v *view) In(u uint32) []uint32  { return v.codes[1].readCodedList(v.in, u) }

// plausibleCoded reads all lists.
func (g *Graph) plausibleCoded(ctx context.Context) error {
	const pages = 1 << 16
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	n := g.Nodes()
	counts := make([][2]int64, (n+pages-1)/pages)
	for i := range counts {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			for k, c := range g.codes {
				r := c.lists.NewReader()
				for u := i * pages; u < min((i+1)*pages, n); u++ {
					list, err := r.List(uint32(u))
					if err != nil {
						return &DamagedError{c.file, err.Error()}
					}
					counts[i][k] += int64(len(list))
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var sum [2]int64
	for _, c := range counts {
		sum[0] += c[0]
		sum[1] += c[1]
	}
	for k, have := range sum {
		if have != g.meta.Links {
			return &DamagedError{g.codes[k].file, fmt.Sprintf("%d links, not %d", have, g.meta.Links)}
		}
	}
	return nil
}

// ErrUnsorted is wrapped by the error of Code for a graph whose lists do not
// ascend, each link once.
var ErrUnsorted = errors.New("the links of its pages do not ascend, each once, as codes need; import it with --simple")

// Code writes a graph as dir with its links coded, and with its sites, names and
// columns. What is written is read again and compared with the graph, list by
// list. It keeps 5 bytes a page in memory.
func Code(ctx context.Context, g *Graph, dir string, opt Options) (err error) {
	if !g.meta.Sorted {
		return fmt.Errorf("%s: %w", g.dir, ErrUnsorted)
	}
	// Nine bits a link are seldom exceeded; what is free is looked at again when
	// the size of one direction is known.
	var others int64
	for _, f := range g.meta.Files {
		if !linkFile(f.Name) {
			others += f.Bytes
		}
	}
	p, err := beginPartial(dir, uint64(others+2*9*g.meta.Links/8+g.meta.Nodes/4), g.meta.Made)
	if err != nil {
		return err
	}
	defer p.abortPartial()
	p.meta.Nodes, p.meta.Links, p.meta.Sites, p.meta.Names = g.meta.Nodes, g.meta.Links, g.meta.Sites, g.meta.Names
	p.meta.Coded, p.meta.Version, p.meta.Columns = true, codedVersion, g.meta.Columns
	for _, d := range []struct {
		prefix string
		of     func(Lists) func(uint32) []uint32
	}{
		{"out.", func(l Lists) func(uint32) []uint32 { return l.Out }},
		{"in.", func(l Lists) func(uint32) []uint32 { return l.In }},
	} {
		src := pack.Source{Nodes: g.meta.Nodes, Links: g.meta.Links, Sites: g.sites, View: func() func(uint32) []uint32 { return d.of(g.View()) }}
		o := pack.Options{Workers: runtime.GOMAXPROCS(0), Progress: func(done, total int64) { opt.reportProgress("coded: "+d.prefix[:len(d.prefix)-1], done, total) }}
		if err := p.codeDirection(ctx, d.prefix, src, o); err != nil {
			return p.wrapWriteError(err)
		}
	}
	for _, f := range g.meta.Files {
		if linkFile(f.Name) {
			continue
		}
		if err := p.noteFile(copyGraphFile(g.dir, p.tmp, f)); err != nil {
			return err
		}
	}
	if err := p.compareWritten(ctx, g, opt); err != nil {
		return p.wrapWriteError(err)
	}
	return p.finishPartial(ctx)
}

// compareWritten compares the written lists with the lists of g.
func (p *partial) compareWritten(ctx context.Context, g *Graph, opt Options) (err error) {
	written := &Graph{dir: p.tmp, meta: p.meta}
	defer func() { err = errors.Join(err, written.Close()) }()
	if err := written.mapAll(); err != nil {
		return err
	}
	const pages = 1 << 16
	var done atomic.Int64
	var telling sync.Mutex // one at a time
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	n := g.Nodes()
	for from := 0; from < n; from += pages {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			have, want := written.View(), g.View()
			for u := uint32(from); int(u) < min(from+pages, n); u++ {
				if !slices.Equal(have.Out(u), want.Out(u)) || !slices.Equal(have.In(u), want.In(u)) {
					return fmt.Errorf("the coded lists of page %d are not those of the graph", u)
				}
			}
			if d := done.Add(pages); telling.TryLock() {
				opt.reportProgress("compared", min(d, int64(n)), int64(n))
				telling.Unlock()
			}
			return nil
		})
	}
	return group.Wait()
}

// linkFile reports whether a file holds links.
func linkFile(name string) bool {
	for _, prefix := range []string{"out.", "in."} {
		for _, f := range []string{bitsFile, codesFile, placesFile, ranksFile, "starts", "links"} {
			if name == prefix+f {
				return true
			}
		}
	}
	return false
}

// codeDirection writes the files of one direction.
func (p *partial) codeDirection(ctx context.Context, prefix string, src pack.Source, opt pack.Options) error {
	bits, err := createNumbers[uint8](p.tmp, prefix+bitsFile)
	if err != nil {
		return err
	}
	parts, err := pack.Write(ctx, src, opt, byteWriter{bits})
	if err != nil {
		return errors.Join(err, bits.f.Close())
	}
	return errors.Join(
		p.noteFile(bits.finishNumbers()),
		p.noteFile(writeNumbers(p.tmp, prefix+codesFile, parts.Codes)),
		p.noteFile(writeNumbers(p.tmp, prefix+placesFile, parts.Places)),
		p.noteFile(writeNumbers(p.tmp, prefix+ranksFile, parts.Ranks)),
	)
}

// byteWriter writes bytes to a file of numbers.
type byteWriter struct{ w *numberFile[uint8] }

func (b byteWriter) Write(v []byte) (int, error) { return len(v), b.w.writeNumbers(v) }

// copyGraphFile copies a file of a graph and checks it on the way.
func copyGraphFile(from, to string, f FileInfo) (FileInfo, error) {
	in, err := os.Open(filepath.Join(from, f.Name))
	if err != nil {
		return f, err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(to, f.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return f, err
	}
	s := newSums()
	_, err = io.Copy(io.MultiWriter(out, s), in)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return f, err
	}
	got := s.sumsInfo(f.Name)
	if got.XXH3 != f.XXH3 {
		return f, &DamagedError{filepath.Join(from, f.Name), "its checksum is wrong"}
	}
	return got, nil
}
