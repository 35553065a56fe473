package fit

import (
	"fmt"
	"math"
	"slices"
)

// regimes are a hidden Markov chain whose state, the regime, moves by Move at
// each batch and makes the time until the next batch an Erlang law of its own
// order and rate (Okamura, Dohi 2009). Sizes, if present, is the law of the
// batch that ends a time of the regime. Orders are kept as real numbers while
// they are estimated.
type regimes struct {
	Order []float64
	Rate  []float64
	Move  [][]float64
	Sizes [][]float64
}

// totalPhases sums the orders.
func (g *regimes) totalPhases() int {
	n := 0
	for _, o := range g.Order {
		n += int(math.Round(o))
	}
	return n
}

// regimeParameters counts what is estimated: rates, orders, moves, sizes.
func (g *regimes) regimeParameters() int {
	n := len(g.Order)
	p := 2*n + n*(n-1)
	for _, s := range g.Sizes {
		p += max(0, len(s)-1)
	}
	return p
}

func (g *regimes) cloneRegimes() *regimes {
	c := &regimes{Order: slices.Clone(g.Order), Rate: slices.Clone(g.Rate)}
	for _, row := range g.Move {
		c.Move = append(c.Move, slices.Clone(row))
	}
	for _, row := range g.Sizes {
		c.Sizes = append(c.Sizes, slices.Clone(row))
	}
	return c
}

// String tells orders and means.
func (g *regimes) String() string {
	var orders []int
	same := true
	for _, o := range g.Order {
		orders = append(orders, int(math.Round(o)))
		same = same && orders[0] == int(math.Round(o))
	}
	if same {
		return fmt.Sprintf("%d regimes of Erlang-%d", len(orders), orders[0])
	}
	return fmt.Sprintf("%d regimes of Erlang orders %v", len(orders), orders)
}

// BMAP writes the regimes as a process: the Erlang phases of each regime on
// the diagonal of D_0; from the last phase of regime i an arrival to the first
// of regime j at rate rate_i move_ij, times the share of each batch size.
func (g *regimes) BMAP() *BMAP {
	n := g.totalPhases()
	first := make([]int, len(g.Order))
	d0 := zeroRows(n)
	at := 0
	for i, o := range g.Order {
		first[i] = at
		for k := range int(math.Round(o)) {
			d0[at][at] = -g.Rate[i]
			if k+1 < int(math.Round(o)) {
				d0[at][at+1] = g.Rate[i]
			}
			at++
		}
	}
	sizes := 1
	for _, s := range g.Sizes {
		sizes = max(sizes, len(s))
	}
	b := &BMAP{D: [][][]float64{d0}}
	for k := range sizes {
		m := zeroRows(n)
		for i := range g.Order {
			share := 1.0
			if g.Sizes != nil {
				share = 0
				if k < len(g.Sizes[i]) {
					share = g.Sizes[i][k]
				}
			}
			last := first[i] + int(math.Round(g.Order[i])) - 1
			for j, p := range g.Move[i] {
				m[last][first[j]] = g.Rate[i] * p * share
			}
		}
		b.D = append(b.D, m)
	}
	return b
}

// pruneRareMoves makes moves and sizes that only estimation kept above 0 (rarest)
// impossible, if the process stays one without them.
func (g *regimes) pruneRareMoves() *regimes {
	const vanishing = 100 * rarest
	c := g.cloneRegimes()
	for _, rows := range [][][]float64{c.Move, c.Sizes} {
		for _, row := range rows {
			for i, v := range row {
				if v < vanishing {
					row[i] = 0
				}
			}
			normalizeSum(row)
		}
	}
	if c.BMAP().Check() != nil {
		return g
	}
	return c
}
