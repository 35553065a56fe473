package pack

import (
	"math/bits"
	"slices"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// token is a number of a table and what follows it: bits, or a number below a
// bound, which need no code.
type token struct {
	table, class uint16
	width        uint8 // of rest
	rest         uint64
	below        uint64 // rest is a number below it; 0: bits
}

// sentence is a list in tokens, with its cost in bits.
type sentence struct {
	tokens []token
	cost   uint64
	next   uint32 // see group.next
}

// encoder codes the lists of groups one after another. It is for one goroutine.
type encoder struct {
	nodes   uint64
	sites   sites
	cost    *lengths
	ranks   *ranks // nil: links to other sites are told by gaps
	lists   [groupPages][]uint32
	trial   [2]sentence
	blocks  []uint64
	extra   []uint32
	local   []uint32
	cross   []uint32
	ordered []place
}

// encodeGroup codes the lists of consecutive pages and gives each of its sentences to
// emit.
func (e *encoder) encodeGroup(first uint32, lists [][]uint32, emit func(*sentence)) {
	site := e.sites.siteIndex(first)
	next := uint32(0) // where the last run of consecutive pages on the site ended
	lo, hi := e.sites.siteSpan(site)
	for i, list := range lists {
		u := first + uint32(i)
		for u >= hi {
			site++
			lo, hi = e.sites.siteSpan(site)
			next = 0
		}
		best, other := &e.trial[0], &e.trial[1]
		if len(list) >= longList { // skipped by readers: it neither knows nor changes next
			e.encodeSentence(best, u, lo, hi, 0, list, 0, nil)
			best.next = next
		} else {
			e.encodeSentence(best, u, lo, hi, next, list, 0, nil)
			for ref := 1; ref <= i && len(list) > 0; ref++ {
				model := lists[i-ref]
				if len(model) == 0 || len(model) >= longList {
					continue
				}
				e.encodeSentence(other, u, lo, hi, next, list, ref, model)
				if other.cost < best.cost {
					best, other = other, best
				}
			}
		}
		next = best.next
		emit(best)
	}
}

// encodeSentence codes one list, copied from model unless that is nil.
func (e *encoder) encodeSentence(s *sentence, u, lo, hi, next uint32, list []uint32, ref int, model []uint32) {
	s.tokens, s.cost, s.next = s.tokens[:0], 0, next
	copied := 0
	if ref > 0 {
		copied = 1
		e.addToken(s, refTable, ref)
		e.matchModelBlocks(list, model)
		e.addLogNumber(s, blocksTable, uint64(len(e.blocks)))
		for i, n := range e.blocks {
			switch {
			case i == 0:
				e.addLogNumber(s, blockTable, n)
			case i%2 == 1:
				e.addLogNumber(s, blockTable+1, n-1)
			default:
				e.addLogNumber(s, blockTable+2, n-1)
			}
		}
	} else {
		e.extra = append(e.extra[:0], list...)
		if len(list) >= longList {
			e.addToken(s, refTable, groupPages)
		} else {
			e.addToken(s, refTable, 0)
		}
	}
	a, _ := slices.BinarySearch(e.extra, lo)
	b, _ := slices.BinarySearch(e.extra, hi)
	e.local = append(e.local[:0], e.extra[a:b]...)
	e.cross = append(append(e.cross[:0], e.extra[:a]...), e.extra[b:]...)
	e.addLogNumber(s, localCountTable+copied, uint64(len(e.local)))
	e.addLogNumber(s, crossCountTable+copied, uint64(len(e.cross)))
	e.encodeSiteLinks(s, u, lo, hi)
	if e.ranks != nil {
		e.encodeRankedLinks(s)
	} else {
		e.encodeCrossLinks(s)
	}
}

// addToken adds a number of a table.
func (e *encoder) addToken(s *sentence, table, class int) {
	s.tokens = append(s.tokens, token{table: uint16(table), class: uint16(class)})
	s.cost += uint64(e.cost[table][class])
}

// addLogNumber adds a number by its logarithm.
func (e *encoder) addLogNumber(s *sentence, table int, x uint64) {
	class, rest, width := bitcode.Log(x)
	s.tokens = append(s.tokens, token{table: uint16(table), class: uint16(class), width: uint8(width), rest: rest})
	s.cost += uint64(e.cost[table][class]) + uint64(width)
}

// matchModelBlocks finds the blocks of model that are in list, alternately copied and left
// out, and what of list is not in model. The last block is not told: it is
// copied if an even number are told before it, else left out.
func (e *encoder) matchModelBlocks(list, model []uint32) {
	e.blocks, e.extra = e.blocks[:0], e.extra[:0]
	copying, n := true, uint64(0)
	i := 0
	for _, m := range model {
		for i < len(list) && list[i] < m {
			e.extra = append(e.extra, list[i])
			i++
		}
		in := i < len(list) && list[i] == m
		if in {
			i++
		}
		if in != copying {
			e.blocks = append(e.blocks, n)
			copying, n = in, 0
		}
		n++
	}
	e.extra = append(e.extra, list[i:]...)
}

// encodeSiteLinks adds the links inside the site lo to hi.
func (e *encoder) encodeSiteLinks(s *sentence, u, lo, hi uint32) {
	at := lo // the least page that may come
	followed := false
	for i := 0; i < len(e.local); i++ {
		v := e.local[i]
		table := localTable + gapContext(uint64(hi-at), uint64(len(e.local)-i))
		gap := v - at
		if i > 0 && gap == 0 { // a run, told at once
			n := 1
			for i+n < len(e.local) && e.local[i+n] == v+uint32(n) {
				n++
			}
			class, rest, width := bitcode.Log(uint64(n - 1))
			s.tokens = append(s.tokens, token{table: uint16(table), class: uint16(runClass + class), width: uint8(width), rest: rest})
			s.cost += uint64(e.cost[table][runClass+class]) + uint64(width)
			i += n - 1
			at = v + uint32(n)
			if followed || n > 1 {
				s.next = at - lo
				followed = false
			}
			continue
		}
		followed = false
		class, rest, width := bitcode.Log(uint64(gap))
		cost := uint64(e.cost[table][class]) + uint64(width)
		pick := token{table: uint16(table), class: uint16(class), width: uint8(width), rest: rest}
		if d := v - lo - s.next; d < nextPages {
			if c := uint64(e.cost[table][nextClass+int(d)]); c <= cost {
				pick, cost = token{table: uint16(table), class: uint16(nextClass + int(d))}, c
			}
		}
		if d := v - u + nearPages; d <= 2*nearPages {
			if c := uint64(e.cost[table][nearClass+int(d)]); c < cost {
				pick, cost = token{table: uint16(table), class: uint16(nearClass + int(d))}, c
			}
		}
		if k := int(pick.class); k >= nextClass && k < nearClass {
			followed = true
			s.next = v + 1 - lo
		}
		s.tokens = append(s.tokens, pick)
		s.cost += cost
		at = v + 1
	}
}

// encodeCrossLinks adds links to other sites as gaps.
func (e *encoder) encodeCrossLinks(s *sentence) {
	at := uint64(0)
	for i, v := range e.cross {
		e.addLogNumber(s, crossTable+gapContext(e.nodes-at, uint64(len(e.cross)-i)), uint64(v)-at)
		at = uint64(v) + 1
	}
}

// encodeRankedLinks adds links to other sites by popularity.
func (e *encoder) encodeRankedLinks(s *sentence) {
	e.ordered = e.ordered[:0]
	for _, v := range e.cross {
		e.ordered = append(e.ordered, e.ranks.placeOfPage(v))
	}
	slices.SortFunc(e.ordered, func(a, b place) int { return int(b.class) - int(a.class) })
	before := rankClasses
	for _, p := range e.ordered {
		t := token{table: uint16(rankTable + before), class: uint16(p.class), rest: uint64(p.index), below: e.ranks.classSize(p.class)}
		s.tokens = append(s.tokens, t)
		s.cost += uint64(e.cost[t.table][t.class]) + uint64(bits.Len64(t.below-1))
		before = int(p.class)
	}
}

// count adds a sentence to the counts.
func (c *counts) countSentence(s *sentence) {
	for _, t := range s.tokens {
		c[t.table][t.class]++
	}
}

// writeSentence writes a sentence.
func (c *codes) writeSentence(w *bitcode.Writer, s *sentence, scratch *bitcode.Writer) {
	to := w
	long := s.tokens[0].class == groupPages && s.tokens[0].table == refTable
	for i, t := range s.tokens {
		c[t.table].Write(to, int(t.class))
		if long && i == 0 {
			scratch.Reset()
			to = scratch
		}
		if t.below > 0 {
			to.Below(t.rest, t.below)
		} else {
			to.Bits(t.rest, uint(t.width))
		}
	}
	if long {
		w.Bits(scratch.Len(), longBits)
		w.Append(scratch)
	}
}

// longBits is the width of the length of a long list.
const longBits = 40
