package part

import (
	"bufio"
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/freshet/freshet/share/source"
)

// Spill is a temporary file for what does not fit into memory. It has no name in
// its folder, so that nothing is left behind, whatever ends the process. The zero
// value is ready for use; Close it.
type Spill struct {
	Dir  string // "" is the system's folder for temporary files
	file *os.File
	size int64
}

// region is a piece of the file.
type region struct{ off, end int64 }

// appendSpilled appends b.
func (s *Spill) appendSpilled(b []byte) error {
	if s.file == nil {
		f, err := os.CreateTemp(s.Dir, "freshet-scan-*")
		if err != nil {
			return fmt.Errorf("temporary file of a scan: %w", err)
		}
		if err := os.Remove(f.Name()); err != nil {
			f.Close()
			return fmt.Errorf("temporary file of a scan: %w", err)
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(b, s.size); err != nil {
		return fmt.Errorf("temporary file of a scan: %w", err)
	}
	s.size += int64(len(b))
	return nil
}

// regionReader returns a reader of a region.
func (s *Spill) regionReader(r region, buffer int) *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(s.file, r.off, r.end-r.off), buffer)
}

// truncateSpill gives up what lies at or behind end.
func (s *Spill) truncateSpill(end int64) { s.size = min(s.size, end) }

// Close removes the file.
func (s *Spill) Close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file, s.size = nil, 0
	return f.Close()
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func readString(r *bufio.Reader) (string, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", fmt.Errorf("temporary file of a scan: %w", err)
	}
	return string(b), nil
}

// Paths is a list of paths in order of which only the last ones are in memory.
type Paths struct {
	Spill  *Spill
	Memory int64

	buf     []byte
	n       int64
	regions []region
}

// Len returns the number of paths.
func (p *Paths) Len() int64 { return p.n }

// Add appends a path.
func (p *Paths) Add(path string) error {
	p.buf = appendString(p.buf, path)
	p.n++
	if int64(len(p.buf)) < p.Memory {
		return nil
	}
	off := p.Spill.size
	if err := p.Spill.appendSpilled(p.buf); err != nil {
		return err
	}
	p.regions = append(p.regions, region{off, p.Spill.size})
	p.buf = p.buf[:0]
	return nil
}

// Each calls f for the paths, up to n at a time. f may keep the slice.
func (p *Paths) Each(n int, f func(paths []string) error) error {
	var batch []string
	from := func(r *bufio.Reader) error {
		for {
			path, err := readString(r)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if batch = append(batch, path); len(batch) == n {
				if err := f(batch); err != nil {
					return err
				}
				batch = nil
			}
		}
	}
	for _, r := range p.regions {
		if err := from(p.Spill.regionReader(r, spillBuffer)); err != nil {
			return err
		}
	}
	if err := from(bufio.NewReader(strings.NewReader(string(p.buf)))); err != nil {
		return err
	}
	if len(batch) == 0 {
		return nil
	}
	return f(batch)
}

const (
	spillBuffer = 64 << 10
	// minSort is what a listing may take before it is sorted on disk, however small
	// the bound.
	minSort = 256 << 10
	// entryCost is what an entry takes in memory beside its name.
	entryCost = 72
)

// listed is an entry of a listing with the key of its name.
type listed struct {
	key string
	source.Entry
}

// compareListed puts files before folders, and both in the order of keys.
func compareListed(a, b listed) int {
	if a.Dir != b.Dir {
		if a.Dir {
			return 1
		}
		return -1
	}
	return strings.Compare(a.key, b.key)
}

// sorter sorts one listing: in memory, or by runs on disk where it is too large.
type sorter struct {
	spill  *Spill
	memory int64
	start  int64 // of the spill, before the runs
	items  []listed
	size   int64
	runs   []region
	buf    []byte
}

func (s *sorter) addListed(e listed) error {
	s.items = append(s.items, e)
	if s.size += entryCost + int64(len(e.Name)); s.size <= s.memory {
		return nil
	}
	return s.endRun()
}

// endRun writes what is in memory to disk.
func (s *sorter) endRun() error {
	slices.SortFunc(s.items, compareListed)
	if len(s.runs) == 0 {
		s.start = s.spill.size
	}
	off := s.spill.size
	for i := range s.items {
		e := &s.items[i]
		kind := byte(0)
		if e.Dir {
			kind = 1
		}
		s.buf = appendString(append(s.buf, kind), e.Name)
		s.buf = binary.AppendVarint(binary.AppendVarint(s.buf, e.Size), e.Modified)
		if len(s.buf) >= spillBuffer || i == len(s.items)-1 {
			if err := s.spill.appendSpilled(s.buf); err != nil {
				return err
			}
			s.buf = s.buf[:0]
		}
	}
	s.runs = append(s.runs, region{off, s.spill.size})
	clear(s.items)
	s.items, s.size = s.items[:0], 0
	return nil
}

// forEachSorted calls f for the entries in order, one of each name.
func (s *sorter) forEachSorted(ctx context.Context, f func(listed) error) error {
	var last listed
	n := 0
	give := func(e listed) error {
		if n > 0 && e.Dir == last.Dir && e.key == last.key {
			return nil
		}
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		last = e
		return f(e)
	}
	if len(s.runs) == 0 {
		slices.SortFunc(s.items, compareListed)
		for _, e := range s.items {
			if err := give(e); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.endRun(); err != nil {
		return err
	}
	s.items = nil
	var merge runHeap
	buffer := max(1<<10, min(spillBuffer, int(s.memory)/len(s.runs)))
	for _, r := range s.runs {
		run := &sortedRun{r: s.spill.regionReader(r, buffer)}
		if ok, err := run.nextListed(); err != nil {
			return err
		} else if ok {
			merge = append(merge, run)
		}
	}
	heap.Init(&merge)
	for len(merge) > 0 {
		if err := give(merge[0].head); err != nil {
			return err
		}
		ok, err := merge[0].nextListed()
		if err != nil {
			return err
		}
		if ok {
			heap.Fix(&merge, 0)
		} else {
			heap.Pop(&merge)
		}
	}
	return nil
}

// sortedRun reads one sorted run.
type sortedRun struct {
	r    *bufio.Reader
	head listed
}

// nextListed reads the next entry; ok is false at the end.
func (r *sortedRun) nextListed() (ok bool, err error) {
	kind, err := r.r.ReadByte()
	if err == io.EOF {
		return false, nil
	}
	e := listed{Entry: source.Entry{Dir: kind == 1}}
	if err == nil {
		e.Name, err = readString(r.r)
	}
	if err == nil {
		e.Size, err = binary.ReadVarint(r.r)
	}
	if err == nil {
		e.Modified, err = binary.ReadVarint(r.r)
	}
	if err != nil {
		return false, fmt.Errorf("temporary file of a scan: %w", err)
	}
	e.key = Name(e.Name)
	r.head = e
	return true, nil
}

type runHeap []*sortedRun

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return compareListed(h[i].head, h[j].head) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*sortedRun)) } //nolint:forcetypeassert // of container/heap
func (h *runHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return x
}

// waitingNames are the subfolders of a level that wait for their turn, in order:
// the first ones in memory, the rest on disk.
type waitingNames struct {
	names   []string
	size    int64 // bytes of names
	regions []region
	open    []byte // of the last region, not written yet
}

func nameSize(name string) int64 { return int64(len(name)) + 16 }

// pushName appends a name: to memory if it is within head bytes there, else to disk. It
// returns how many bytes more are in memory. The spill must not be written to by
// others until seal.
func (n *waitingNames) pushName(s *Spill, name string, head int64) (int64, error) {
	if len(n.regions) == 0 && len(n.open) == 0 && n.size+nameSize(name) <= head {
		n.names = append(n.names, name)
		n.size += nameSize(name)
		return nameSize(name), nil
	}
	if n.open = appendString(n.open, name); len(n.open) < spillBuffer {
		return 0, nil
	}
	return 0, n.flushNames(s)
}

// flushNames writes the open region's bytes.
func (n *waitingNames) flushNames(s *Spill) error {
	if len(n.open) == 0 {
		return nil
	}
	off := s.size
	if err := s.appendSpilled(n.open); err != nil {
		return err
	}
	n.open = n.open[:0]
	if k := len(n.regions); k > 0 && n.regions[k-1].end == off {
		n.regions[k-1].end = s.size
	} else {
		n.regions = append(n.regions, region{off, s.size})
	}
	return nil
}

// sealNames ends pushing.
func (n *waitingNames) sealNames(s *Spill) error {
	err := n.flushNames(s)
	n.open = nil
	return err
}

// toDisk moves the names in memory to disk and returns their bytes.
func (n *waitingNames) toDisk(s *Spill) (int64, error) {
	var b []byte
	for _, name := range n.names {
		b = appendString(b, name)
	}
	off := s.size
	if err := s.appendSpilled(b); err != nil {
		return 0, err
	}
	n.regions = slices.Insert(n.regions, 0, region{off, s.size})
	freed := n.size
	n.names, n.size = nil, 0
	return freed, nil
}

// loadNames reads names of at most head bytes, but one at least, from disk.
func (n *waitingNames) loadNames(s *Spill, head int64) (int64, error) {
	r := &n.regions[0]
	in := s.regionReader(*r, min(spillBuffer, max(4<<10, int(head))))
	n.names = nil
	for r.off < r.end && (n.size == 0 || n.size < head) {
		name, err := readString(in)
		if err != nil {
			return 0, fmt.Errorf("temporary file of a scan: %w", err)
		}
		r.off += int64(len(binary.AppendUvarint(nil, uint64(len(name))))) + int64(len(name))
		n.names = append(n.names, name)
		n.size += nameSize(name)
	}
	if r.off == r.end {
		n.regions = n.regions[1:]
	}
	return n.size, nil
}

// spilledEnd returns the end of what lies on disk.
func (n *waitingNames) spilledEnd() int64 {
	end := int64(0)
	for _, r := range n.regions {
		end = max(end, r.end)
	}
	return end
}
