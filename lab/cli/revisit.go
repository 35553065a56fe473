package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/freshness/revisit"
)

type revisitCmd struct {
	Plan     revisitPlanCmd     `cmd:"" help:"Divide a budget of visits among items."`
	Estimate revisitEstimateCmd `cmd:"" help:"Estimate change rates from visits."`
}

type revisitPlanCmd struct {
	Policy string  `help:"One of ${policies}." default:"fixed-optimal"`
	Budget float64 `help:"Visits per time, in the unit of the change rates; with a column cost, cost per time." required:""`
	Ages   bool    `help:"Also print each item's freshness and age."`
	Items  string  `arg:"" help:"CSV with header id,importance,change_rate[,host][,host_cap][,signals][,cost]; - is standard input."`
}

// planItem is one line of a plan.
type planItem struct {
	ID     string   `json:"id"`
	Rate   float64  `json:"rate"`
	Signal float64  `json:"signal_probability"`
	Fresh  *float64 `json:"freshness,omitempty"`
	Age    *float64 `json:"age,omitempty"`
}

// planAnswer is the JSON of revisit plan. An age is null if something that
// changes is never visited.
type planAnswer struct {
	Items     []planItem `json:"items"`
	Freshness float64    `json:"freshness"`
	Age       *float64   `json:"age"`
	Harmonic  *float64   `json:"harmonic_loss"`
	Used      float64    `json:"budget_used"`
}

// Run plans.
func (c *revisitPlanCmd) Run(g *command.Globals) error {
	policy, ok := revisit.Policies()[c.Policy]
	if !ok {
		return command.Usagef("revisit plan: no policy %q; there are %s", c.Policy, strings.Join(revisit.Names(), ", "))
	}
	t, err := readTable(g, c.Items, "id", "importance", "change_rate")
	if err != nil {
		return err
	}
	var items []revisit.Item
	var ids []string
	for t.nextRow() {
		it := revisit.Item{Importance: t.numberColumn("importance"), Rate: t.numberColumn("change_rate"), Host: t.textColumn("host"), HostCap: t.numberColumn("host_cap"), Signals: t.boolColumn("signals"), Cost: t.numberColumn("cost")}
		ids, items = append(ids, t.textColumn("id")), append(items, it)
	}
	if t.err != nil {
		return command.UsageError{Err: t.err}
	}
	plan, err := revisit.New(policy, items, c.Budget)
	if err != nil {
		return command.Usagef("%s: %w", c.Items, err)
	}
	out := planAnswer{Freshness: plan.Freshness, Age: nilIfInfinite(plan.Age), Harmonic: nilIfInfinite(plan.Harmonic), Used: plan.Used, Items: []planItem{}}
	for i, s := range plan.Shares {
		p := planItem{ID: ids[i], Rate: s.Rate, Signal: s.Signal}
		if c.Ages {
			p.Fresh, p.Age = nilIfInfinite(s.Freshness), nilIfInfinite(s.Age)
		}
		out.Items = append(out.Items, p)
	}
	if g.JSON {
		return g.PrintJSON(out)
	}
	for _, p := range out.Items {
		fmt.Fprintf(g.Stdout, "%-24s rate %-12.6g", p.ID, p.Rate)
		if p.Signal > 0 {
			fmt.Fprintf(g.Stdout, " on a signal with probability %.4f", p.Signal)
		}
		if c.Ages {
			fmt.Fprintf(g.Stdout, " freshness %s age %s", numberOrUnbounded(p.Fresh), numberOrUnbounded(p.Age))
		}
		fmt.Fprintln(g.Stdout)
	}
	fmt.Fprintf(g.Stdout, "freshness %.6f, age %s, harmonic loss %s, budget used %.6g\n", out.Freshness, numberOrUnbounded(out.Age), numberOrUnbounded(out.Harmonic), out.Used)
	return nil
}

// nilIfInfinite returns nil for what JSON cannot say.
func nilIfInfinite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

func numberOrUnbounded(v *float64) string {
	if v == nil {
		return "unbounded"
	}
	return strconv.FormatFloat(*v, 'g', 6, 64)
}

type revisitEstimateCmd struct {
	Visits string `arg:"" help:"CSV with header id,time,changed[,last_modified], times in days; - is standard input."`
}

// estimateItem is one line of an estimate: rates a day.
type estimateItem struct {
	ID      string   `json:"id"`
	Visits  int      `json:"visits"`
	Changes int      `json:"changes"`
	Naive   float64  `json:"naive"`
	Regular float64  `json:"regular"`
	MLE     *float64 `json:"mle"` // null: every visit saw a change
	Low     float64  `json:"low"`
	High    *float64 `json:"high"`
	Dated   *float64 `json:"dated,omitempty"` // from last_modified
}

// Help explains what counts as a visit.
func (revisitEstimateCmd) Help() string {
	return "The first line of an item is the visit from which time is counted: whether it saw a change is not known. visits counts those after it. low and high hold the rate with 95 % confidence."
}

// log is what is read of one item.
type visitLog struct {
	visits  []change.Visit
	last    float64
	started bool
	time    float64 // sum of the intervals
	changes int
	dated   float64 // sum of the smaller of time since modification and interval
	dates   int
}

// Run estimates.
func (c *revisitEstimateCmd) Run(g *command.Globals) error {
	t, err := readTable(g, c.Visits, "id", "time", "changed")
	if err != nil {
		return err
	}
	logs := map[string]*visitLog{}
	var ids []string
	for t.nextRow() {
		id := t.textColumn("id")
		l := logs[id]
		if l == nil {
			l = &visitLog{}
			logs[id] = l
			ids = append(ids, id)
		}
		at, changed := t.numberColumn("time"), t.boolColumn("changed")
		if l.started && at <= l.last {
			t.failRow("time %g of %q is not after the visit before, at %g", at, id, l.last)
		}
		l.addVisit(at, changed, t.textColumn("last_modified"))
	}
	if t.err != nil {
		return command.UsageError{Err: t.err}
	}
	out := struct {
		Items []estimateItem `json:"items"`
	}{Items: []estimateItem{}}
	for _, id := range ids {
		it, err := logs[id].estimateRate(id)
		if err != nil {
			return command.Usagef("%s: %q: %w", c.Visits, id, err)
		}
		out.Items = append(out.Items, it)
	}
	if g.JSON {
		return g.PrintJSON(out)
	}
	fmt.Fprintf(g.Stdout, "%-24s %7s %8s %12s %12s %12s %12s %12s\n", "id", "visits", "changes", "naive", "regular", "mle", "low", "high")
	for _, it := range out.Items {
		fmt.Fprintf(g.Stdout, "%-24s %7d %8d %12.6g %12.6g %12s %12.6g %12s\n", it.ID, it.Visits, it.Changes, it.Naive, it.Regular, numberOrUnbounded(it.MLE), it.Low, numberOrUnbounded(it.High))
	}
	return nil
}

// addVisit takes one visit. A last_modified in days says when the last change was.
func (l *visitLog) addVisit(at float64, changed bool, modified string) {
	defer func() { l.last, l.started = at, true }()
	if !l.started {
		return
	}
	tau := at - l.last
	l.visits = append(l.visits, change.Visit{Interval: tau, Changed: changed})
	l.time += tau
	if changed {
		l.changes++
	}
	since := tau
	if m, ok := parseDay(modified); ok {
		l.dates++
		since = min(max(0, at-m), tau)
	}
	l.dated += since
}

// parseDay reads a last_modified: days like the times, or a date.
func parseDay(s string) (float64, bool) {
	if v, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v, true
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return float64(t.Unix()) / 86400, true
	}
	return 0, false
}

func (l *visitLog) estimateRate(id string) (estimateItem, error) {
	if len(l.visits) == 0 {
		return estimateItem{}, errors.New("one visit tells nothing: at least two are needed")
	}
	n := len(l.visits)
	mean := l.time / float64(n)
	mle, err := change.MLE(l.visits)
	if err != nil {
		return estimateItem{}, err
	}
	low, high, err := change.Interval(l.visits)
	if err != nil {
		return estimateItem{}, err
	}
	it := estimateItem{
		ID: id, Visits: n, Changes: l.changes, Naive: change.Naive(n, l.changes, mean), Regular: change.Regular(float64(n), float64(l.changes), mean),
		MLE: nilIfInfinite(mle), Low: low, High: nilIfInfinite(high),
	}
	if l.dates > 0 {
		it.Dated = nilIfInfinite(change.Dated(n, l.changes, l.dated))
	}
	return it, nil
}

// sheet reads a CSV file with a header row by the names of its columns.
type sheet struct {
	name string
	r    *csv.Reader
	col  map[string]int
	row  []string
	err  error // the first thing wrong, with its line
}

// readTable opens a CSV file and checks that the needed columns are there.
func readTable(g *command.Globals, name string, need ...string) (*sheet, error) {
	in := g.Stdin
	if name != "-" {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, command.UsageError{Err: err}
		}
		in = strings.NewReader(string(b))
	}
	t := &sheet{name: name, r: csv.NewReader(in), col: map[string]int{}}
	t.r.TrimLeadingSpace, t.r.Comment, t.r.ReuseRecord = true, '#', true
	head, err := t.r.Read()
	if err != nil {
		return nil, command.Usagef("%s: the header is missing: want %s", name, strings.Join(need, ","))
	}
	for i, h := range head {
		t.col[strings.ToLower(strings.TrimSpace(strings.TrimPrefix(h, "\uFEFF")))] = i
	}
	for _, n := range need {
		if _, ok := t.col[n]; !ok {
			return nil, command.Usagef("%s:1: no column %q; the header is %s", name, n, strings.Join(head, ","))
		}
	}
	return t, nil
}

func (t *sheet) nextRow() bool {
	if t.err != nil {
		return false
	}
	row, err := t.r.Read()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			t.err = fmt.Errorf("%s: %w", t.name, err)
		}
		return false
	}
	t.row = row
	return true
}

// failRow notes what is wrong in the present row, if nothing was wrong before.
func (t *sheet) failRow(format string, args ...any) {
	if t.err == nil {
		line, _ := t.r.FieldPos(0)
		t.err = fmt.Errorf("%s:%d: %w", t.name, line, fmt.Errorf(format, args...))
	}
}

// textColumn returns a field, "" where the column is missing.
func (t *sheet) textColumn(column string) string {
	if i, ok := t.col[column]; ok {
		return strings.TrimSpace(t.row[i])
	}
	return ""
}

// numberColumn reads a finite number; an empty field is 0.
func (t *sheet) numberColumn(column string) float64 {
	s := t.textColumn(column)
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		t.failRow("%s: %q is no number", column, s)
	}
	return v
}

// boolColumn reads a truth value; an empty field is no.
func (t *sheet) boolColumn(column string) bool {
	s := strings.ToLower(t.textColumn(column))
	switch {
	case slices.Contains([]string{"", "0", "false", "no", "n", "f"}, s):
		return false
	case slices.Contains([]string{"1", "true", "yes", "y", "t"}, s):
		return true
	}
	t.failRow("%s: %q is neither true nor false", column, s)
	return false
}
