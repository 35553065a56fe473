package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/testweb"
)

// webLife says what happens on a served web: changes and visits.
type webLife struct {
	Field        string        `help:"Pages change as the resources of this field file (monitor field): their status, size, text and validators." type:"path" placeholder:"FILE"`
	Changes      time.Duration `help:"Time between two changes of a page of median rate, of the web's time; 0: never." placeholder:"D"`
	ChangeLaw    string        `help:"Law of the gaps between changes: ${laws}." default:"exponential"`
	ChangeSpread string        `help:"Law of change rates across pages (default: lognormal:1.33; with another, --changes is that of mean rate)." placeholder:"LAW"`
	Kinds        string        `help:"What changes do: text; classic (pages fail, shrink and grow as in monitor run); or six probabilities of forbidden, missing, failed, shrunk, grown, same." default:"text"`
	TimeScale    float64       `help:"Seconds of the web in one of the clock." default:"1" aliases:"speed"`
	Visitors     string        `help:"Visits a second by random surfers, as a sensor would see; or \"field\": the requests of --field." placeholder:"RATE"`
	VisitVia     string        `help:"Address that visitors connect to, e.g. of a sensor proxy (default: the web itself)." placeholder:"ADDR"`

	replayed field.Field
	rate     float64
}

// configureHistory sets the history of a web whose pages are known.
func (c *webLife) configureHistory(cfg *testweb.Config) (err error) {
	cfg.TimeScale = c.TimeScale
	switch {
	case c.Changes < 0:
		return command.Usagef("--changes %s: time between changes cannot be negative", c.Changes)
	case c.Changes > 0 && c.Field != "":
		return command.Usagef("--changes and --field: give one")
	case c.Changes > 0:
		err = c.configureChange(cfg)
	case c.Field != "":
		err = c.followField(cfg)
	}
	if err != nil || c.Visitors == "" {
		return err
	}
	if c.Visitors == "field" {
		if c.replayed == nil {
			return command.Usagef("--visitors field: which? give --field FILE")
		}
		return nil
	}
	if c.rate, err = strconv.ParseFloat(c.Visitors, 64); err != nil || !(c.rate >= 0) {
		return command.Usagef("--visitors %s: a number of visits a second, or \"field\"", c.Visitors)
	}
	return nil
}

// configureChange makes pages change by laws.
func (c *webLife) configureChange(cfg *testweb.Config) (err error) {
	ch := testweb.Change{Interval: c.Changes.Seconds(), Seed: cfg.Seed}
	if ch.Law, err = field.ParseLaw(c.ChangeLaw); err != nil {
		return command.Usagef("--change-law: %w", err)
	}
	if c.ChangeSpread != "" {
		if ch.Spread, err = field.ParseLaw(c.ChangeSpread); err != nil {
			return command.Usagef("--change-spread: %w", err)
		}
	}
	if c.Kinds != "text" {
		if ch.Kinds, err = field.ParseKinds(c.Kinds); err != nil {
			return command.Usagef("--kinds: %w", err)
		}
		cfg.Sizes = true
	}
	if cfg.History, err = ch.History(); err != nil {
		return command.Usagef("--changes %s: %w", c.Changes, err)
	}
	return nil
}

// followField makes pages follow a field file. Where nothing says what web it is, the
// resources are one site, at the addresses that the file tells.
func (c *webLife) followField(cfg *testweb.Config) error {
	f, err := readField(c.Field)
	if err != nil {
		return err
	}
	c.replayed = f
	index, err := field.NewIndex(f)
	if err != nil {
		return command.Usagef("--field %s: %w", c.Field, err)
	}
	cfg.History, cfg.Sizes = index, true
	pages := cfg.Pages
	if cfg.Graph != nil {
		pages = cfg.Graph.Nodes()
	}
	if pages == 0 {
		pages = uint64(f.Pages())
		cfg.Pages, cfg.Sites = pages, max(cfg.Sites, 1)
		if h, ok := f.(*field.History); ok && cfg.Sites == 1 {
			for p := range f.Pages() {
				cfg.Paths = append(cfg.Paths, h.Name(uint32(p)))
			}
		}
	}
	if uint64(f.Pages()) > pages {
		return command.Usagef("--field %s: %d resources, but the web has %d pages", c.Field, f.Pages(), pages)
	}
	return nil
}

// serveWithVisitors serves while during runs, with visitors.
func (c *webLife) serveWithVisitors(ctx context.Context, g *command.Globals, s *testweb.Server, seed uint64, during func(context.Context, *testweb.Server) error) error {
	v := testweb.Visitors{Rate: c.rate, Seed: seed, To: c.VisitVia}
	switch {
	case c.Visitors == "field":
		v.Requests = c.replayed.Requests()
	case c.rate == 0:
		return during(ctx, s)
	}
	visiting, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		seen, err := s.Visit(visiting, v)
		if err == nil && seen.Latest > time.Second && !g.Quiet {
			fmt.Fprintf(g.Stderr, "visitors were up to %s late: the machine cannot follow; lower --speed\n", seen.Latest.Round(time.Millisecond))
		}
		done <- err
	}()
	err := during(ctx, s)
	stop()
	return errors.Join(err, <-done)
}

// fileExists reports whether there is a file or folder of a name.
func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
