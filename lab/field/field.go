// Package field holds the object that robots watch: resources that change and
// are asked for by visitors. It owns the laws by which they do so, the
// histories made from laws and the histories read from logs, for the
// monitoring simulator and for anything else that replays them.
//
// A history is read as a stream sorted by time, in bounded memory: many
// independent Poisson clocks are one Poisson clock of the summed rate whose
// events fall on resources in proportion to their rates, so exponential laws
// need neither a queue nor a sort; other laws merge one clock a resource in a
// heap. Every stream is named by (seed, field, replication, stream), so that
// all who read a field see the same history, and reading one stream does not
// disturb another.
package field

import (
	"errors"
	"fmt"
)

// Unit is the length of a model time unit in seconds; all times of this package
// are in units.
const Unit = 0.1

// Kind is what a change event does to a resource.
type Kind uint8

// Kinds of events. A resource whose last event is of one of the first three
// kinds answers with that error.
const (
	Forbidden Kind = 1 + iota // answers 403
	Missing                   // answers 404
	Failed                    // answers 500
	Shrunk                    // is available and smaller
	Grown                     // is available and larger
	Same                      // is available as it was
)

const kinds = int(Same)

// String returns the name of the kind.
func (k Kind) String() string {
	if k < Forbidden || k > Same {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return [...]string{"forbidden", "missing", "failed", "shrunk", "grown", "same"}[k-1]
}

// Gone reports whether a resource answers with an error after such an event:
// nothing can be downloaded from it.
func (k Kind) Gone() bool { return k <= Failed }

// Real reports whether an event of kind k after one of kind prev makes a change
// that an index must learn of. An error that repeats, or availability that
// goes on, is none.
func Real(prev, k Kind) bool {
	switch {
	case k == prev && (k.Gone() || k == Same):
		return false
	case k == Same && (prev == Shrunk || prev == Grown):
		return false
	}
	return true
}

// Change is an event of a change history.
type Change struct {
	Time float64 // units since the start
	Page uint32  // from 0
	Size uint32  // bytes of the resource from now on
	Kind Kind
	Real bool // see Real
}

// Request is a visit of a resource by somebody else than the robot.
type Request struct {
	Time float64
	Page uint32
}

// ChangeReader is a stream of changes in order of time.
type ChangeReader interface {
	// Read fills buf and returns how many changes it holds; 0 is the end.
	Read(buf []Change) int
}

// RequestReader is a stream of requests in order of time.
type RequestReader interface {
	// Read fills buf and returns how many requests it holds; 0 is the end.
	Read(buf []Request) int
}

// Field is resources with their histories. All resources are available and of
// kind Same at the start. Its methods may be called concurrently; each reader
// belongs to one goroutine.
type Field interface {
	Pages() int
	Horizon() float64        // units; no event is at or after it
	Sizes() []uint32         // at the start; not to be modified
	Rates() []float64        // real changes a unit of each resource; not to be modified
	RequestRates() []float64 // requests a unit of each resource; not to be modified
	Changes() ChangeReader
	Requests() RequestReader
}

// ErrInput is in every error about a field that makes no sense.
var ErrInput = errors.New("field")
