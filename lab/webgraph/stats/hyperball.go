package stats

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/freshet/freshet/internal/rng"
)

// HyperBall (Boldi and Vigna 2013) keeps for every page a HyperLogLog counter
// of the pages within t links: the counter for t+1 is the union of those of the
// pages linked to. A counter of m registers is off by about 1.04/sqrt(m); balls
// of pages that reach the same core overlap, so their sum is off by nearly as
// much, which is why runs with independent hashes are averaged and the standard
// errors are taken from their spread.
//
// What is known exactly is used: in a web with a great core all its pages reach the
// same pages, and counting those takes two searches. A run is scaled so that it has
// that number right, which leaves of the error what the wider balls do not share
// with the widest.

// hyperBalls averages runs.
func hyperBalls(ctx context.Context, g Graph, opt DistanceOptions, tell Progress) (*Distances, error) {
	n := g.Nodes()
	if opt.Runs == 0 {
		opt.Runs = 4
		if g.Links() > 10_000_000 {
			opt.Runs = 2
		}
	}
	if opt.Memory == 0 {
		opt.Memory = 4 << 30
	}
	if opt.Log2Registers == 0 {
		for opt.Log2Registers = 8; opt.Log2Registers > 4 && 2*int64(n)<<opt.Log2Registers > opt.Memory; opt.Log2Registers-- {
		}
	}
	need := 2 * int64(n) << opt.Log2Registers
	if opt.Log2Registers < 4 || opt.Log2Registers > 12 || need > opt.Memory {
		return nil, fmt.Errorf("distances: %d registers a page for %d pages take %d MB, %d MB are allowed; give fewer registers (16 at least) or more memory", 1<<opt.Log2Registers, n, need>>20, opt.Memory>>20)
	}
	whole, err := findReach(ctx, g)
	if err != nil {
		return nil, err
	}
	var all []Distances
	cut := false
	for r := range opt.Runs {
		b := newBalls(g, opt.Log2Registers, rng.Mix(opt.Seed, uint64(r)), opt.Workers)
		pairs := []float64{float64(n)}
		for {
			sum, changed, err := b.growBalls(ctx)
			if err != nil {
				return nil, err
			}
			if !changed {
				break
			}
			if len(pairs) > opt.MaxRounds {
				cut = true
				break
			}
			pairs = append(pairs, max(sum, pairs[len(pairs)-1]))
			if tell != nil {
				// How many rounds there will be is not known: some 25, mostly.
				tell(int64(25*r+min(len(pairs), 25)), int64(25*opt.Runs))
			}
		}
		if !cut {
			b.scaleToWidest(pairs, whole)
		}
		all = append(all, summarizeDistances(pairs, n))
	}
	d := averageDistances(all)
	d.Runs, d.Log2Registers, d.CutOff = opt.Runs, opt.Log2Registers, cut
	if opt.Runs == 1 { // nothing to take errors from: those of one counter
		e := 1.04 / math.Sqrt(float64(int(1)<<opt.Log2Registers))
		d.ReachableError, d.MeanError, d.EffectiveError, d.EfficiencyError = e*d.Reachable, e*d.Mean, e*d.Effective, e*d.Efficiency
	}
	return &d, nil
}

// reach is what the pages of the core reach.
type reach struct {
	page  uint32 // one of them
	pages int64  // that they reach, themselves included; 0: the core is too small to matter
}

// findReach counts what the core reaches.
func findReach(ctx context.Context, g Graph) (reach, error) {
	core, err := strongComponentAround(ctx, g)
	if err != nil {
		return reach{}, err
	}
	pages := core.appendPagesTo(nil)
	if len(pages)*10 < g.Nodes() {
		return reach{}, nil
	}
	if err := core.spreadAlong(ctx, g.Nodes(), g.Out, nil); err != nil {
		return reach{}, err
	}
	return reach{pages[0], core.countPages()}, nil
}

// scaleToWidest multiplies the pairs of a run by the error of its widest ball.
func (b *balls) scaleToWidest(pairs []float64, whole reach) {
	if whole.pages == 0 {
		return
	}
	u := int(whole.page)
	f := float64(whole.pages) / b.estimateBall(b.now[u*b.m:(u+1)*b.m])
	for t := 1; t < len(pairs); t++ {
		pairs[t] = max(pairs[t]*f, pairs[t-1])
	}
}

// averageDistances returns the means of runs with their standard errors.
func averageDistances(all []Distances) Distances {
	var d Distances
	k := float64(len(all))
	for _, r := range all {
		d.Longest = max(d.Longest, r.Longest)
	}
	d.Pairs = make([]float64, d.Longest+1)
	for _, r := range all {
		for t := range d.Pairs {
			d.Pairs[t] += r.Pairs[min(t, len(r.Pairs)-1)] / k
		}
	}
	for _, f := range []struct {
		of        func(r *Distances) float64
		mean, err *float64
	}{
		{func(r *Distances) float64 { return r.Reachable }, &d.Reachable, &d.ReachableError},
		{func(r *Distances) float64 { return r.Mean }, &d.Mean, &d.MeanError},
		{func(r *Distances) float64 { return r.Effective }, &d.Effective, &d.EffectiveError},
		{func(r *Distances) float64 { return r.Efficiency }, &d.Efficiency, &d.EfficiencyError},
	} {
		var sum, squares float64
		for i := range all {
			sum += f.of(&all[i]) / k
		}
		for i := range all {
			x := f.of(&all[i]) - sum
			squares += x * x
		}
		*f.mean = sum
		if k > 1 {
			*f.err = math.Sqrt(squares / (k - 1) / k)
		}
	}
	return d
}

// balls are the counters of all pages for some t and for t+1: m bytes a page.
type balls struct {
	views     []Graph // of the workers
	n, m      int
	workers   int
	now, next []byte
	changed   set // pages whose counter grew in the last round
	growing   set
	sums      []float64 // estimates summed by block of pages
	power     [65]float64
	empty     []float64 // m sigma(empty registers / m)
	scale     float64
}

func newBalls(g Graph, log2m int, seed uint64, workers int) *balls {
	n, m := g.Nodes(), 1<<log2m
	b := &balls{n: n, m: m, workers: max(1, workers), now: make([]byte, n*m), next: make([]byte, n*m), changed: newPageSet(n), growing: newPageSet(n)}
	for range b.workers {
		b.views = append(b.views, goroutineView(g))
	}
	for k := range b.power {
		b.power[k] = math.Ldexp(1, -k)
	}
	b.scale = float64(m) * float64(m) / (2 * math.Ln2)
	for c := range m + 1 {
		b.empty = append(b.empty, float64(m)*emptyRegisterSigma(float64(c)/float64(m)))
	}
	b.sums = make([]float64, (n+every-1)/every)
	for u := range n {
		h := rng.Mix(seed, uint64(u))
		// Register by the low bits, value by the leading zeros of the others.
		rho := byte(1)
		for x := h; x>>63 == 0 && int(rho) <= 64-log2m; x <<= 1 {
			rho++
		}
		b.now[u*m+int(h&uint64(m-1))] = rho
		b.changed.addPage(uint32(u))
		b.sums[u/every] += b.estimateBall(b.now[u*m : (u+1)*m])
	}
	return b
}

// emptyRegisterSigma is Ertl's correction for registers that are still empty: x plus the sum
// of x^(2^k) 2^(k-1) over k >= 1.
func emptyRegisterSigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	z, y := x, 1.
	for {
		x *= x
		old := z
		z += x * y
		y += y
		if z == old {
			return z
		}
	}
}

// estimateBall returns how many pages a counter has seen, by Ertl's estimator, which
// unlike the original one has no bias between small and great counts (Ertl 2017,
// "New cardinality estimation algorithms for HyperLogLog sketches").
func (b *balls) estimateBall(registers []byte) float64 {
	var sum float64
	empty := 0
	for _, r := range registers {
		if r == 0 {
			empty++
		} else {
			sum += b.power[r]
		}
	}
	return b.scale / (sum + b.empty[empty])
}

// growBalls makes the balls one link wider. It returns the sum of the estimates and
// whether any ball grew.
func (b *balls) growBalls(ctx context.Context) (sum float64, grew bool, err error) {
	clear(b.growing)
	n, m := b.n, b.m
	err = parallelBlocks(ctx, n, b.workers, nil, func(w, from, to int) {
		g := b.views[w]
		for u := from; u < to; u++ {
			own := b.next[u*m : (u+1)*m]
			was := b.now[u*m : (u+1)*m]
			copy(own, was)
			grown := false
			for _, v := range g.Out(uint32(u)) {
				if b.changed.hasPage(v) && widenRegisters(own, b.now[int(v)*m:(int(v)+1)*m]) {
					grown = true
				}
			}
			if grown {
				b.growing.addPage(uint32(u)) // blocks end at multiples of 64: no word is shared
				b.sums[from/every] += b.estimateBall(own) - b.estimateBall(was)
			}
		}
	})
	if err != nil {
		return 0, false, err
	}
	b.now, b.next = b.next, b.now
	b.changed, b.growing = b.growing, b.changed
	for _, w := range b.changed {
		grew = grew || w != 0
	}
	for _, s := range b.sums {
		sum += s
	}
	return sum, grew, nil
}

// widenRegisters makes each register of a the greater of a's and b's, eight at a time,
// and reports whether any changed. Registers are below 128.
func widenRegisters(a, b []byte) bool {
	const top = 0x8080808080808080
	var diff uint64
	for i := 0; i+8 <= len(a) && i+8 <= len(b); i += 8 {
		x, y := binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])
		ge := ((x | top) - y) & top // top bit of each byte where x >= y
		mask := ge | (ge - ge>>7)   // all bits of those bytes
		z := x&mask | y&^mask
		diff |= z ^ x
		binary.LittleEndian.PutUint64(a[i:], z)
	}
	return diff != 0
}
