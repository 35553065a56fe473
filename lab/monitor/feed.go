package monitor

import (
	"errors"

	"github.com/freshet/freshet/lab/field"
)

// feedEntry is the bytes of an entry of a compressed feed: address, title, date.
const feedEntry = 60

// feed is a robot that reads, every period, the site's feed of its last changes
// (RSS, Atom, a change list of ResourceSync). A change that has left the feed
// before it was read is found when the resource changes again.
type feed struct {
	crew
	period float64
	length int
	last   fifo // resources of the last changes, the oldest first
	queue  fifo
	queued set
}

func readFeed(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) < 2 || len(args) > 3 {
		return nil, errors.New("it has two or three arguments")
	}
	period, err := readPeriod(args[0])
	if err != nil {
		return nil, err
	}
	c, err := readCrew(args[1])
	length := 100
	if err == nil && len(args) == 3 {
		length, err = parseRobotCount(args[2])
	}
	return func(f field.Field) (Strategy, error) {
		return &feed{crew: c, period: period, length: length, queued: newSet(f.Pages())}, nil
	}, err
}

// Start waits for the first reading.
func (f *feed) Start(s *Sim) { s.After(f.period, fetchList, 0, 0) }

// Changed puts a change into the feed.
func (f *feed) Changed(_ *Sim, page uint32) {
	if f.last.n == f.length {
		f.last.popPage()
	}
	f.last.pushPage(page)
}

// Done gets the feed, reads it, or goes on with the queue.
func (f *feed) Done(s *Sim, e Event) {
	switch e.What {
	case fetchList:
		s.Probe(listed, 0, 0)
		s.After(f.period, fetchList, 0, 0)
	case listed:
		s.Spend(int64(f.last.n) * feedEntry)
		for range f.last.n {
			p := f.last.popPage()
			f.last.pushPage(p)
			if s.Stale(p) && !f.queued.containsPage(p) {
				f.queued.insertPage(p)
				f.queue.pushPage(p)
			}
		}
	default:
		f.busy--
		f.queued.removePage(e.Page)
	}
	fetchQueued(s, &f.crew, &f.queue, f.queued)
}
