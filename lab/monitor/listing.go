package monitor

import (
	"errors"
	"math/bits"

	"github.com/freshet/freshet/lab/field"
)

// Bytes of an entry: a URL with the date of its last change in a compressed
// sitemap, and a digest with the number of its resource.
const (
	sitemapEntry = 30
	digestEntry  = 20
)

// listing is a robot that learns what changed from a list that it gets every
// period: of all resources with dates (sitemap lastmod, ResourceSync), or of
// the digests of those that changed, from a program at the server that walks
// its documents: the mobile robot, or our own sensor on a document root.
// What changed is then fetched by a crew of downloaders.
type listing struct {
	crew
	period float64
	mobile bool
	queue  fifo
	queued set
}

// Events of a listing in addition to downloads.
const (
	fetchList = Own + iota // the next list
	listed                 // the list has arrived
)

func readListing(mobile bool) func([]string) (func(field.Field) (Strategy, error), error) {
	return func(args []string) (func(field.Field) (Strategy, error), error) {
		if len(args) != 2 {
			return nil, errors.New("it has two arguments")
		}
		period, err := readPeriod(args[0])
		if err != nil {
			return nil, err
		}
		c, err := readCrew(args[1])
		if err != nil {
			return nil, err
		}
		return func(f field.Field) (Strategy, error) {
			return &listing{crew: c, period: period, mobile: mobile, queued: newSet(f.Pages())}, nil
		}, nil
	}
}

// Start waits for the first list.
func (l *listing) Start(s *Sim) { s.After(l.period, fetchList, 0, 0) }

// Done gets a list, reads it, or goes on with the queue. A list names what
// changed up to when it arrives.
func (l *listing) Done(s *Sim, e Event) {
	switch e.What {
	case fetchList:
		s.Probe(listed, 0, 0)
		s.After(l.period, fetchList, 0, 0)
	case listed:
		l.queueStale(s)
	default:
		l.busy--
		l.queued.removePage(e.Page)
	}
	fetchQueued(s, &l.crew, &l.queue, l.queued)
}

// queueStale queues what is stale.
func (l *listing) queueStale(s *Sim) {
	changed := 0
	for i, word := range s.unknown {
		changed += bits.OnesCount64(word)
		for word &^= l.queued[i]; word != 0; word &= word - 1 {
			p := uint32(i*64 + bits.TrailingZeros64(word))
			l.queued.insertPage(p)
			l.queue.pushPage(p)
		}
	}
	if l.mobile {
		s.Spend(int64(changed) * digestEntry)
	} else {
		s.Spend(int64(s.Pages()) * sitemapEntry)
	}
}
