package testweb

import (
	"math"

	"github.com/freshet/freshet/lab/rng"
)

// Version is a state of a page between two changes.
type Version struct {
	Number uint64  // grows with time; 0 is the page as it was made
	Since  float64 // when it began, in seconds of the web's time
	Until  float64 // when it ends, +Inf if never
}

// History says when pages change.
type History interface {
	// At returns the version of a page at time t >= 0, in seconds of the web's
	// time. It is called concurrently.
	At(page uint64, t float64) Version
}

// still is the history of a web that never changes.
type still struct{}

func (still) At(uint64, float64) Version { return Version{Until: math.Inf(1)} }

// Poisson is the history of pages that change independently at rates spread
// over two powers of ten about a mean, computed from the seed alone: the time
// line of a page is cut into cells, each with a Poisson number of changes, so a
// look-up costs the cells between two changes, one or two on average.
type Poisson struct {
	seed uint64
	rate float64 // changes a second of the page of middle rate
}

// NewPoisson returns a history with the given median interval between changes,
// in seconds of the web's time.
func NewPoisson(seed uint64, interval float64) *Poisson {
	return &Poisson{seed, 1 / interval}
}

// Rate returns the change rate of a page, per second.
func (p *Poisson) Rate(page uint64) float64 {
	return p.rate * math.Pow(10, 2*rng.Unit(rng.Mix(p.seed, page))-1)
}

// cellMean is the expected number of changes in a cell.
const cellMean = 2

// At returns the version of a page at time t.
func (p *Poisson) At(page uint64, t float64) Version {
	rate := p.Rate(page)
	width := cellMean / rate
	cell := uint64(t / width)
	key := rng.Mix(p.seed+1, page)
	v := Version{}
	for c := cell + 1; c > 0; c-- { // the last change up to t
		if n, at := p.last(key, c-1, width, t); n > 0 {
			v.Number, v.Since = (c-1)<<8|n, at
			break
		}
	}
	for c := cell; ; c++ { // the first one after it
		if at := p.first(key, c, width, t); at > t {
			v.Until = at
			return v
		}
	}
}

// change returns the time of change i of a cell whose hash is h.
func change(h, cell, i uint64, width float64) float64 {
	return (float64(cell) + rng.Unit(rng.Mix(h, i+1))) * width
}

// last returns the number of changes in a cell up to t and the time of the last.
func (p *Poisson) last(key, cell uint64, width, t float64) (n uint64, at float64) {
	h := rng.Mix(key, cell)
	for i := range poisson(h) {
		if u := change(h, cell, i, width); u <= t {
			n++
			at = max(at, u)
		}
	}
	return n, at
}

// first returns the time of the first change of a cell after t, -1 if none.
func (p *Poisson) first(key, cell uint64, width, t float64) float64 {
	h := rng.Mix(key, cell)
	at := -1.
	for i := range poisson(h) {
		if u := change(h, cell, i, width); u > t && (at < 0 || u < at) {
			at = u
		}
	}
	return at
}

// poisson draws a Poisson number with mean cellMean by inversion, at most 255.
func poisson(bits uint64) uint64 {
	u, p := rng.Unit(rng.Mix(bits, 0)), math.Exp(-cellMean)
	n := uint64(0)
	for sum := p; u > sum && n < 255; sum += p {
		n++
		p *= cellMean / float64(n)
	}
	return n
}
