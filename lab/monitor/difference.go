package monitor

import (
	"errors"

	"github.com/freshet/freshet/lab/field"
)

// difference is a site that sends what changed of a resource when it changes.
type difference struct{ part float64 }

func readDifference(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) != 1 {
		return nil, errors.New("it has one argument")
	}
	part, err := readPart(args[0])
	return func(field.Field) (Strategy, error) { return difference{part}, nil }, err
}

// readDelta makes robots that ask first and are answered with differences.
func readDelta(args []string) (func(field.Field) (Strategy, error), error) {
	if len(args) != 2 {
		return nil, errors.New("it has two arguments")
	}
	part, err := readPart(args[1])
	if err != nil {
		return nil, err
	}
	return sendRobots(args[0], true, part)
}

// Start does nothing: the site does.
func (difference) Start(*Sim) {}

// Changed sends the difference.
func (d difference) Changed(s *Sim, page uint32) { s.DownloadKnownPart(0, page, d.part) }

// Done has nothing to go on with.
func (difference) Done(*Sim, Event) {}
