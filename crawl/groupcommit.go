package crawl

import (
	"sync"
	"sync/atomic"
	"time"
)

// groupWait is how long a commit waits for those of other agents.
const groupWait = 20 * time.Millisecond

// groupCommit lets agents commit together, since each sync of the disk costs as much
// CPU as visiting several pages, however little is written. Who comes first
// waits a moment; agents that finish a page meanwhile see that it is joinable,
// and join. As their batches begin together, so do their next commits come due.
type groupCommit struct {
	joinable atomic.Bool

	mu   sync.Mutex
	open *commitGroup // nil if nobody waits
}

// commitGroup is one such commit.
type commitGroup struct {
	members int
	full    chan struct{} // holds a token when nobody else can come
	done    chan struct{} // closed when bodies are durable, or err says why not
	err     error
}

func newCommitGroup() *commitGroup {
	return &commitGroup{members: 1, full: make(chan struct{}, 1), done: make(chan struct{})}
}

// join runs sync once for all agents of a round and returns when that is done.
// agents is how many there are that might come.
func (g *groupCommit) join(agents int, sync func() error) error {
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
	r = newCommitGroup()
	g.open = r
	g.joinable.Store(true)
	g.mu.Unlock()
	if agents > 1 {
		r.wait()
	}
	g.mu.Lock()
	g.open = nil
	g.joinable.Store(false)
	g.mu.Unlock()
	r.err = sync()
	close(r.done)
	return r.err
}

func (r *commitGroup) wait() {
	t := time.NewTimer(groupWait)
	defer t.Stop()
	select {
	case <-r.full:
	case <-t.C:
	}
}

// working is how many agents might commit now.
func (r *Robot) working() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live) + r.writing
}

// syncBodies makes the bodies that were archived durable.
func (r *Robot) syncBodies() error {
	if r.config.Archive == nil {
		return nil
	}
	return r.config.Archive.Sync()
}
