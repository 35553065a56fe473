package webgraph

import (
	"context"
	"errors"
	"fmt"
)

// Options say how a graph is written.
type Options struct {
	// Nodes and Links are what will come, as far as it is known: Create refuses to
	// begin when the disk has no room for it.
	Nodes, Links int64
	// Made is put into graph.json to tell what made the graph; anything that
	// encoding/json takes.
	Made any
	// Memory is how many bytes may be taken for sorting, 1 GB if 0.
	Memory int64
	// Progress is called with the links that Finish has done; may be nil.
	Progress func(what string, done, total int64)
}

func (o *Options) memoryLimit() uint64 {
	if o.Memory <= 0 {
		return 1 << 30
	}
	return uint64(max(o.Memory, 1<<20))
}

func (o *Options) reportProgress(what string, done, total int64) {
	if o.Progress != nil {
		o.Progress(what, done, total)
	}
}

// Writer writes a graph page by page. It is not safe for concurrent use.
type Writer struct {
	*partial
	opt      Options
	starts   *numberFile[uint64]
	links    *numberFile[uint32]
	sites    []uint32
	names    []string
	greatest uint32 // page that is linked to
}

// Create begins a graph that will be dir. Until Finish has done everything it is
// a folder next to dir whose name tells that it is partial.
func Create(dir string, opt Options) (_ *Writer, err error) {
	if opt.Nodes > MaxNodes {
		return nil, fmt.Errorf("%d pages: a stored graph has %d at most; `web serve --virtual` goes beyond", opt.Nodes, uint64(MaxNodes))
	}
	p, err := beginPartial(dir, uint64(Bytes(opt.Nodes, opt.Links)), opt.Made)
	if err != nil {
		return nil, err
	}
	w := &Writer{partial: p, opt: opt}
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	if w.starts, err = createNumbers[uint64](w.tmp, outStartsFile); err != nil {
		return nil, err
	}
	if w.links, err = createNumbers[uint32](w.tmp, outLinksFile); err != nil {
		return nil, err
	}
	return w, w.starts.appendNumber(0)
}

// Bytes returns the size of a stored graph, without sites and columns.
func Bytes(nodes, links int64) int64 { return 2 * (8*(nodes+1) + 4*links) }

// Nodes returns the number of pages so far.
func (w *Writer) Nodes() int64 { return w.starts.n - 1 }

// Links returns the number of links so far.
func (w *Writer) Links() int64 { return w.links.n }

// Append adds the next page with its links, in the order of the page. They may
// lead to pages that come later.
func (w *Writer) Append(links []uint32) error {
	for i, v := range links {
		w.greatest = max(w.greatest, v)
		if i > 0 && v <= links[i-1] {
			w.meta.Sorted = false
		}
	}
	if err := w.links.writeNumbers(links); err != nil {
		return w.wrapWriteError(err)
	}
	return w.wrapWriteError(w.starts.appendNumber(uint64(w.links.n)))
}

// SetSites tells the first page of each site, in ascending order from 0.
func (w *Writer) SetSites(first []uint32) { w.sites = first }

// SetNames tells the name of each page, such as its URL.
func (w *Writer) SetNames(names []string) { w.names = names }

// Abort removes what was written. After Finish it does nothing, so that it can
// be deferred.
func (w *Writer) Abort() {
	if w.starts != nil {
		_ = w.starts.f.Close()
	}
	if w.links != nil {
		_ = w.links.f.Close()
	}
	w.abortPartial()
}

// Finish writes the links the other way round, the sites and graph.json, and
// gives the folder its name. If it fails or ctx ends nothing is left.
func (w *Writer) Finish(ctx context.Context) error {
	defer w.Abort()
	n := w.Nodes()
	switch {
	case n == 0:
		return fmt.Errorf("graph %s: it has no pages", w.dir)
	case n > MaxNodes:
		return fmt.Errorf("graph %s: %d pages: a stored graph has %d at most", w.dir, n, uint64(MaxNodes))
	case w.links.n > 0 && int64(w.greatest) >= n:
		return fmt.Errorf("graph %s: a link goes to page %d of %d", w.dir, w.greatest, n)
	}
	w.meta.Nodes, w.meta.Links = n, w.links.n
	for _, end := range []func() (FileInfo, error){w.starts.finishNumbers, w.links.finishNumbers} {
		if err := w.noteFile(end()); err != nil {
			return err
		}
	}
	if err := w.writeReverse(ctx); err != nil {
		return w.wrapWriteError(err)
	}
	if w.sites != nil {
		if err := checkSites(w.sites, uint64(n)); err != nil {
			return w.wrapWriteError(err)
		}
		w.meta.Sites = int64(len(w.sites))
		if err := w.noteFile(writeNumbers(w.tmp, sitesFile, append(w.sites[:len(w.sites):len(w.sites)], uint32(n)))); err != nil {
			return err
		}
	}
	if w.names != nil {
		if err := w.writeNames(); err != nil {
			return w.wrapWriteError(err)
		}
	}
	return w.finishPartial(ctx)
}

// writeNames writes the names one after another, and where each begins.
func (w *Writer) writeNames() error {
	if int64(len(w.names)) != w.Nodes() {
		return fmt.Errorf("%d names for %d pages", len(w.names), w.Nodes())
	}
	starts := make([]uint64, 1, len(w.names)+1)
	text, err := createNumbers[uint8](w.tmp, namesFile)
	if err != nil {
		return err
	}
	for _, name := range w.names {
		if err := text.writeNumbers([]byte(name)); err != nil {
			return errors.Join(err, text.f.Close())
		}
		starts = append(starts, uint64(text.n))
	}
	w.meta.Names = text.n
	return errors.Join(w.noteFile(text.finishNumbers()), w.noteFile(writeNumbers(w.tmp, nameStartsFile, starts)))
}

// writeReverse writes the links to each page.
func (w *Writer) writeReverse(ctx context.Context) (err error) {
	g := Graph{dir: w.tmp, meta: w.meta}
	defer func() { err = errors.Join(err, g.Close()) }()
	n, m := w.meta.Nodes, w.meta.Links
	if g.out.starts, err = mapNumbers[uint64](&g, outStartsFile, n+1); err != nil {
		return err
	}
	if g.out.links, err = mapNumbers[uint32](&g, outLinksFile, m); err != nil {
		return err
	}
	starts, err := newMapped[uint64](w.tmp, inStartsFile, n+1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, starts.closeMapped()) }()
	countIn(g.out, starts.v)
	if err := w.noteFile(starts.hashMapped()); err != nil {
		return err
	}
	in, err := createNumbers[uint32](w.tmp, inLinksFile)
	if err != nil {
		return err
	}
	budget := w.opt.memoryLimit() / 4
	pass, all := int64(0), transposePasses(starts.v, budget)*m
	emit := func(links []uint32) error {
		pass++
		return in.writeNumbers(links)
	}
	done := func(links int64) { w.opt.reportProgress("links the other way round", pass*m+links, all) }
	if err := transposeInSlices(ctx, g.out, starts.v, budget, emit, done); err != nil {
		return errors.Join(err, in.f.Close())
	}
	return w.noteFile(in.finishNumbers())
}
