package attack

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Verdict is what the score card says of one attack.
type Verdict struct {
	Name      string `json:"name"`
	What      string `json:"what"`
	Withstood bool   `json:"withstood"`
	Why       string `json:"why,omitempty"` // why not
	Requests  int    `json:"requests"`
}

// Card is the score of a robot.
type Card struct {
	Attacks    []Verdict `json:"attacks"`
	Withstood  int       `json:"withstood"`
	Runs       []Run     `json:"runs,omitempty"`
	ProcessBad string    `json:"process,omitempty"` // what is wrong with the robot's process: its exit or its memory
}

// Run is one run of the robot's command.
type Run struct {
	Exit       string  `json:"exit"` // "exit status 0", or the signal
	Seconds    float64 `json:"seconds"`
	PeakMemory float64 `json:"peak_memory_mb"`
}

// Passed reports whether every attack was withstood by a process that ended
// well.
func (c *Card) Passed() bool { return c.ProcessBad == "" && c.Withstood == len(c.Attacks) }

// Judge returns the verdicts on what was asked for until now. delay is the pause
// between two requests to one host that the robot was told to keep. runs is how
// often the robot was run: each run may ask again.
func (w *Web) Judge(delay time.Duration, runs int) *Card {
	c := &Card{}
	for _, s := range w.sites {
		v := s.judgeVisit(delay, max(1, runs))
		if v.Withstood {
			c.Withstood++
		}
		c.Attacks = append(c.Attacks, v)
	}
	return c
}

func (s *site) judgeVisit(delay time.Duration, runs int) Verdict {
	hits, n := s.recordedHits()
	v := Verdict{Name: s.name, What: s.what, Requests: n}
	bound := s.maxRequests
	if bound == 0 {
		bound = defaultRequests
	}
	switch {
	case n == 0:
		v.Why = "the robot never came"
	case !s.canaryOptional && !slices.ContainsFunc(hits, func(h Hit) bool { return h.Target == canaryPath }):
		v.Why = "the ordinary page after the hostile ones was not fetched"
	case n > bound*runs:
		v.Why = fmt.Sprintf("%d requests; %d are enough", n, bound*runs)
	case s.bystander != nil:
		others, _ := s.bystander.recordedHits()
		if err := s.attack.bystander(others, delay); err != nil {
			v.Why = err.Error()
		}
	}
	v.Withstood = v.Why == ""
	return v
}

// Print writes the card as text.
func (c *Card) Print(w io.Writer) {
	for _, v := range c.Attacks {
		mark := "withstood"
		if !v.Withstood {
			mark = "FAILED   "
		}
		fmt.Fprintf(w, "%s  %-20s %6d requests  %s\n", mark, v.Name, v.Requests, v.What)
		if v.Why != "" {
			fmt.Fprintf(w, "           %s\n", v.Why)
		}
	}
	for i, r := range c.Runs {
		fmt.Fprintf(w, "run %d: %s after %.1f s, at most %.0f MB\n", i+1, r.Exit, r.Seconds, r.PeakMemory)
	}
	if c.ProcessBad != "" {
		fmt.Fprintf(w, "FAILED     %s\n", c.ProcessBad)
	}
	fmt.Fprintf(w, "%d of %d attacks withstood\n", c.Withstood, len(c.Attacks))
}
