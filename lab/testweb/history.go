package testweb

import (
	"math"
	"net/http"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/field"
)

// Version is a state of a page between two changes, in the web's time.
type Version struct {
	Number uint64  // grows with time; 0 is the page as it was made
	Since  float64 // when it began, in seconds of the web's time
	Until  float64 // when it ends, +Inf if never
	Status int     // 200, or the error that the page answers with
	Size   uint32  // bytes of the body; 0: whatever the text comes to
}

// lastsForever reports whether a version never ends.
func (v Version) lastsForever() bool { return math.IsInf(v.Until, 1) }

// Version returns the version of a page at a time of the web, in seconds. Time
// before the beginning is the beginning.
func (w *Web) Version(page uint64, t float64) Version {
	s := w.history.At(page, max(t, 0)/field.Unit)
	v := Version{Number: s.Number, Since: s.Since * field.Unit, Until: s.Until * field.Unit, Status: statusOfKind(s.Kind)}
	if w.sized {
		v.Size = s.Size
	}
	return v
}

// statusOfKind returns what a resource answers with after an event of a kind.
func statusOfKind(k field.Kind) int {
	switch k {
	case field.Forbidden:
		return http.StatusForbidden
	case field.Missing:
		return http.StatusNotFound
	case field.Failed:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// Change says how pages change that have no field of their own.
type Change struct {
	// Interval is the time between two changes of a page of median rate, in seconds
	// of the web's time; with a Spread of your own, of mean rate.
	Interval float64
	Law      field.Law        // of the gaps; nil: exponential
	Spread   field.Law        // of rates across pages; nil: lognormal, as spread says
	Kinds    field.KindShares // zero: text changes, and nothing else
	Seed     uint64
}

// spread is the lognormal spread of change rates across pages: that of rates
// drawn evenly on a logarithmic scale over two powers of ten.
const spread = 1.33

// History returns the history of pages that change for ever, which follows from
// the seed for any number of pages.
func (c Change) History() (*field.Computed, error) {
	mean := field.Unit / c.Interval // changes a unit
	s := field.Spec{ChangeLaw: c.Law, ChangeSpread: c.Spread, Kinds: c.Kinds, Seed: rng.Mix(c.Seed, saltHistory)}
	if c.Spread == nil {
		mean *= math.Exp(spread * spread / 2)
		s.ChangeSpread = field.Lognormal{Sigma: spread}
	}
	if s.Kinds == (field.KindShares{}) {
		s.Kinds, s.Least, s.Most = field.Text(), 1, 1
	}
	s.Length = min(field.MaxTime, field.MaxEvents/mean)
	s.Changed = mean * s.Length
	return field.NewComputed(s)
}
