package change

import "math"

// LLN estimates a rate on line from visits at random times of rate p, by the law
// of large numbers: of k visits S found a change, which the share D/(D + p)
// does, so D is about p S/(k + 1 - S) (Avrachenkov, Patil, Thoppe 2020).
type LLN struct {
	Visits  float64 // visits per time
	visits  float64
	changed float64
}

// Observe adds a visit.
func (e *LLN) Observe(changed bool) {
	e.visits++
	if changed {
		e.changed++
	}
}

// Rate is the estimate; 0 before any change, finite where every visit saw one.
func (e *LLN) Rate() float64 { return e.Visits * e.changed / (e.visits + 1 - e.changed) }

// Approximation estimates a rate by stochastic approximation: each visit moves
// it by a step that shrinks as k^-Fade, towards the rate at which the share of
// changed visits is what was seen (Avrachenkov et al. 2020). Unlike LLN it
// follows a rate that drifts, the faster the less the step shrinks.
type Approximation struct {
	Visits float64 // visits per time
	Fade   float64 // in (0.5, 1]; default 0.75
	Step   float64 // of the first visit; default 1

	estimate float64
	visits   float64
}

// Observe adds a visit.
func (a *Approximation) Observe(changed bool) {
	fade, step := a.Fade, a.Step
	if fade <= 0 || fade > 1 {
		fade = .75
	}
	if step <= 0 {
		step = 1
	}
	a.visits++
	saw := 0.0
	if changed {
		saw = 1
	}
	// The mean of saw (x + p) - x is 0 where x = D.
	a.estimate += step * math.Pow(a.visits, -fade) * (saw*(a.estimate+a.Visits) - a.estimate)
	a.estimate = max(a.estimate, 0)
}

// Rate is the estimate.
func (a *Approximation) Rate() float64 { return a.estimate }
