package monitor

import (
	"math"
	"math/rand/v2"

	"github.com/freshet/freshet/internal/rng"
)

// Times of the model, in units; draws are uniform integers from 1 to these.
const (
	DownloadTime = 40
	ProbeTime    = 3
)

// Durations is the stream of the times that visits take in a run. Whoever draws
// from it in the order of the simulator has the simulator's times.
type Durations struct {
	rand  *rand.ChaCha8
	spare uint64 // random bits not yet used, the lower 32 of them
	left  bool
}

// NewDurations returns the stream of the run of that name.
func NewDurations(seed uint64, number, replication int) Durations {
	return Durations{rand: rng.Source(seed, "durations", number, replication)}
}

// Uniform returns an integer from 1 to n, uniform but for n/2^32.
func (d *Durations) Uniform(n uint64) float64 {
	if d.left = !d.left; d.left {
		d.spare = d.rand.Uint64()
		return float64(1 + d.spare>>32*n>>32)
	}
	return float64(1 + d.spare&math.MaxUint32*n>>32)
}
