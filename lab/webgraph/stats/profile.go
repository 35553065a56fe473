package stats

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Profile holds figures known of real webs with the range in which a graph may
// pass for one of them. It is a yardstick and not a judge: crawls differ from
// each other more than the ranges of most of these figures are wide, since the
// order of a crawl shapes its bow-tie.
type Profile struct {
	Name    string  `yaml:"name"`
	Source  string  `yaml:"source"`
	Figures []Known `yaml:"figures"`
}

// Known is one figure of a profile.
type Known struct {
	Figure string  `yaml:"figure"` // one of Figures()
	Value  float64 `yaml:"value"`
	Low    float64 `yaml:"low"`
	High   float64 `yaml:"high"`
	Source string  `yaml:"source"`
}

// Compared is a known figure and the measured one.
type Compared struct {
	Figure string   `json:"figure"`
	Value  *float64 `json:"value"` // nil: not known of this graph
	Known  float64  `json:"known"`
	Low    float64  `json:"low"`
	High   float64  `json:"high"`
	Within bool     `json:"within"`
	Source string   `json:"source,omitempty"` // if not that of the whole profile
}

//go:embed profiles/*.yaml
var profiles embed.FS

// DefaultProfile is the profile of the page graph of the Common Crawl of 2012
// (Meusel et al. 2014) and, for what was not measured there, of smaller crawls.
func DefaultProfile() (*Profile, error) {
	b, err := profiles.ReadFile("profiles/web.yaml")
	if err != nil {
		return nil, err
	}
	return ReadProfile(bytes.NewReader(b))
}

// figures gets each figure that a profile may name.
var figures = map[string]func(a *Analysis) *float64{
	"mean_out_degree": func(a *Analysis) *float64 { return &a.MeanOut },
	"in_exponent":     func(a *Analysis) *float64 { return a.InExponent },
	"out_exponent":    func(a *Analysis) *float64 { return a.OutExponent },
	"clustering":      func(a *Analysis) *float64 { return a.Clustering },
	"transitivity": func(a *Analysis) *float64 {
		return optionalField(a.Closed, func(c *Clustering) float64 { return c.Transitivity })
	},
	"largest_scc": func(a *Analysis) *float64 { return a.LargestSCC },
	"largest_wcc": func(a *Analysis) *float64 { return a.LargestWCC },
	"bow_tie.scc": func(a *Analysis) *float64 { return optionalField(a.BowTie, func(t *TieShare) float64 { return t.SCC }) },
	"bow_tie.in":  func(a *Analysis) *float64 { return optionalField(a.BowTie, func(t *TieShare) float64 { return t.In }) },
	"bow_tie.out": func(a *Analysis) *float64 { return optionalField(a.BowTie, func(t *TieShare) float64 { return t.Out }) },
	"bow_tie.other": func(a *Analysis) *float64 {
		return optionalField(a.BowTie, func(t *TieShare) float64 { return t.Other })
	},
	"reciprocity": func(a *Analysis) *float64 { return &a.Reciprocity },
	"intra_host":  func(a *Analysis) *float64 { return a.IntraHost },
	"reachable": func(a *Analysis) *float64 {
		return optionalField(a.Distances, func(d *Distances) float64 { return d.Reachable })
	},
	"mean_distance": func(a *Analysis) *float64 {
		return optionalField(a.Distances, func(d *Distances) float64 { return d.Mean })
	},
	"effective_diameter": func(a *Analysis) *float64 {
		return optionalField(a.Distances, func(d *Distances) float64 { return d.Effective })
	},
	"host_size_exponent": func(a *Analysis) *float64 {
		return optionalField(a.HostLaw, func(l *LawFigures) float64 { return l.Exponent })
	},
}

func optionalField[T any](v *T, get func(*T) float64) *float64 {
	if v == nil {
		return nil
	}
	f := get(v)
	return &f
}

// Figures returns the names of the figures that a profile may hold.
func Figures() []string {
	var names []string
	for n := range figures {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// ReadProfile reads a profile in YAML and checks it.
func ReadProfile(r io.Reader) (*Profile, error) {
	d := yaml.NewDecoder(r)
	d.KnownFields(true)
	var p Profile
	if err := d.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if len(p.Figures) == 0 {
		return nil, errors.New("profile: it holds no figures")
	}
	for i, f := range p.Figures {
		if figures[f.Figure] == nil {
			return nil, fmt.Errorf("profile: entry %d: no figure %q; there are %s", i+1, f.Figure, strings.Join(Figures(), ", "))
		}
		if !(f.Low <= f.Value && f.Value <= f.High) || math.IsInf(f.High-f.Low, 0) {
			return nil, fmt.Errorf("profile: entry %d: %s: want low <= value <= high, not %g, %g, %g", i+1, f.Figure, f.Low, f.Value, f.High)
		}
	}
	return &p, nil
}

// Compare sets the figures of an analysis beside those of the profile and keeps
// the result in the analysis.
func (p *Profile) Compare(a *Analysis) []Compared {
	a.Compare = nil
	for _, k := range p.Figures {
		c := Compared{Figure: k.Figure, Known: k.Value, Low: k.Low, High: k.High, Source: k.Source}
		if v := figures[k.Figure](a); v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
			c.Value = v
			c.Within = *v >= k.Low && *v <= k.High
		}
		a.Compare = append(a.Compare, c)
	}
	return a.Compare
}
