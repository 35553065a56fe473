package field

import "math"

// State is what a resource is between two real changes.
type State struct {
	Kind   Kind    // of the real change that began it; Same at the start
	Size   uint32  // bytes
	Number uint64  // grows with every real change; 0 at the start
	Since  float64 // of that change, units; 0 at the start
	Until  float64 // of the next real change, +Inf if there is none before the horizon
}

// Lookup tells what any resource is at any time, without reading the history
// through: an Index of one that is given, or a Computed one.
type Lookup interface {
	// At returns the state of a resource at time t >= 0. It is called
	// concurrently.
	At(page uint64, t float64) State
}

// Still is the history of resources that never change.
type Still struct{}

// At returns the state at the start.
func (Still) At(uint64, float64) State { return State{Kind: Same, Until: math.Inf(1)} }
