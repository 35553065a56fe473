package webgraph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Builder makes a stored graph from links in any order, by external sorting:
// links are sorted in memory as many as it may hold, written out in runs, and the
// runs are merged. The sort is stable, so the links of a page stay in the order
// in which they came. It is not safe for concurrent use.
type Builder struct {
	w      *Writer
	simple bool
	nodes  int64    // at least
	chunk  int      // links that may be in memory
	buf    []uint64 // links: page << 32 | page that it links to
	spare  []uint64 // second array of the sort
	runs   []string // files
	links  int64
}

// BuilderOptions say how a graph is built.
type BuilderOptions struct {
	Options
	// Simple leaves out links of a page to itself and all but one of those to the
	// same page, and sorts the links of each page.
	Simple bool
	// MinNodes is the number of pages if no link names a greater page.
	MinNodes int64
}

// packLink packs a link so that links sort by their page.
func packLink(u, v uint32) uint64 { return uint64(u)<<32 | uint64(v) }

// NewBuilder begins the graph that will be dir.
func NewBuilder(dir string, opt BuilderOptions) (*Builder, error) {
	chunk := max(opt.memoryLimit()/16, 1024) // two arrays of 8 bytes a link
	if opt.Links > int64(chunk) {
		if err := Room(dir, uint64(Bytes(opt.Nodes, opt.Links)+8*opt.Links)); err != nil {
			return nil, err
		}
	}
	w, err := Create(dir, opt.Options)
	if err != nil {
		return nil, err
	}
	return &Builder{w: w, simple: opt.Simple, nodes: opt.MinNodes, chunk: int(chunk)}, nil
}

// Add adds a link from page u to page v.
func (b *Builder) Add(u, v uint32) error {
	if len(b.buf) >= b.chunk {
		if err := b.spillRun(); err != nil {
			return b.w.wrapWriteError(err)
		}
	}
	b.buf = append(b.buf, packLink(u, v))
	b.links++
	b.nodes = max(b.nodes, int64(u)+1, int64(v)+1)
	return nil
}

// SetSites tells the first page of each site, in ascending order from 0.
func (b *Builder) SetSites(first []uint32) { b.w.SetSites(first) }

// SetNames tells the name of each page, such as its URL.
func (b *Builder) SetNames(names []string) { b.w.SetNames(names) }

// Abort removes what was written; after Finish it does nothing.
func (b *Builder) Abort() {
	b.w.Abort()
	b.buf, b.spare = nil, nil
}

// runsDir is a folder in the partial graph for sorted runs.
func (b *Builder) runsDir() string { return filepath.Join(b.w.tmp, "runs") }

// spillRun writes the links in memory as a sorted run.
func (b *Builder) spillRun() error {
	if err := os.MkdirAll(b.runsDir(), 0o755); err != nil {
		return err
	}
	b.sortBuffered()
	name := fmt.Sprintf("run.%d", len(b.runs))
	w, err := createNumbers[uint64](b.runsDir(), name)
	if err != nil {
		return err
	}
	b.runs = append(b.runs, w.f.Name())
	err = w.writeNumbers(b.buf)
	b.buf = b.buf[:0]
	return errors.Join(err, w.flushNumbers(), w.f.Close())
}

// sortBuffered sorts the links in memory by page, stably.
func (b *Builder) sortBuffered() {
	if len(b.spare) < len(b.buf) {
		b.spare = make([]uint64, cap(b.buf))
	}
	b.buf, b.spare = sortByPage(b.buf, b.spare)
}

// digitBits is the width of a digit of the radix sort.
const digitBits = 11

// sortByPage sorts links by their page with a least-significant-digit radix sort,
// which is stable; digits that all links share cost no pass. It returns the
// sorted array first, the other second.
func sortByPage(a, spare []uint64) (sorted, other []uint64) {
	var or uint64
	for _, x := range a {
		or |= x
	}
	for shift := 32; shift < 64; shift += digitBits {
		if or>>shift == 0 {
			break
		}
		var count [1 << digitBits]int
		for _, x := range a {
			count[x>>shift&(1<<digitBits-1)]++
		}
		at := 0
		for d, n := range count {
			count[d] = at
			at += n
		}
		to := spare[:len(a)]
		for _, x := range a {
			d := x >> shift & (1<<digitBits - 1)
			to[count[d]] = x
			count[d]++
		}
		a, spare = to, a[:cap(a)]
	}
	return a, spare
}

// Finish sorts, writes the graph and gives it its name.
func (b *Builder) Finish(ctx context.Context) (err error) {
	defer b.Abort()
	if b.nodes > MaxNodes {
		return b.w.wrapWriteError(fmt.Errorf("page %d: the greatest number is %d", b.nodes-1, uint64(MaxNodes-1)))
	}
	if err := Room(b.w.dir, uint64(Bytes(b.nodes, b.links))); err != nil {
		return err
	}
	b.sortBuffered()
	b.spare = nil
	m := merger{runs: make([][]uint64, 0, len(b.runs)+1)}
	var mappings []mapping
	defer func() {
		for _, m := range mappings {
			err = errors.Join(err, m.unmap())
		}
	}()
	for _, name := range b.runs {
		st, err := os.Stat(name)
		if err != nil {
			return b.w.wrapWriteError(err)
		}
		run, err := mapFile(name, st.Size())
		if err != nil {
			return b.w.wrapWriteError(err)
		}
		mappings = append(mappings, run)
		m.runs = append(m.runs, bytesAsNumbers[uint64](run.data))
	}
	m.runs = append(m.runs, b.buf)
	if err := b.mergeRuns(ctx, &m); err != nil {
		return err
	}
	b.buf = nil
	if err := os.RemoveAll(b.runsDir()); err != nil {
		return b.w.wrapWriteError(err)
	}
	return b.w.Finish(ctx)
}

// mergeRuns writes the pages in order.
func (b *Builder) mergeRuns(ctx context.Context, m *merger) error {
	m.init()
	var list []uint32
	done := int64(0)
	for u := range b.nodes {
		if u&(1<<16-1) == 0 {
			if err := ctx.Err(); err != nil {
				return b.w.wrapWriteError(err)
			}
			b.w.opt.reportProgress("links sorted", done, b.links)
		}
		list = m.takePageLinks(uint32(u), list[:0])
		done += int64(len(list))
		if b.simple {
			list = simplifyLinks(uint32(u), list)
		}
		if err := b.w.Append(list); err != nil {
			return err
		}
	}
	return nil
}

// simplifyLinks sorts a list and leaves out u and what is there twice.
func simplifyLinks(u uint32, list []uint32) []uint32 {
	slices.Sort(list)
	list = slices.Compact(list)
	if i, ok := slices.BinarySearch(list, u); ok {
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// merger merges sorted runs: a heap of the runs by the page of their first link
// and, among equals, their age.
type merger struct {
	runs [][]uint64
	heap []int // runs that are not empty
}

func (m *merger) lessRun(a, b int) bool {
	ua, ub := m.runs[a][0]>>32, m.runs[b][0]>>32
	return ua < ub || ua == ub && a < b
}

func (m *merger) init() {
	for i, r := range m.runs {
		if len(r) > 0 {
			m.heap = append(m.heap, i)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.siftDown(i)
	}
}

func (m *merger) siftDown(i int) {
	for {
		c := 2*i + 1
		if c >= len(m.heap) {
			return
		}
		if c+1 < len(m.heap) && m.lessRun(m.heap[c+1], m.heap[c]) {
			c++
		}
		if m.lessRun(m.heap[i], m.heap[c]) {
			return
		}
		m.heap[i], m.heap[c] = m.heap[c], m.heap[i]
		i = c
	}
}

// takePageLinks appends the links of page u, which is the next one, to list.
func (m *merger) takePageLinks(u uint32, list []uint32) []uint32 {
	for len(m.heap) > 0 {
		top := m.heap[0]
		run := m.runs[top]
		if uint32(run[0]>>32) != u {
			break
		}
		for len(run) > 0 && uint32(run[0]>>32) == u {
			list = append(list, uint32(run[0]))
			run = run[1:]
		}
		m.runs[top] = run
		if len(run) == 0 {
			m.heap[0] = m.heap[len(m.heap)-1]
			m.heap = m.heap[:len(m.heap)-1]
		}
		m.siftDown(0)
	}
	return list
}
