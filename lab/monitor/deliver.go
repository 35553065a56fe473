package monitor

import (
	"errors"

	"github.com/freshet/freshet/lab/field"
)

// deliver is a site that sends a resource itself whenever it changes, as a
// WebSub hub that distributes content: nobody asks and nothing waits.
type deliver struct{}

func readDeliver(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) != 0 {
		return nil, errors.New("it has no arguments")
	}
	return func(field.Field) (Strategy, error) { return deliver{}, nil }, nil
}

// Start does nothing: the site does.
func (deliver) Start(*Sim) {}

// Changed sends the resource; what is sent is its present state.
func (deliver) Changed(s *Sim, page uint32) { s.DownloadKnown(0, page) }

// Done has nothing to go on with.
func (deliver) Done(*Sim, Event) {}
