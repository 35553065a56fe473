package bv

import (
	"bufio"
	"fmt"
	"io"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// Encoder writes a graph, list by list.
type Encoder struct {
	p       Properties
	graph   *bufio.Writer
	offsets *bufio.Writer
	out     bitcode.Writer
	gaps    bitcode.Writer // of the offsets
	bits    uint64         // written so far
	told    uint64         // of them, the last time
	ring    []coded        // the last lists
	trial   [2]bitcode.Writer
	s       encoding
	// At is told where the bits of each list begin, and where the last one ends;
	// nil: nobody.
	At func(offset uint64) error
}

// coded is a list in the window.
type coded struct {
	list  []uint32
	depth int // length of the chain that it depends on
}

// NewEncoder returns an encoder to a .graph and, if offsets is not nil, an
// .offsets file. Of p the window, the greatest length of chains, the least length
// of intervals and the zeta code are used; codes are the default ones.
func NewEncoder(p Properties, graph, offsets io.Writer) *Encoder {
	d := Default()
	p.degrees, p.blocks, p.residuals, p.references, p.counts = d.degrees, d.blocks, d.residuals, d.references, d.counts
	p.Nodes, p.Links = 0, 0
	e := &Encoder{p: p, graph: bufio.NewWriterSize(graph, 1<<20), ring: make([]coded, p.Window+1)}
	if offsets != nil {
		e.offsets = bufio.NewWriterSize(offsets, 1<<20)
	}
	return e
}

// Append writes the list of the next page: ascending, each page once.
func (e *Encoder) Append(list []uint32) error {
	x := uint64(e.p.Nodes)
	for i := 1; i < len(list); i++ {
		if list[i] <= list[i-1] {
			return fmt.Errorf("page %d: its links do not ascend, each once; import with --simple makes them", x)
		}
	}
	if err := e.tellOffset(); err != nil {
		return err
	}
	best, depth := &e.trial[0], 0
	best.Reset()
	e.s.encodeList(best, &e.p, x, list, 0, nil)
	other := &e.trial[1]
	for ref := 1; ref <= e.p.Window && uint64(ref) <= x && len(list) > 0; ref++ {
		model := &e.ring[(x-uint64(ref))%uint64(len(e.ring))]
		if model.depth >= e.p.MaxRef || len(model.list) == 0 {
			continue
		}
		other.Reset()
		if e.s.encodeList(other, &e.p, x, list, ref, model.list); other.Len() < best.Len() {
			best, other, depth = other, best, model.depth+1
		}
	}
	slot := &e.ring[x%uint64(len(e.ring))]
	slot.list, slot.depth = append(slot.list[:0], list...), depth
	e.bits += best.Len()
	e.out.Append(best)
	e.p.Nodes++
	e.p.Links += int64(len(list))
	_, err := e.out.WriteTo(e.graph)
	return err
}

// tellOffset tells where the next list begins: to At, and as the gap to the one
// before in gamma code to the file.
func (e *Encoder) tellOffset() error {
	if e.At != nil {
		if err := e.At(e.bits); err != nil {
			return err
		}
	}
	if e.offsets == nil {
		return nil
	}
	e.gaps.Gamma(e.bits - e.told)
	e.told = e.bits
	_, err := e.gaps.WriteTo(e.offsets)
	return err
}

// Finish writes the rest and the properties. It returns the number of bits of the
// lists.
func (e *Encoder) Finish(properties io.Writer) (uint64, error) {
	if err := e.tellOffset(); err != nil {
		return 0, err
	}
	e.out.Pad()
	if _, err := e.out.WriteTo(e.graph); err != nil {
		return 0, err
	}
	if err := e.graph.Flush(); err != nil {
		return 0, err
	}
	if e.offsets != nil {
		e.gaps.Pad()
		if _, err := e.gaps.WriteTo(e.offsets); err != nil {
			return 0, err
		}
		if err := e.offsets.Flush(); err != nil {
			return 0, err
		}
	}
	return e.bits, e.p.writeProperties(properties, e.bits)
}

// encoding is memory of encoding.
type encoding struct {
	blocks    []uint64
	extra     []uint32
	residuals []uint32
	lefts     []uint32
	lengths   []uint64
}

// encodeList writes a list that is copied from model, which is ref pages before; ref
// 0: from none.
func (s *encoding) encodeList(w *bitcode.Writer, p *Properties, x uint64, list []uint32, ref int, model []uint32) {
	w.Gamma(uint64(len(list)))
	if len(list) == 0 {
		return
	}
	if p.Window > 0 {
		w.Unary(uint64(ref))
	}
	s.extra = append(s.extra[:0], list...)
	if ref > 0 {
		s.matchBlocks(list, model)
		w.Gamma(uint64(len(s.blocks)))
		for i, n := range s.blocks {
			if i > 0 {
				n--
			}
			w.Gamma(n)
		}
	}
	if len(s.extra) == 0 {
		return
	}
	s.residuals = append(s.residuals[:0], s.extra...)
	if p.MinInterval > 0 {
		s.splitIntervals(p.MinInterval)
		w.Gamma(uint64(len(s.lefts)))
		next := int64(0)
		for i, left := range s.lefts {
			if i == 0 {
				w.Gamma(bitcode.Unsigned(int64(left) - int64(x)))
			} else {
				w.Gamma(uint64(int64(left) - next - 1))
			}
			w.Gamma(s.lengths[i] - uint64(p.MinInterval))
			next = int64(left) + int64(s.lengths[i])
		}
	}
	for i, v := range s.residuals {
		if i == 0 {
			w.Zeta(bitcode.Unsigned(int64(v)-int64(x)), uint(p.ZetaK))
		} else {
			w.Zeta(uint64(v-s.residuals[i-1]-1), uint(p.ZetaK))
		}
	}
}

// matchBlocks finds the blocks of model that are in list, alternately copied and left
// out, and what of list is not in model. The last block is not told: it is
// copied if an even number are told before it, else left out.
func (s *encoding) matchBlocks(list, model []uint32) {
	s.blocks, s.extra = s.blocks[:0], s.extra[:0]
	copying, n := true, uint64(0)
	i := 0
	for _, m := range model {
		for i < len(list) && list[i] < m {
			s.extra = append(s.extra, list[i])
			i++
		}
		in := i < len(list) && list[i] == m
		if in {
			i++
		}
		if in != copying {
			s.blocks = append(s.blocks, n)
			copying, n = in, 0
		}
		n++
	}
	s.extra = append(s.extra, list[i:]...)
}

// splitIntervals takes runs of consecutive pages out of the extra links.
func (s *encoding) splitIntervals(least int) {
	s.lefts, s.lengths, s.residuals = s.lefts[:0], s.lengths[:0], s.residuals[:0]
	for rest := s.extra; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n] == rest[n-1]+1 {
			n++
		}
		if n >= least {
			s.lefts, s.lengths = append(s.lefts, rest[0]), append(s.lengths, uint64(n))
		} else {
			s.residuals = append(s.residuals, rest[:n]...)
		}
		rest = rest[n:]
	}
}
