package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/weburl"
)

type whyCmd struct {
	nodesRemote
	URL string `arg:"" help:"A page that the robot knows."`
}

// Help says where the answer comes from.
func (whyCmd) Help() string {
	return "Tells how a page was found, why it was rendered in a browser or not, what its visits saw and when the next one is due. Asks the running serve, or reads the database that is given, or the data directory where none runs."
}

// Run explains one page.
func (c *whyCmd) Run(ctx context.Context, g *command.Globals) error {
	if _, err := weburl.Parse(c.URL); err != nil {
		return command.Usagef("%q: %w (a web address is written with http:// or https://)", c.URL, err)
	}
	w, err := c.askWhy(ctx, g)
	if err != nil {
		return fmt.Errorf("why %s: %w", c.URL, err)
	}
	if g.JSON {
		return g.PrintJSON(w)
	}
	writeExplanation(g.Stdout, w, time.Now())
	return nil
}

func (c *whyCmd) askWhy(ctx context.Context, g *command.Globals) (w *console.Why, err error) {
	if c.usesDatabase() {
		err := c.withStore(ctx, func(s *postgres.Store) error {
			w, err = app.Explain(ctx, s, c.URL)
			return err
		})
		return w, err
	}
	dir, err := g.DataDir()
	if err != nil {
		return nil, err
	}
	if _, err := app.Address(dir); c.Address != "" || err == nil {
		w = new(console.Why)
		return w, c.Call(ctx, g, http.MethodGet, "/api/why?"+url.Values{"url": {c.URL}}.Encode(), nil, w)
	}
	path := filepath.Join(dir, "store")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("nothing was crawled into this data directory: %w", err)
	}
	st, err := local.Open(path, local.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return app.Explain(ctx, st, c.URL)
}

// writeExplanation writes the answer as sentences.
func writeExplanation(out io.Writer, w *console.Why, now time.Time) {
	fmt.Fprintln(out, w.URL)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	state := w.State
	if w.Status > 0 {
		state += fmt.Sprintf(", status %d", w.Status)
	}
	if w.Error != "" {
		state += ": " + w.Error
	}
	line("state", "%s", state)
	for i, from := range w.FoundOn {
		name := "found on"
		if i > 0 {
			name = "from"
		}
		line(name, "%s", from)
	}
	if len(w.FoundOn) == 0 {
		line("found on", "no page: it was a start")
	}
	if !w.Visited.IsZero() {
		line("visited", "%s, %.0f visits to compare, %.0f saw a change", w.Visited.Format(time.RFC3339), w.Visits, w.Changes)
	}
	if w.Reason != "" {
		verdict := "not rendered"
		switch {
		case w.Rendered && w.Waits:
			verdict = "rendered, and waits for the browser again"
		case w.Rendered:
			verdict = "rendered"
		case w.Waits:
			verdict = "waits for the browser; indexed as it was fetched"
		}
		line("browser", "%s: %s", verdict, w.Reason)
	}
	switch {
	case w.Next.IsZero():
	case w.Next.After(now):
		line("next visit", "%s (in %s)", w.Next.Format(time.RFC3339), w.Next.Sub(now).Round(time.Second))
	default:
		line("next visit", "due")
	}
}
