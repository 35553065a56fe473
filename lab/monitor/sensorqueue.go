package monitor

import (
	"errors"

	"github.com/freshet/freshet/lab/field"
)

// sensorQueue is the sensor with limits: alerts wait in a queue of bounded
// length for a crew of downloaders, and a resource of which an alert is under
// way is not alerted of again. An alert that finds the queue full is lost; the
// next visitor of the resource makes another.
type sensorQueue struct {
	crew
	length  int
	queue   fifo
	alerted set
	dropped int64
}

func readSensorQueue(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, errors.New("it has one or two arguments")
	}
	c, err := readCrew(args[0])
	if err != nil {
		return nil, err
	}
	length := 1000
	if len(args) == 2 {
		if length, err = parseRobotCount(args[1]); err != nil {
			return nil, err
		}
	}
	return func(f field.Field) (Strategy, error) {
		return &sensorQueue{crew: c, length: length, alerted: newSet(f.Pages())}, nil
	}, nil
}

// Start does nothing: visitors do.
func (*sensorQueue) Start(*Sim) {}

// Requested alerts of a stale resource.
func (q *sensorQueue) Requested(s *Sim, page uint32) {
	if !q.alerted.containsPage(page) {
		q.alerted.insertPage(page)
		s.Probe(alerted, 0, page)
	}
}

// Done takes an alert in, or goes on with the queue.
func (q *sensorQueue) Done(s *Sim, e Event) {
	switch {
	case e.Downloaded():
		q.busy--
	case q.queue.n < q.length || q.hasFreeDownloader():
		q.queue.pushPage(e.Page)
	default:
		q.dropped++
		q.alerted.removePage(e.Page)
	}
	for q.hasFreeDownloader() && q.queue.n > 0 {
		p := q.queue.popPage()
		q.alerted.removePage(p)
		if s.DownloadKnown(0, p) {
			q.busy++
		}
	}
}

// Dropped returns the number of alerts lost.
func (q *sensorQueue) Dropped() int64 { return q.dropped }
