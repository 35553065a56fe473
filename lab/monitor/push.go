package monitor

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/freshet/freshet/lab/field"
)

// push is a site that reports its changes when they happen, each with some
// probability: what IndexNow does. Pages told of wait for a crew of downloaders.
type push struct {
	crew
	share  float64
	queue  fifo
	queued set // or under way: the end of a download learns what came meanwhile
}

func readPush(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, errors.New("it has one or two arguments")
	}
	c, err := readCrew(args[0])
	if err != nil {
		return nil, err
	}
	share := 1.
	if len(args) == 2 {
		if share, err = strconv.ParseFloat(args[1], 64); err != nil || !(share > 0 && share <= 1) {
			return nil, fmt.Errorf("share %q is not in (0, 1]", args[1])
		}
	}
	return func(f field.Field) (Strategy, error) {
		return &push{crew: c, share: share, queued: newSet(f.Pages())}, nil
	}, nil
}

// Start does nothing: the site does.
func (*push) Start(*Sim) {}

// Changed sends a notice.
func (q *push) Changed(s *Sim, page uint32) {
	if !q.queued.containsPage(page) && (q.share == 1 || s.Unit() < q.share) {
		q.queued.insertPage(page)
		s.Probe(alerted, 0, page)
	}
}

// Done takes a notice in, or goes on with the queue.
func (q *push) Done(s *Sim, e Event) {
	if e.Downloaded() {
		q.busy--
		q.queued.removePage(e.Page)
	} else {
		q.queue.pushPage(e.Page)
	}
	fetchQueued(s, &q.crew, &q.queue, q.queued)
}

// fetchQueued downloads from a queue while there are downloaders.
func fetchQueued(s *Sim, c *crew, q *fifo, queued set) {
	for c.hasFreeDownloader() && q.n > 0 {
		p := q.popPage()
		if s.Download(0, p) {
			c.busy++
		} else {
			queued.removePage(p)
		}
	}
}
