package monitor

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/lab/field"
)

// value always visits the resource whose visit is worth most by a rule of
// package revisit. Change rates are known, rounded to a quarter of an octave:
// among resources of one rate the one visited longest ago is worth most, since
// values rise with time, so a queue a rate is enough.
type value struct {
	crew
	rule   revisit.Value
	asks   bool
	rates  []float64 // of each class, real changes a second
	class  []uint16  // of each page
	queues []fifo    // of each class, the one visited longest ago first
	last   []float64 // visit of each page, units
}

// quarter is how many classes of rates an octave has.
const quarter = 4

func readValue(args []string) (func(field.Field) (Strategy, error), error) {
	c, ask, err := parseVisits(args)
	if err != nil {
		return nil, err
	}
	rule, ok := revisit.Values()[args[0]]
	if !ok {
		return nil, fmt.Errorf("no rule %q; there are %s", args[0], strings.Join(slices.Sorted(maps.Keys(revisit.Values())), ", "))
	}
	return func(f field.Field) (Strategy, error) {
		v := &value{crew: c, rule: rule, asks: ask, class: make([]uint16, f.Pages()), last: make([]float64, f.Pages())}
		v.classifyByRate(perSecond(f))
		return v, nil
	}, nil
}

// classifyByRate sorts pages by rate.
func (v *value) classifyByRate(rates []float64) {
	steps := map[int]bool{}
	step := func(d float64) int {
		if d <= 0 {
			return math.MinInt
		}
		return int(math.Round(math.Log2(d) * quarter))
	}
	for _, d := range rates {
		steps[step(d)] = true
	}
	order := slices.Sorted(maps.Keys(steps))
	number := map[int]uint16{}
	for i, k := range order {
		number[k] = uint16(i)
		d := 0.
		if k != math.MinInt {
			d = math.Exp2(float64(k) / quarter)
		}
		v.rates = append(v.rates, d)
	}
	v.queues = make([]fifo, len(order))
	for p, d := range rates {
		v.class[p] = number[step(d)]
		v.queues[v.class[p]].pushPage(uint32(p))
	}
}

// Start sends out the crew.
func (v *value) Start(s *Sim) { v.downloadMostValuable(s) }

// Done goes on after a probe or a download.
func (v *value) Done(s *Sim, e Event) {
	if e.What == asked {
		if _, more := v.finishQuery(s, e.Page); more {
			return
		}
	} else {
		v.busy--
	}
	if e.What != paused {
		v.requeueVisited(s, e.Page)
	}
	v.downloadMostValuable(s)
}

func (v *value) requeueVisited(s *Sim, p uint32) {
	v.last[p] = s.Now()
	v.queues[v.class[p]].pushPage(p)
}

// mostValuableClass returns the class whose first page is worth most now, -1 if all pages
// are under way.
func (v *value) mostValuableClass(now float64) int {
	best, most := -1, math.Inf(-1)
	for i := range v.queues {
		q := &v.queues[i]
		if q.n == 0 {
			continue
		}
		worth := v.rule(1, v.rates[i], (now-v.last[q.buf[q.head]])*field.Unit)
		if worth > most {
			best, most = i, worth
		}
	}
	return best
}

// downloadMostValuable puts every free downloader to work. A page in error takes no time; a
// whole field of them is waited out.
func (v *value) downloadMostValuable(s *Sim) {
	for spin := 0; v.hasFreeDownloader(); {
		c := v.mostValuableClass(s.Now())
		if c < 0 {
			return
		}
		p := v.queues[c].popPage()
		switch {
		case v.asks:
			v.beginQuery(s, p)
		case s.Download(0, p):
			v.busy++
		default:
			v.requeueVisited(s, p)
			if spin++; spin > s.Pages() {
				v.busy++
				s.After(pause, paused, 0, 0)
			}
		}
	}
}
