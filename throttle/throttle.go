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
	"errors"
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
	if len(thresholds) == 0 && len(modes) == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.thresholds, c.modes, c.set = nil, nil, false
		return nil
	}
	if len(modes) != len(thresholds)+1 {
		return fmt.Errorf("throttle: %d modes for %d thresholds, need %d", len(modes), len(thresholds), len(thresholds)+1)
	}
	if !slices.IsSorted(thresholds) || !slices.IsSorted(modes) {
		return errors.New("throttle: thresholds and modes must not fall")
	}
	if thresholds != nil && thresholds[0] < -1 {
		return fmt.Errorf("throttle: threshold %d is below -1", thresholds[0])
	}
	if modes[0] < 0 {
		return fmt.Errorf("throttle: %d agents", modes[0])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thresholds, c.modes, c.set = slices.Clone(thresholds), slices.Clone(modes), true
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
