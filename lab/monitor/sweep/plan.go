// Package sweep runs plans of simulations: every variant on every field of a
// factorial design, in replications, on all cores, and reports on them.
//
// Results do not depend on the number of cores or on the order of the runs,
// since every run has random streams of its own name. Each run's result is a
// file that appears whole or not at all, so a sweep that was killed goes on
// where it was, and several machines can share the work by cells.
package sweep

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/freshet/freshet/internal/spell"
	"github.com/freshet/freshet/lab/field"
	"github.com/freshet/freshet/lab/monitor"
)

// ErrInput is in every error about a plan or a result file that makes no sense.
var ErrInput = errors.New("sweep")

// Plan is a factorial design: each combination of factors is a field, and each
// variant watches each field in each replication.
type Plan struct {
	Name string
	Seed uint64

	// Files are field files to use instead of factors.
	Files []string

	// Factors, the slowest first.
	Pages         []int
	Time          []float64 // units
	Changes       []float64 // mean events of a resource within IntensityTime
	Requests      []float64
	ChangeLaw     []string
	ChangeSpread  []string // "none": equal rates
	RequestLaw    []string
	RequestSpread []string

	IntensityTime float64 // 0: the field's time
	Variants      []string
	Baseline      string // variant that others are compared with; the first one
	Replications  int
	Warmup        float64            // units
	Kinds         map[string]float64 // shares of kinds of events by name; empty: the classic ones
	Sizes         struct{ Least, Most uint32 }

	variants []monitor.Variant
	kinds    field.KindShares
}

// maxRuns bounds a plan.
const maxRuns = 1_000_000

// list is one value or a list of values in YAML.
type list[T any] struct{ to *[]T }

// UnmarshalYAML reads either form.
func (l list[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode(l.to)
	}
	var v T
	if err := n.Decode(&v); err != nil {
		return err
	}
	*l.to = []T{v}
	return nil
}

// ParsePlan reads a plan in YAML. Its name is for errors, which tell the line.
func ParsePlan(name string, text []byte) (*Plan, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInput, name, err)
	}
	p := &Plan{Seed: 1, Replications: 1}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%w: %s: not a list of keys and values", ErrInput, name)
	}
	if err := p.readKeys(doc.Content[0]); err != nil {
		return nil, fmt.Errorf("%w: %s:%w", ErrInput, name, err)
	}
	if err := p.checkPlan(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInput, name, err)
	}
	return p, nil
}

// readKeys takes the keys.
func (p *Plan) readKeys(n *yaml.Node) error {
	keys := map[string]any{
		"name": &p.Name, "seed": &p.Seed, "files": list[string]{&p.Files}, "pages": list[int]{&p.Pages}, "time": list[float64]{&p.Time},
		"changes": list[float64]{&p.Changes}, "requests": list[float64]{&p.Requests}, "intensity_time": &p.IntensityTime,
		"change_law": list[string]{&p.ChangeLaw}, "change_spread": list[string]{&p.ChangeSpread},
		"request_law": list[string]{&p.RequestLaw}, "request_spread": list[string]{&p.RequestSpread},
		"variants": list[string]{&p.Variants}, "baseline": &p.Baseline, "replications": &p.Replications, "warmup": &p.Warmup,
		"kinds": &p.Kinds, "sizes": &p.Sizes,
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		to, ok := keys[k.Value]
		switch {
		case !ok:
			return fmt.Errorf("%d: unknown factor or setting %q%s", k.Line, k.Value, spell.Suggest(k.Value, slices.Collect(maps.Keys(keys))))
		case seen[k.Value]:
			return fmt.Errorf("%d: %q stands twice", k.Line, k.Value)
		}
		seen[k.Value] = true
		err := error(nil)
		if u, ok := to.(yaml.Unmarshaler); ok {
			err = u.UnmarshalYAML(v)
		} else {
			err = v.Decode(to)
		}
		if err != nil {
			return fmt.Errorf("%d: %s: %w", v.Line, k.Value, err)
		}
	}
	return nil
}

// checkPlan completes the plan and says what makes no sense in it.
func (p *Plan) checkPlan() error {
	if p.Replications < 1 {
		return errors.New("replications: at least one is needed")
	}
	if err := p.checkVariants(); err != nil {
		return err
	}
	if !(p.Warmup >= 0) {
		return fmt.Errorf("warmup %g is no number of units", p.Warmup)
	}
	if len(p.Files) > 0 {
		return p.checkFiles()
	}
	return p.checkFactors()
}

// checkFiles rejects a plan with both factors and files.
func (p *Plan) checkFiles() error {
	if len(p.Pages)+len(p.Time)+len(p.Changes)+len(p.Requests)+len(p.ChangeLaw)+len(p.ChangeSpread)+len(p.RequestLaw)+len(p.RequestSpread)+len(p.Kinds) > 0 {
		return errors.New("files stand beside factors: a plan has one or the other")
	}
	if n := float64(len(p.Files)) * float64(len(p.Variants)) * float64(p.Replications); n > maxRuns {
		return fmt.Errorf("%.0f runs; at most %d are allowed", n, maxRuns)
	}
	return nil
}

// checkFactors completes them and says what makes no sense in them.
func (p *Plan) checkFactors() error {
	for _, l := range []*[]string{&p.ChangeLaw, &p.RequestLaw} {
		if len(*l) == 0 {
			*l = []string{"exponential"}
		}
	}
	for _, l := range []*[]string{&p.ChangeSpread, &p.RequestSpread} {
		if len(*l) == 0 {
			*l = []string{"none"}
		}
	}
	if len(p.Requests) == 0 {
		p.Requests = []float64{0}
	}
	n := float64(len(p.Variants)) * float64(p.Replications)
	for name, k := range map[string]int{"pages": len(p.Pages), "time": len(p.Time), "changes": len(p.Changes)} {
		if k < 1 {
			return fmt.Errorf("%s: at least one is needed", name)
		}
		n *= float64(k)
	}
	for _, k := range []int{len(p.Requests), len(p.ChangeLaw), len(p.RequestLaw), len(p.ChangeSpread), len(p.RequestSpread)} {
		n *= float64(k)
	}
	if n > maxRuns {
		return fmt.Errorf("%.0f runs; at most %d are allowed", n, maxRuns)
	}
	if !(p.IntensityTime >= 0) || math.IsInf(p.IntensityTime, 0) {
		return fmt.Errorf("intensity_time %g is no number of units", p.IntensityTime)
	}
	if err := p.checkKinds(); err != nil {
		return err
	}
	for _, c := range p.Fields() {
		s, err := p.fieldSpec(c, 0)
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			return fmt.Errorf("field %d: %w", c.Field, err)
		}
		if p.Warmup >= c.Time {
			return fmt.Errorf("field %d: warmup %g is not within its time %g", c.Field, p.Warmup, c.Time)
		}
	}
	return nil
}

func (p *Plan) checkVariants() error {
	if len(p.Variants) == 0 {
		return errors.New("variants: at least one is needed")
	}
	seen := map[string]bool{}
	for _, text := range p.Variants {
		v, err := monitor.Parse(text)
		if err != nil {
			return err
		}
		if seen[text] {
			return fmt.Errorf("variant %q stands twice", text)
		}
		seen[text] = true
		p.variants = append(p.variants, v)
	}
	if p.Baseline == "" {
		p.Baseline = p.Variants[0]
	}
	if !seen[p.Baseline] {
		return fmt.Errorf("baseline %q is none of the variants", p.Baseline)
	}
	return nil
}

func (p *Plan) checkKinds() error {
	var names []string
	for k := field.Forbidden; k <= field.Same; k++ {
		names = append(names, k.String())
		p.kinds[k-1] = p.Kinds[k.String()]
	}
	for name := range p.Kinds {
		if !slices.Contains(names, name) {
			return fmt.Errorf("kinds: no kind %q%s", name, spell.Suggest(name, names))
		}
	}
	return nil
}

// Factors are the values of a field. Those of a file are known when it was
// read: the plan has its name only.
type Factors struct {
	Field         int     `json:"field"` // from 1
	File          string  `json:"file,omitempty"`
	Pages         int     `json:"pages"`
	Time          float64 `json:"time"`
	Changes       float64 `json:"changes"` // within the time
	Requests      float64 `json:"requests"`
	ChangeLaw     string  `json:"change_law"`
	ChangeSpread  string  `json:"change_spread"`
	RequestLaw    string  `json:"request_law"`
	RequestSpread string  `json:"request_spread"`
}

// Fields lists the combinations of factors in order.
func (p *Plan) Fields() []Factors {
	var out []Factors
	for i, name := range p.Files {
		out = append(out, Factors{Field: i + 1, File: name})
	}
	for _, n := range p.Pages {
		for _, t := range p.Time {
			scale := 1.
			if p.IntensityTime > 0 {
				scale = t / p.IntensityTime
			}
			for _, c := range p.Changes {
				for _, q := range p.Requests {
					out = p.appendLawFactors(out, Factors{Pages: n, Time: t, Changes: c * scale, Requests: q * scale})
				}
			}
		}
	}
	return out
}

func (p *Plan) appendLawFactors(out []Factors, f Factors) []Factors {
	for _, f.ChangeLaw = range p.ChangeLaw {
		for _, f.ChangeSpread = range p.ChangeSpread {
			for _, f.RequestLaw = range p.RequestLaw {
				for _, f.RequestSpread = range p.RequestSpread {
					f.Field = len(out) + 1
					out = append(out, f)
				}
			}
		}
	}
	return out
}

// fieldSpec returns how a field is made.
func (p *Plan) fieldSpec(c Factors, replication int) (field.Spec, error) {
	s := field.Spec{
		PageCount: c.Pages, Length: c.Time, Changed: c.Changes, Requested: c.Requests, Kinds: p.kinds,
		Least: p.Sizes.Least, Most: p.Sizes.Most, Seed: p.Seed, Number: c.Field, Replication: replication,
	}
	for _, l := range []struct {
		text string
		to   *field.Law
	}{{c.ChangeLaw, &s.ChangeLaw}, {c.RequestLaw, &s.RequestLaw}, {c.ChangeSpread, &s.ChangeSpread}, {c.RequestSpread, &s.RequestSpread}} {
		if l.text == "none" {
			continue
		}
		law, err := field.ParseLaw(l.text)
		if err != nil {
			return s, err
		}
		*l.to = law
	}
	return s, nil
}

// Job is one run of a plan.
type Job struct {
	Number      int // from 0
	Factors     Factors
	Variant     string
	Replication int

	variant monitor.Variant
}

// Jobs lists the runs: field by field, replication by replication, variant by
// variant.
func (p *Plan) Jobs() []Job {
	var out []Job
	for _, c := range p.Fields() {
		for r := range p.Replications {
			for _, v := range p.variants {
				out = append(out, Job{len(out), c, v.String(), r, v})
			}
		}
	}
	return out
}
