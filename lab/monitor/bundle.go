package monitor

import (
	"errors"

	"github.com/freshet/freshet/lab/field"
)

// bundle is the modified robot that asks of several resources in one request,
// and then downloads those that changed, one after the other.
type bundle struct {
	*robots
	count  int
	answer []fifo // what each robot has to download
}

func readBundle(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) != 2 {
		return nil, errors.New("it has two arguments")
	}
	n, err := parseRobotCount(args[1])
	if err != nil {
		return nil, err
	}
	send, err := sendRobots(args[0], true, 1)
	return func(f field.Field) (Strategy, error) {
		r, err := send(f)
		if err != nil {
			return nil, err
		}
		robots := r.(*robots)
		return &bundle{robots, n, make([]fifo, len(robots.shares))}, nil
	}, err
}

// Start lets every robot ask.
func (b *bundle) Start(s *Sim) {
	for i := range b.shares {
		s.Probe(asked, uint32(i), b.shares[i].next)
	}
}

// Done reads an answer, which tells what is stale when it comes, or goes on with
// one; after the last download the robot asks of the next resources.
func (b *bundle) Done(s *Sim, e Event) {
	sh, todo := &b.shares[e.Agent], &b.answer[e.Agent]
	if e.What == asked {
		for range min(b.count, int(sh.end-sh.first)) {
			if s.Stale(sh.next) {
				todo.pushPage(sh.next)
			}
			if sh.next++; sh.next == sh.end {
				sh.next = sh.first
			}
			sh.visits++
		}
	}
	for todo.n > 0 {
		if s.Download(e.Agent, todo.popPage()) {
			return
		}
	}
	s.Probe(asked, e.Agent, sh.next)
}
