package contain

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"unsafe"
)

// IntKey and RealKey map numbers to keys in the same order.
func IntKey(v int64) uint64 { return uint64(v) ^ 1<<63 }

// RealKey is IntKey for reals; NaN is below everything.
func RealKey(v float64) uint64 {
	if math.IsNaN(v) {
		return 0
	}
	b := math.Float64bits(v + 0) // -0 is 0
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

// entry is an element of a sorted queue with its key at the time of the push.
type entry struct{ key, seq, val uint64 }

const entryBytes = int64(unsafe.Sizeof(entry{}))

// sortsBefore is the order of a sorted queue: the greatest key first, those of one
// key in the order of their pushes.
func (a entry) sortsBefore(b entry) bool { return a.key > b.key || a.key == b.key && a.seq < b.seq }

// Sorted is a priority queue: the greatest key first, equal keys in the order of
// their pushes. The newest elements are a heap in memory; when it is full it
// becomes a sorted run in a file. The greatest element is then that of the heap
// or the first of some run (Sanders, Fast priority queues for cached memory,
// 2000).
type Sorted struct {
	env  *Env
	heap []entry
	runs []*run // a heap by their first elements
	seq  uint64
	n    int
}

// maxRuns is how many runs there are at most before they are merged into one,
// and runBuffer what is read of each at a time: 4 MB in all.
const (
	maxRuns   = 64
	runBuffer = 64 << 10
)

// run is a sorted file; first is its first element that is not popped.
type run struct {
	f     *os.File
	r     *bufio.Reader
	first entry
	bytes int64
	left  int64 // elements after first
	pos   int64 // bytes of the file that precede what is left
}

// NewSorted returns an empty sorted queue.
func NewSorted(env *Env) *Sorted { return &Sorted{env: env} }

// Len returns the number of elements.
func (s *Sorted) Len() int { return s.n }

// PushKey adds v with a key.
func (s *Sorted) PushKey(key uint64, v int64) error {
	if err := s.insertEntry(entry{key, s.seq, uint64(v)}); err != nil {
		return err
	}
	s.seq++
	return nil
}

func (s *Sorted) insertEntry(e entry) error {
	if len(s.heap) == cap(s.heap) {
		if err := s.ensureHeapRoom(); err != nil {
			return err
		}
	}
	i := len(s.heap)
	s.heap = append(s.heap, e)
	h := s.heap
	for i > 0 {
		up := (i - 1) / 2
		if !e.sortsBefore(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	s.n++
	return nil
}

// ensureHeapRoom makes room in the heap.
func (s *Sorted) ensureHeapRoom() error {
	if cap(s.heap) >= s.env.sortedKept {
		return s.spillHeap()
	}
	n := min(max(16, 2*cap(s.heap)), s.env.sortedKept)
	if err := s.env.Memory(int64(n-cap(s.heap)) * entryBytes); err != nil {
		return err
	}
	bigger := make([]entry, len(s.heap), n)
	copy(bigger, s.heap)
	s.heap = bigger
	return nil
}

// topEntry returns the first element and the run that it comes from, nil: the heap.
func (s *Sorted) topEntry() (entry, *run) {
	if len(s.runs) == 0 || len(s.heap) > 0 && s.heap[0].sortsBefore(s.runs[0].first) {
		return s.heap[0], nil
	}
	return s.runs[0].first, s.runs[0]
}

// Top returns the first element; there must be one.
func (s *Sorted) Top() (int64, error) {
	e, _ := s.topEntry()
	return int64(e.val), nil
}

// Pop removes the first element; there must be one.
func (s *Sorted) Pop() (int64, error) {
	e, r := s.topEntry()
	if r == nil {
		s.popHeap()
	} else if err := s.popRun(); err != nil {
		return 0, err
	}
	s.n--
	return int64(e.val), nil
}

func (s *Sorted) popHeap() {
	last := len(s.heap) - 1
	e := s.heap[last]
	s.heap = s.heap[:last]
	if last > 0 {
		replaceTop(s.heap, e)
	}
}

// replaceTop puts e into the heap in place of its first element.
func replaceTop(h []entry, e entry) {
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].sortsBefore(h[c]) {
			c++
		}
		if !h[c].sortsBefore(e) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = e
}

// popRun moves the first run on by one element.
func (s *Sorted) popRun() error {
	r := s.runs[0]
	more, err := r.readNextEntry()
	if err != nil {
		return err
	}
	if !more {
		if err := s.closeRun(r); err != nil {
			return err
		}
		last := len(s.runs) - 1
		s.runs[0] = s.runs[last]
		s.runs = s.runs[:last]
	}
	s.sinkRun(0)
	return nil
}

// sinkRun restores the heap of runs below i.
func (s *Sorted) sinkRun(i int) {
	for {
		c := 2*i + 1
		if c >= len(s.runs) {
			return
		}
		if c+1 < len(s.runs) && s.runs[c+1].first.sortsBefore(s.runs[c].first) {
			c++
		}
		if !s.runs[c].first.sortsBefore(s.runs[i].first) {
			return
		}
		s.runs[i], s.runs[c] = s.runs[c], s.runs[i]
		i = c
	}
}

// readNextEntry reads the run's next element; false at its end.
func (r *run) readNextEntry() (bool, error) {
	if r.left == 0 {
		return false, nil
	}
	var b [entryBytes]byte
	if _, err := io.ReadFull(r.r, b[:]); err != nil {
		return false, fmt.Errorf("read a run of a sorted queue: %w", err)
	}
	r.first = entry{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
	r.left--
	r.pos += entryBytes
	return true, nil
}

// spillHeap makes the heap a run.
func (s *Sorted) spillHeap() error {
	slices.SortFunc(s.heap, func(a, b entry) int { return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.seq, b.seq)) })
	i := 0
	err := s.writeRun(int64(len(s.heap)), func() (entry, error) {
		i++
		return s.heap[i-1], nil
	})
	if err != nil {
		return err
	}
	s.heap = s.heap[:0]
	if len(s.runs) > maxRuns {
		return s.mergeSortedRuns()
	}
	return nil
}

// writeRun writes n elements in order as a run and adds it.
func (s *Sorted) writeRun(n int64, next func() (entry, error)) (err error) {
	if err := s.env.Disk(n * entryBytes); err != nil {
		return err
	}
	if err := s.env.Memory(runBuffer); err != nil {
		return err
	}
	f, err := s.env.createTempFile("run")
	if err != nil {
		return err
	}
	r := &run{f: f, bytes: n * entryBytes, left: n}
	w := bufio.NewWriterSize(f, 256<<10)
	var b [entryBytes]byte
	for range n {
		e, err := next()
		if err != nil {
			return errors.Join(err, s.closeRun(r))
		}
		binary.LittleEndian.PutUint64(b[:], e.key)
		binary.LittleEndian.PutUint64(b[8:], e.seq)
		binary.LittleEndian.PutUint64(b[16:], e.val)
		_, _ = w.Write(b[:]) // told by Flush
	}
	if err := w.Flush(); err != nil {
		return errors.Join(fmt.Errorf("spill a sorted queue: %w", err), s.closeRun(r))
	}
	r.r = bufio.NewReaderSize(io.NewSectionReader(f, 0, r.bytes), runBuffer)
	if _, err := r.readNextEntry(); err != nil {
		return errors.Join(err, s.closeRun(r))
	}
	s.runs = append(s.runs, r)
	for i := len(s.runs) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.runs[i].first.sortsBefore(s.runs[up].first) {
			break
		}
		s.runs[i], s.runs[up] = s.runs[up], s.runs[i]
		i = up
	}
	return nil
}

// mergeSortedRuns makes one run of all.
func (s *Sorted) mergeSortedRuns() error {
	old := &Sorted{env: s.env, runs: s.runs}
	s.runs = nil
	n := int64(0)
	for _, r := range old.runs {
		n += r.left + 1
	}
	return s.writeRun(n, func() (entry, error) {
		e := old.runs[0].first
		return e, old.popRun()
	})
}

func (s *Sorted) closeRun(r *run) error {
	_ = s.env.Memory(-runBuffer)
	return errors.Join(r.f.Close(), s.env.removeTempFile(r.f.Name(), r.bytes))
}

// Clear removes all elements.
func (s *Sorted) Clear() error {
	var errs []error
	for _, r := range s.runs {
		errs = append(errs, s.closeRun(r))
	}
	s.runs, s.heap, s.n = nil, s.heap[:0], 0
	return errors.Join(errs...)
}

// Free gives back what the queue holds; it is empty then.
func (s *Sorted) Free() error {
	err := s.Clear()
	_ = s.env.Memory(-int64(cap(s.heap)) * entryBytes)
	s.heap = nil
	return err
}

// CopyFrom makes s hold what o holds, with the same keys and order.
func (s *Sorted) CopyFrom(o *Sorted) error {
	if s == o {
		return nil
	}
	if err := s.Clear(); err != nil {
		return err
	}
	for _, e := range o.heap {
		if err := s.insertEntry(e); err != nil {
			return err
		}
	}
	for _, r := range o.runs {
		if err := s.insertEntry(r.first); err != nil {
			return err
		}
		in := bufio.NewReaderSize(io.NewSectionReader(r.f, r.pos, r.bytes-r.pos), runBuffer)
		c := run{r: in, left: r.left}
		for c.left > 0 {
			if _, err := c.readNextEntry(); err != nil {
				return err
			}
			if err := s.insertEntry(c.first); err != nil {
				return err
			}
		}
	}
	s.seq = max(s.seq, o.seq)
	return nil
}
