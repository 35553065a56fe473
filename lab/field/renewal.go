package field

import (
	"math"
	"math/rand/v2"

	"github.com/freshet/freshet/internal/rng"
)

// renewal is a renewal process for every resource of a field of any size, each
// computed from the seed and the number of the resource alone.
//
// With the exponential law the time line of a resource is cut into cells of a
// Poisson number of events each, so that events near any time are found at
// once. Other laws remember the event before: they are walked from the start.
type renewal struct {
	seed    uint64
	rate    float64 // mean events a unit
	law     Law
	spread  Law // of rates; nil: all the same
	horizon float64
}

// Salts keep the numbers drawn for one resource apart.
const (
	saltRate = 0xf1e1d + iota
	saltTimes
	saltKinds
)

// Bounds of a cell: its expected number of events, and the greatest that is
// told apart (a Poisson number of mean 2 is less with 1 - 10^-24).
const (
	cellMean = 2
	cellBits = 5
	cellMost = 1<<cellBits - 1
)

// place is an event of one resource's process. The zero place is before the
// first one.
type place struct {
	at     float64
	number uint64 // of the event, rising; of cells: cell<<cellBits | index in it + 1
}

// process is the renewal process of one resource.
type process struct {
	key     uint64
	gap     float64 // mean; +Inf: there are no events
	law     Law     // nil: by cells
	horizon float64
}

// mixed is a source of random numbers that are hashes.
type mixed struct{ key, n uint64 }

// Uint64 returns the next hash.
func (m *mixed) Uint64() uint64 {
	m.n++
	return rng.Mix(m.key, m.n)
}

// rateOf returns the events a unit of a resource.
func (r *renewal) rateOf(page uint64) float64 {
	if r.spread == nil {
		return r.rate
	}
	return r.rate * r.spread.Draw(rand.New(&mixed{key: rng.Mix(r.seed+saltRate, page)}))
}

func (r *renewal) pageProcess(page uint64) process {
	p := process{key: rng.Mix(r.seed+saltTimes, page), gap: 1 / r.rateOf(page), law: r.law, horizon: r.horizon}
	if _, ok := r.law.(Exponential); ok {
		p.law = nil
	}
	return p
}

// nextPlace returns the event after one; its time is +Inf if that is not before the
// horizon.
func (p *process) nextPlace(e place) place {
	w := walk{process: p, at: e}
	return w.nextWalkPlace()
}

// walk goes from event to event.
type walk struct {
	*process
	at     place
	filled uint64 // the cell whose times are known ...
	found  int    // ... if it has so many events, or any
	times  [cellMost]float64
}

func (w *walk) nextWalkPlace() place {
	switch {
	case !(w.gap < w.horizon*1e9): // also where there are none
		w.at = place{at: math.Inf(1)}
	case w.law != nil:
		w.at = w.withinHorizon(w.drawnPlace())
	default:
		w.at = w.withinHorizon(w.nextInCells())
	}
	return w.at
}

// drawnPlace returns the next event by a law that remembers the one before.
func (w *walk) drawnPlace() place {
	r := rand.New(&mixed{key: rng.Mix(w.key, w.at.number)})
	if w.at.number == 0 {
		return place{w.law.Residual(r) * w.gap, 1}
	}
	return place{w.at.at + w.law.Draw(r)*w.gap, w.at.number + 1}
}

func (w *walk) nextInCells() place {
	width := w.gap * cellMean
	for c, i := w.at.number>>cellBits, w.at.number&cellMost; float64(c)*width < w.horizon; c, i = c+1, 0 {
		if w.found == 0 || w.filled != c {
			w.filled, w.found = c, w.process.fillCell(c, width, &w.times)
		}
		if i < uint64(w.found) {
			return place{w.times[i], c<<cellBits | (i + 1)}
		}
	}
	return place{at: math.Inf(1)}
}

func (p *process) withinHorizon(e place) place {
	if !(e.at < p.horizon) {
		e.at = math.Inf(1)
	}
	return e
}

// placeBefore returns a place from which some events follow up to t: so many cells
// back, or the start. A process that must be walked is.
func (p *process) placeBefore(t float64, cells uint64) place {
	if p.law != nil || !(p.gap < p.horizon*1e9) {
		return place{}
	}
	c := uint64(t / (p.gap * cellMean))
	if c < cells {
		return place{}
	}
	return place{number: (c - cells) << cellBits}
}

// fillCell sets the times of a cell's events, in order, and returns their number.
func (p *process) fillCell(c uint64, width float64, times *[cellMost]float64) (n int) {
	h := rng.Mix(p.key, c)
	n = drawPoisson(rng.Mix(h, 0))
	for i := range n {
		t := (float64(c) + rng.Unit(rng.Mix(h, uint64(i)+1))) * width
		j := i
		for ; j > 0 && times[j-1] > t; j-- {
			times[j] = times[j-1]
		}
		times[j] = t
	}
	return n
}

// none is the probability of no event in a cell.
var none = math.Exp(-cellMean)

// drawPoisson draws a Poisson number with mean cellMean from 64 bits by inversion.
func drawPoisson(bits uint64) (n int) {
	u, p := rng.Unit(bits), none
	for sum := p; u > sum && n < cellMost; sum += p {
		n++
		p *= cellMean / float64(n)
	}
	return n
}
