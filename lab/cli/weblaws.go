package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/webgraph/gen"
)

// webLawsCmd tries whether the models keep what they are asked.
type webLawsCmd struct {
	Models    []string  `help:"Models to try (default: copying, ba, alpha-beta, host-local): ${models}." placeholder:"NAME,..."`
	Nodes     []int64   `help:"Numbers of pages." default:"20000,100000" placeholder:"N,..."`
	Exponents []float64 `help:"Exponents to ask for, of links to a page and, where the model has it, from a page." default:"2.1,2.4,2.7" placeholder:"G,..."`
	Seeds     int       `help:"Webs of each kind, with seeds 1, 2, ..." default:"5" placeholder:"N"`
}

// lawTrial compares one requested exponent with the measured ones over the seeds.
type lawTrial struct {
	Model  string  `json:"model"`
	Nodes  int64   `json:"nodes"`
	Of     string  `json:"of"` // in or out
	Asked  float64 `json:"asked"`
	Mean   float64 `json:"mean"`
	Worst  float64 `json:"worst"`   // the greatest difference from what was asked
	StdErr float64 `json:"std_err"` // mean of those that the fits tell
	Webs   int     `json:"webs"`    // that a law could be fitted to
	Degree float64 `json:"mean_out_degree"`
	Intra  float64 `json:"intra_host,omitempty"` // mean over the webs
}

// addTrial counts one web in.
func (t *lawTrial) addTrial(got, stdErr float64, m *gen.Measured) {
	if got == 0 {
		return
	}
	t.Webs++
	n := float64(t.Webs)
	t.Mean += (got - t.Mean) / n
	t.StdErr += (stdErr - t.StdErr) / n
	t.Degree += (m.Degree - t.Degree) / n
	if m.Intra != nil {
		t.Intra += (*m.Intra - t.Intra) / n
	}
	if math.Abs(got-t.Asked) > math.Abs(t.Worst) {
		t.Worst = got - t.Asked
	}
}

// Run makes the webs, in memory, and measures them.
func (c *webLawsCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.Seeds < 1 || len(c.Nodes) == 0 || len(c.Exponents) == 0 {
		return command.Usagef("web laws: --seeds, --nodes and --exponents want at least one")
	}
	if len(c.Models) == 0 {
		c.Models = []string{"copying", "ba", "alpha-beta", "host-local"}
	}
	show, end := graphProgress(g)
	defer end()
	var trials []lawTrial
	done, total := int64(0), int64(len(c.Models)*len(c.Nodes)*len(c.Exponents)*c.Seeds)
	for _, model := range c.Models {
		for _, nodes := range c.Nodes {
			for i, asked := range c.Exponents {
				in := lawTrial{Model: model, Nodes: nodes, Of: "in", Asked: asked}
				// Another exponent for the links from a page: neither law may show in the other.
				out := lawTrial{Model: model, Nodes: nodes, Of: "out", Asked: c.Exponents[len(c.Exponents)-1-i]}
				for seed := range c.Seeds {
					spec := gen.Spec{Model: model, Nodes: nodes, In: in.Asked, Seed: uint64(seed + 1)}
					plan, err := spec.Plan()
					if err == nil && plan.Out > 0 { // the theory of the others is that of equal numbers
						spec.Out = out.Asked
						plan, err = spec.Plan()
					}
					if err != nil {
						return command.Usagef("web laws: %w", err)
					}
					m, err := plan.Trial(ctx)
					if err != nil {
						return err
					}
					in.addTrial(m.In, m.InErr, m)
					out.addTrial(m.Out, m.OutErr, m)
					done++
					show("webs", done, total)
				}
				trials = append(trials, in)
				if out.Webs > 0 {
					trials = append(trials, out)
				}
			}
		}
	}
	end()
	if g.JSON {
		return g.PrintJSON(trials)
	}
	return printTrials(g, trials)
}

// printTrials prints a line for each model, size and direction, the exponents side
// by side.
func printTrials(g *command.Globals, trials []lawTrial) error {
	t := tabwriter.NewWriter(g.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "model\tpages\tlinks\tasked: mean of what came out, greatest difference (standard error of one)")
	type row struct {
		model, of string
		nodes     int64
	}
	var order []row
	cells := map[row][]lawTrial{}
	for _, l := range trials {
		r := row{l.Model, l.Of, l.Nodes}
		if cells[r] == nil {
			order = append(order, r)
		}
		cells[r] = append(cells[r], l)
	}
	for _, r := range order {
		slices.SortFunc(cells[r], func(a, b lawTrial) int { return int(math.Copysign(1, a.Asked-b.Asked)) })
		var line []string
		for _, l := range cells[r] {
			line = append(line, fmt.Sprintf("%g: %.3f, %+.3f (%.3f)", l.Asked, l.Mean, l.Worst, l.StdErr))
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", r.model, r.nodes, map[string]string{"in": "to", "out": "from"}[r.of], strings.Join(line, "\t"))
	}
	return t.Flush()
}
