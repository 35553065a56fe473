// Package throttle says how many agents may be active at which length of the
// indexing queue: the threshold policy of the queueing model between robots
// and indexer.
//
// Thresholds j1 <= j2 <= ... <= jk cut the queue length into k+1 stretches; at
// up to j1 waiting pages the largest mode is active, then with each threshold
// passed the next smaller one. There is no hysteresis: the model has none, and
// agents end at page boundaries anyway, so that a change costs nothing.
package throttle

import (
	"fmt"
	"slices"
	"sync"
)

// Controller follows a threshold policy. The zero value allows any number of
// agents. It is safe for concurrent use.
type Controller struct {
	mu         sync.Mutex
	thresholds []int
	modes      []int
	set        bool
}

// New returns a controller, or the error of Set.
func New(thresholds, modes []int) (*Controller, error) {
	c := &Controller{}
	return c, c.Set(thresholds, modes)
}

// Set changes the policy: modes are numbers of active agents, fewest first, one
// more than thresholds. Both must not fall; no thresholds and no modes end the
// control.
func (c *Controller) Set(thresholds, modes []int) error {
	if err := Check(thresholds, modes); err != nil {
		return fmt.Errorf("throttle.%w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thresholds, c.modes, c.set = slices.Clone(thresholds), slices.Clone(modes), len(modes) > 0
	return nil
}

// Bounds of a policy.
const (
	maxThresholds = 1000
	maxModeAgents = 100_000
)

// Check returns what is wrong with a policy, nil if Set takes it. The error
// begins with the key, "thresholds" or "modes".
func Check(thresholds, modes []int) error {
	if len(thresholds) == 0 && len(modes) == 0 {
		return nil
	}
	if len(thresholds) > maxThresholds {
		return fmt.Errorf("thresholds: %d values, at most %d are allowed", len(thresholds), maxThresholds)
	}
	if len(modes) != len(thresholds)+1 {
		return fmt.Errorf("modes: %d values for %d thresholds, want %d", len(modes), len(thresholds), len(thresholds)+1)
	}
	for i, v := range thresholds {
		if v < -1 {
			return fmt.Errorf("thresholds[%d]: %d is below -1", i, v)
		}
		if i > 0 && v < thresholds[i-1] {
			return fmt.Errorf("thresholds[%d]: %d is below the value before it, %d", i, v, thresholds[i-1])
		}
	}
	for i, v := range modes {
		if v < 0 || v > maxModeAgents {
			return fmt.Errorf("modes[%d]: %d agents is not in 0 to %d", i, v, maxModeAgents)
		}
		if i > 0 && v < modes[i-1] {
			return fmt.Errorf("modes[%d]: %d is below the value before it, %d", i, v, modes[i-1])
		}
	}
	return nil
}

// Active returns how many agents may be active with so many pages waiting; any
// number is allowed without a policy, which limit false says.
func (c *Controller) Active(queue int) (agents int, limit bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.set {
		return 0, false
	}
	passed := 0
	for passed < len(c.thresholds) && queue > c.thresholds[passed] {
		passed++
	}
	return c.modes[len(c.modes)-1-passed], true
}

// Policy returns copies of the thresholds and modes.
func (c *Controller) Policy() (thresholds, modes []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.thresholds), slices.Clone(c.modes)
}
