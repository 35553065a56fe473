package monitor

import (
	"errors"

	"github.com/freshet/freshet/lab/field"
)

// batchOf is a site that sends, every period, all resources that changed, or all
// that it has: an archive of the site. They come side by side.
type batchOf struct {
	period float64
	whole  bool
}

// sending: a period is over.
const sending = Own

func readBatch(whole bool) func([]string) (func(field.Field) (Strategy, error), error) {
	return func(args []string) (func(field.Field) (Strategy, error), error) {
		if len(args) != 1 {
			return nil, errors.New("it has one argument")
		}
		period, err := readPeriod(args[0])
		return func(field.Field) (Strategy, error) { return &batchOf{period, whole}, nil }, err
	}
}

// Start waits for the first period to end.
func (b *batchOf) Start(s *Sim) { s.After(b.period, sending, 0, 0) }

// Done sends.
func (b *batchOf) Done(s *Sim, e Event) {
	if e.What != sending {
		return
	}
	for p := range uint32(s.Pages()) {
		if b.whole || s.Stale(p) {
			s.DownloadKnown(0, p)
		}
	}
	s.After(b.period, sending, 0, 0)
}
