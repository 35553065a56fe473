package gen

import (
	"context"
	"math"

	"github.com/freshet/freshet/internal/rng"
)

// erdosRenyi draws each of the n(n-1) possible links with probability p, by the
// lengths of the gaps between links, which are geometric: O(n + m).
func erdosRenyi(ctx context.Context, p *Plan, s Sink, progress func(int64)) error {
	src := rng.Source(p.Seed, "er")
	n := uint64(p.Nodes)
	logMiss := math.Log1p(-p.Params["p"])
	gap := func() uint64 {
		u := float64(src.Uint64()>>11+1) / (1 << 53) // in (0, 1]
		return uint64(min(math.Log(u)/logMiss, 1<<62))
	}
	if p.Params["p"] == 0 {
		gap = func() uint64 { return 1 << 62 }
	}
	if p.Params["p"] >= 1 {
		gap = func() uint64 { return 0 }
	}
	var list []uint32
	at := gap() // place in the row of page u; n-1 places, itself left out
	for u := range n {
		if u&(1<<14-1) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(int64(u))
		}
		list = list[:0]
		for ; at < n-1; at += 1 + gap() {
			v := at
			if v >= u {
				v++
			}
			list = append(list, uint32(v))
		}
		at -= n - 1
		if err := s.Append(list); err != nil {
			return err
		}
	}
	return nil
}

// rmatChoices are the probabilities of the quarters of the matrix of links, those
// of the Graph500 benchmark.
var rmatChoices = [4]float64{.57, .19, .19, .05}

// drawRecursiveMatrix is R-MAT (Chakrabarti, Zhan and Faloutsos 2004): a link falls into a
// quarter of the matrix of links, a quarter of the quarter and so on. Where the
// number of pages is no power of two, links outside are drawn again. Each link is
// a function of its number.
func drawRecursiveMatrix(ctx context.Context, p *Plan, s EdgeSink, progress func(int64)) error {
	levels := 0
	for uint64(1)<<levels < uint64(p.Nodes) {
		levels++
	}
	a, b, c := p.Params["a"], p.Params["b"], p.Params["c"]
	cut := [3]uint32{uint32(a * (1 << 32)), uint32((a + b) * (1 << 32)), uint32((a + b + c) * (1 << 32))}
	n, seed := uint64(p.Nodes), rng.Mix(p.Seed, 0x12a7)
	for i := range uint64(p.Links) {
		if i&(1<<16-1) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(int64(i))
		}
		key := rng.Mix(seed, i)
		for {
			u, v := uint64(0), uint64(0)
			var x uint64
			for l := range levels {
				if l&1 == 0 {
					key++
					x = rng.Mix(seed^0x9e37, key)
				}
				r := uint32(x)
				x >>= 32
				q := 0
				if r >= cut[0] {
					q++
				}
				if r >= cut[1] {
					q++
				}
				if r >= cut[2] {
					q++
				}
				u, v = u<<1|uint64(q>>1), v<<1|uint64(q&1)
			}
			if u < n && v < n {
				if err := s.Add(uint32(u), uint32(v)); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// alphaBeta is the (alpha, beta) model of Kumar et al. (VLDB 1999): each step makes
// a page u and its share of the links. A link ends in u with probability alpha,
// else where an earlier link, drawn evenly, ends; it starts in u with probability
// beta, else where an earlier link, drawn evenly and independently, starts. The
// exponents are 1 + 1/(1-alpha) of links to and 1 + 1/(1-beta) of links from a
// page. 8 bytes a link are kept in memory.
func alphaBeta(ctx context.Context, p *Plan, s EdgeSink, progress func(int64)) error {
	from, to := make([]uint32, p.Links), make([]uint32, p.Links)
	src := rng.Source(p.Seed, "alpha-beta")
	alpha, beta := uint32(p.Params["alpha"]*(1<<32)), uint32(p.Params["beta"]*(1<<32))
	mean := float64(p.Links) / float64(p.Nodes)
	at := 0
	for u := range uint32(p.Nodes) {
		if u&(1<<16-1) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(int64(at))
		}
		end := min(int(float64(u+1)*mean+1e-9), len(to))
		if int64(u) == p.Nodes-1 {
			end = len(to)
		}
		for ; at < end; at++ {
			choice := src.Uint64()
			f, t := u, u
			if uint32(choice) >= alpha && at > 0 {
				t = to[scaleBelow(src.Uint64(), uint64(at))]
			}
			if uint32(choice>>32) >= beta && at > 0 {
				f = from[scaleBelow(src.Uint64(), uint64(at))]
			}
			from[at], to[at] = f, t
		}
	}
	for i, u := range from {
		if i&(1<<16-1) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := s.Add(u, to[i]); err != nil {
			return err
		}
	}
	return nil
}
