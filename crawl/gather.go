package crawl

import (
	"sync"
	"sync/atomic"
	"time"
)

// gatherTime is how long a commit waits for those of other agents.
const gatherTime = 20 * time.Millisecond

// gather lets agents commit together, since each sync of the disk costs as much
// CPU as visiting several pages, however little is written. Who comes first
// waits a moment; agents that finish a page meanwhile see that it is inviting,
// and join. As their batches begin together, so do their next commits come due.
type gather struct {
	inviting atomic.Bool

	mu   sync.Mutex
	open *round // nil if nobody waits
}

// round is one such commit.
type round struct {
	members int
	full    chan struct{} // holds a token when nobody else can come
	done    chan struct{} // closed when bodies are durable, or err says why not
	err     error
}

func newRound() *round {
	return &round{members: 1, full: make(chan struct{}, 1), done: make(chan struct{})}
}

// join runs sync once for all agents of a round and returns when that is done.
// agents is how many there are that might come.
func (g *gather) join(agents int, sync func() error) error {
	g.mu.Lock()
	r := g.open
	if r != nil {
		if r.members++; r.members >= agents { // others may have counted more, or fewer
			select {
			case r.full <- struct{}{}:
			default:
			}
		}
		g.mu.Unlock()
		<-r.done
		return r.err
	}
	r = newRound()
	g.open = r
	g.inviting.Store(true)
	g.mu.Unlock()
	if agents > 1 {
		r.wait()
	}
	g.mu.Lock()
	g.open = nil
	g.inviting.Store(false)
	g.mu.Unlock()
	r.err = sync()
	close(r.done)
	return r.err
}

func (r *round) wait() {
	t := time.NewTimer(gatherTime)
	defer t.Stop()
	select {
	case <-r.full:
	case <-t.C:
	}
}
