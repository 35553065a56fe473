package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/share"
)

type benchStaleCmd struct {
	Parts  int     `help:"Parts." default:"2000"`
	Days   int     `help:"Simulated days; the first third is not counted." default:"30"`
	Visits float64 `help:"Visits of all parts together, a part and day." default:"2"`
	Seed   uint64  `help:"Seed of the changes." default:"1"`
}

type staleRow struct {
	Policy    share.Policy `json:"policy"`
	Freshness float64      `json:"freshness"`
	Median    float64      `json:"median_delay_hours"`
	P95       float64      `json:"p95_delay_hours"`
	Mean      float64      `json:"mean_delay_hours"`
	Found     int          `json:"changes_found"`
	Decision  float64      `json:"decision_us"`
}

// Run lets the robot's own schedule choose among parts whose Poisson rates of
// change differ 1,000-fold, each policy with the same changes and visits.
func (c *benchStaleCmd) Run(_ context.Context, g *command.Globals) error {
	if c.Parts < 1 || c.Days < 3 || c.Visits <= 0 {
		return command.Usagef("bench share stale: --parts >= 1, --days >= 3, --visits > 0")
	}
	var rows []staleRow
	for _, p := range share.Policies() {
		rows = append(rows, c.simulateStale(p))
	}
	if g.JSON {
		return g.PrintJSON(map[string]any{"runs": rows})
	}
	w := tabwriter.NewWriter(g.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tfreshness\tmedian delay h\tp95 h\tmean h\tfound\tus a decision\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.4f\t%.2f\t%.1f\t%.2f\t%d\t%.0f\t\n", r.Policy, r.Freshness, r.Median, r.P95, r.Mean, r.Found, r.Decision)
	}
	return w.Flush()
}

func (c *benchStaleCmd) simulateStale(p share.Policy) staleRow {
	sched := share.NewSchedule(p, c.Parts)
	rate := make([]float64, c.Parts)  // changes per second
	next := make([]float64, c.Parts)  // next change
	since := make([]float64, c.Parts) // first unseen change, 0 none
	streams := make([]interface{ ExpFloat64() float64 }, c.Parts)
	for i := range rate {
		r := rng.New(c.Seed, "stale", i)
		streams[i] = r
		rate[i] = math.Pow(1000, float64(i)/float64(c.Parts)) / (100 * 86400) // one in 100 days to ten a day
		next[i] = r.ExpFloat64() / rate[i]
	}
	end := float64(c.Days) * 86400
	begin := end / 3
	step := 86400 / (c.Visits * float64(c.Parts))
	var delays []float64
	stale := 0.0
	var spent time.Duration
	visits := 0
	catchUp := func(i int, now float64) {
		for next[i] <= now {
			if since[i] == 0 {
				since[i] = next[i]
			}
			next[i] += streams[i].ExpFloat64() / rate[i]
		}
	}
	for now := step; now < end; now += step {
		clock := time.Now()
		i := sched.Next(int64(now) + 1)
		spent += time.Since(clock)
		visits++
		catchUp(i, now)
		changed := since[i] > 0
		if changed {
			stale += max(0, now-max(since[i], begin))
			if now > begin {
				delays = append(delays, (now-since[i])/3600)
			}
			since[i] = 0
		}
		sched.Visited(i, int64(now)+1, changed)
	}
	for i := range since {
		catchUp(i, end)
		if since[i] > 0 {
			stale += end - max(since[i], begin)
		}
	}
	slices.Sort(delays)
	sum := 0.0
	for _, d := range delays {
		sum += d
	}
	at := func(q float64) float64 {
		if len(delays) == 0 {
			return 0
		}
		return delays[int(q*float64(len(delays)-1))]
	}
	return staleRow{
		Policy: p, Freshness: 1 - stale/((end-begin)*float64(c.Parts)), Median: at(0.5), P95: at(0.95), Mean: sum / float64(max(1, len(delays))),
		Found: len(delays), Decision: float64(spent.Microseconds()) / float64(max(1, visits)),
	}
}
