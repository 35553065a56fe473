package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/score"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// webScoreCmd judges robots.
type webScoreCmd struct {
	Truth  []string `arg:"" help:"Truth logs written by web serve, one for each robot."`
	Web    string   `help:"The stored graph, if it has moved since." placeholder:"FILE"`
	Agent  string   `help:"Judge only requests whose user agent contains this." placeholder:"TEXT"`
	Pages  uint64   `help:"Number of pages that exist, if the log does not say." placeholder:"N"`
	Report string   `help:"Write the cards side by side, with plots, to this HTML file." placeholder:"FILE"`
}

// Run prints the score cards.
func (c *webScoreCmd) Run(ctx context.Context, g *command.Globals) error {
	var cards []score.Named
	for _, path := range c.Truth {
		card, err := c.judgeLog(ctx, g, path)
		if err != nil {
			return err
		}
		cards = append(cards, score.Named{Name: strings.TrimSuffix(filepath.Base(path), ".jsonl"), Card: card})
	}
	if c.Report != "" {
		if err := writeReport(c.Report, cards); err != nil {
			return err
		}
	}
	if g.JSON {
		if len(cards) == 1 {
			return g.PrintJSON(cards[0].Card)
		}
		all := map[string]*score.Card{}
		for i, path := range c.Truth {
			all[path] = cards[i].Card
		}
		return g.PrintJSON(map[string]any{"cards": all})
	}
	for i, card := range cards {
		if len(cards) > 1 {
			fmt.Fprintf(g.Stdout, "%s%s:\n", strings.Repeat("\n", min(i, 1)), card.Name)
		}
		if err := card.Print(g.Stdout); err != nil {
			return err
		}
	}
	return nil
}

// judgeLog judges one log.
func (c *webScoreCmd) judgeLog(ctx context.Context, g *command.Globals, path string) (*score.Card, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, command.Usagef("web score: %w", err)
	}
	defer f.Close()
	r, err := truth.NewReader(f)
	if err != nil {
		return nil, command.Usagef("%s: %w", path, err)
	}
	opt := score.Options{Agent: c.Agent, Pages: c.Pages}
	if err := c.recreateWeb(ctx, g, &opt, path, &r.Head); err != nil {
		return nil, err
	}
	card, err := score.Read(ctx, r, opt)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, command.Usagef("%s: %w", path, err)
	}
	return card, nil
}

// maxObtainable is the greatest web that is walked by the perfect robot.
const maxObtainable = 1_000_000

// recreateWeb makes the web that was served again, as far as the log tells.
func (c *webScoreCmd) recreateWeb(ctx context.Context, g *command.Globals, opt *score.Options, path string, h *truth.Head) (err error) {
	cfg := testweb.Config{
		Pages: h.Pages, Sites: h.Sites, Seed: h.Seed, TimeScale: h.TimeScale,
		Names: name.Scheme{Parent: h.Parent, Dotted: h.Dotted},
	}
	graph := h.Graph
	if c.Web != "" {
		graph = c.Web
	}
	if graph != "" {
		if cfg.Graph, err = openStored(g, ctx, graph); err != nil {
			return err
		}
	} else if h.Pages == 0 || h.Pages > score.MaxOrder {
		return nil
	} else if cfg.Graph, err = servedGraph(h, &cfg); err != nil {
		return err
	}
	if cfg.Behaviours, err = behaviour.Parse("", []byte(h.Behaviours)); err != nil {
		return command.Usagef("%s: %w", path, err)
	}
	web, err := testweb.NewWeb(cfg)
	if err != nil {
		return command.Usagef("%s: %w", path, err)
	}
	opt.Graph = web.Graph()
	if h.Pages > 0 && web.Pages() <= maxObtainable {
		opt.Obtainable = web.Obtainable
	}
	return nil
}

func writeReport(path string, cards []score.Named) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	if err := errors.Join(score.Report(f, cards), f.Close()); err != nil {
		return fmt.Errorf("--report %s: %w", path, err)
	}
	return nil
}
