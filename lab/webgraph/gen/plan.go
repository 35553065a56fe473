// Package gen makes webs: link graphs drawn from models whose laws are known, so
// that a robot or a strategy can be tried on a web of the exponents, the density
// and the locality that one asks for.
//
// The user gives targets, Spec; Plan picks the parameters of the model that lead
// to them, or says which targets are possible; Generate writes the graph. The
// same seed gives the same graph on any number of cores.
package gen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/freshet/freshet/lab/webgraph"
)

// Sink takes the links of page after page; it must not keep the slice.
type Sink interface {
	Append(links []uint32) error
}

// EdgeSink takes links in any order.
type EdgeSink interface {
	Add(u, v uint32) error
}

// Spec is what a web is asked to be.
type Spec struct {
	Model string
	Nodes int64
	Links int64 // 0: eight a page
	// In and Out are the exponents of the numbers of links to and from a page, 0
	// where nothing is asked.
	In, Out float64
	Intra   float64 // share of links on the site, 0 where nothing is asked
	Sites   int64   // number of sites, 0: one for 64 pages
	BowTie  BowTie  // all 0: DefaultBowTie, of models that have a choice
	Seed    uint64
}

// Plan is a model with its parameters.
type Plan struct {
	Model string `json:"model"`
	Nodes int64  `json:"nodes"`
	Links int64  `json:"links"` // in the mean, where the model draws it
	Seed  uint64 `json:"seed"`
	// Params are the parameters that were picked, by their names in the model.
	Params map[string]float64 `json:"parameters"`
	// In, Out and Intra are what comes out in the limit of large webs; 0 where the
	// model has no such law.
	In    float64 `json:"in_exponent,omitempty"`
	Out   float64 `json:"out_exponent,omitempty"`
	Intra float64 `json:"intra_host,omitempty"`
	// BowTie is what is aimed at, of models that have a choice.
	BowTie *BowTie `json:"bow_tie,omitempty"`

	law   *Law // of the links of a page, nil: as equal as can be
	sites Table
	web   computed
}

// Defaults of what is not asked: Broder et al. 2000 for exponents, and for the
// share of links on the site what most crawls show.
const (
	DefaultIn     = 2.1
	DefaultOut    = 2.72
	DefaultIntra  = .8
	DefaultDegree = 8
	maxExponent   = 10
)

// model is what is known of a model before it is used.
type model struct {
	in, out, intra, tie bool // whether the user may ask for it
	plan                func(*Plan, Spec) error
}

// modelsByName lists the models. It is a function because planning refers to it.
func modelsByName() map[string]model {
	return map[string]model{
		"er":         {plan: planER},
		"ba":         {in: true, out: true, plan: planBA},
		"copying":    {in: true, out: true, plan: planCopying},
		"alpha-beta": {in: true, out: true, plan: planAlphaBeta},
		"rmat":       {plan: planRMAT},
		"host-local": {in: true, out: true, intra: true, tie: true, plan: planHostLocal},
		"matched":    {in: true, out: true, intra: true, plan: planMatched},
	}
}

// Models returns the names of all models.
func Models() []string {
	var names []string
	for name := range modelsByName() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// rangeError says which exponents a model can have.
func rangeError(what string, asked float64, model string) error {
	return fmt.Errorf("%s %g: the model %s has exponents greater than 2 and up to %d", what, asked, model, maxExponent)
}

// Check returns the number of links that are meant, or what cannot be had and
// what can, as far as that is known before anything is drawn.
func (s Spec) Check() (links int64, err error) {
	m, ok := modelsByName()[s.Model]
	if !ok {
		return 0, fmt.Errorf("no model %q; there are %s", s.Model, strings.Join(Models(), ", "))
	}
	for _, asked := range []struct {
		what  string
		value float64
		can   bool
	}{{"in-exponent", s.In, m.in}, {"out-exponent", s.Out, m.out}, {"share of links on the site", s.Intra, m.intra}} {
		switch {
		case asked.value == 0:
		case !asked.can:
			return 0, fmt.Errorf("%s %g: the model %s has none to choose; host-local has", asked.what, asked.value, s.Model)
		case asked.what == "share of links on the site":
		case !(asked.value > 2) || asked.value > maxExponent:
			return 0, rangeError(asked.what, asked.value, s.Model)
		}
	}
	if s.BowTie != (BowTie{}) && !m.tie {
		return 0, fmt.Errorf("bow-tie: the model %s has none to choose; host-local has", s.Model)
	}
	if s.Nodes < 2 || s.Nodes > webgraph.MaxNodes {
		return 0, fmt.Errorf("%d pages: want 2 to %d", s.Nodes, uint64(webgraph.MaxNodes))
	}
	if s.Links < 0 {
		return 0, fmt.Errorf("%d links: want 0 or more", s.Links)
	}
	if s.Links == 0 {
		s.Links = DefaultDegree * s.Nodes
		if s.Nodes <= DefaultDegree {
			s.Links = s.Nodes * (s.Nodes - 1) / 2
		}
	}
	if most := float64(s.Nodes) * float64(s.Nodes-1); float64(s.Links) > most {
		return 0, fmt.Errorf("%d links: %d pages have %.0f at most", s.Links, s.Nodes, most)
	}
	return s.Links, nil
}

// Plan picks the parameters. An error says what cannot be had and what can. For
// webs of 10^9 pages it takes minutes.
func (s Spec) Plan() (p *Plan, err error) {
	if s.Links, err = s.Check(); err != nil {
		return nil, err
	}
	p = &Plan{Model: s.Model, Nodes: s.Nodes, Links: s.Links, Seed: s.Seed, Params: map[string]float64{}}
	return p, modelsByName()[s.Model].plan(p, s)
}

func planER(p *Plan, _ Spec) error {
	p.Params["p"] = float64(p.Links) / (float64(p.Nodes) * float64(p.Nodes-1))
	return nil
}

func planRMAT(p *Plan, _ Spec) error {
	for i, name := range []string{"a", "b", "c", "d"} {
		p.Params[name] = rmatChoices[i]
	}
	return nil
}

// copyParameter returns the parameter alpha of models of exponent 1 + 1/(1-alpha), that
// is (2-alpha)/(1-alpha).
func copyParameter(exponent float64) float64 { return (exponent - 2) / (exponent - 1) }

func planCopying(p *Plan, s Spec) error {
	p.In = orDefault(s.In, DefaultIn)
	p.Params["a"] = copyParameter(p.In)
	return p.drawDegreeLaw(s.Out)
}

func planBA(p *Plan, s Spec) error {
	p.In = orDefault(s.In, 3)
	p.Params["A"] = (p.In - 2) * float64(p.Links) / float64(p.Nodes)
	return p.drawDegreeLaw(s.Out)
}

// drawDegreeLaw lets the numbers of links of pages have a power law if an exponent
// is asked for; else they are as equal as can be.
func (p *Plan) drawDegreeLaw(exponent float64) (err error) {
	if exponent == 0 {
		return nil
	}
	p.Out = exponent
	mean := float64(p.Links) / float64(p.Nodes-1)
	if p.law, err = NewLaw(exponent, mean, 1, greatestOut(uint64(p.Nodes))); err != nil {
		return fmt.Errorf("links of a page: %w", err)
	}
	p.Params["degree_scale"] = p.law.Scale
	return nil
}

func planAlphaBeta(p *Plan, s Spec) error {
	p.In, p.Out = orDefault(s.In, DefaultIn), orDefault(s.Out, DefaultOut)
	p.Params["alpha"], p.Params["beta"] = copyParameter(p.In), copyParameter(p.Out)
	return nil
}

func planHostLocal(p *Plan, s Spec) error {
	o := HostLocalOptions{
		Nodes: uint64(p.Nodes), Degree: float64(p.Links) / float64(p.Nodes), In: s.In, Out: s.Out, Intra: s.Intra, BowTie: s.BowTie, Seed: p.Seed,
	}.withHostDefaults()
	if err := o.BowTie.checkShares(); err != nil {
		return err
	}
	if err := p.planSites(s.Sites, o.BowTie.classShares(o.BowTie.leafShare())); err != nil {
		return err
	}
	web, err := NewHostLocal(o, p.sites)
	if err != nil {
		return err
	}
	p.In, p.Out, p.Intra, p.BowTie = o.In, o.Out, web.intra, &o.BowTie
	p.web, p.Params = web, web.Params()
	p.Params["sites"] = float64(p.sites.Hosts())
	return nil
}

func planMatched(p *Plan, s Spec) error {
	if err := p.planSites(s.Sites, [siteClasses]float64{inCore: 1}); err != nil {
		return err
	}
	o := MatchedOptions{Nodes: uint64(p.Nodes), Degree: float64(p.Links) / float64(p.Nodes), In: s.In, Out: s.Out, Intra: s.Intra, Seed: p.Seed}
	web, err := NewMatched(o, p.sites)
	if err != nil {
		return err
	}
	p.In, p.Out, p.Intra = orDefault(s.In, DefaultIn), orDefault(s.Out, DefaultOut), orDefault(s.Intra, DefaultIntra)
	p.web, p.Params = web, web.Params()
	p.Params["sites"] = float64(p.sites.Hosts())
	return nil
}

// planSites divides the pages among so many sites, 0: one for 64 pages, in classes
// of the shares given.
func (p *Plan) planSites(sites int64, share [siteClasses]float64) (err error) {
	asked := sites
	if sites == 0 {
		sites = (p.Nodes + pagesPerSite - 1) / pagesPerSite
	}
	if sites < 0 || sites > p.Nodes {
		return fmt.Errorf("%d sites: want 1 to one a page, %d", asked, p.Nodes)
	}
	p.sites, err = drawSiteTable(p.Nodes, sites, siteExponent, share, p.Seed)
	return err
}

func orDefault(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

// drawsUnordered reports whether the model draws links in no order of pages.
func (p *Plan) drawsUnordered() bool { return p.Model == "alpha-beta" || p.Model == "rmat" }

// drawLinks draws the links: into edges if the model is scattered, else into pages.
func (p *Plan) drawLinks(ctx context.Context, pages Sink, edges EdgeSink, progress func(int64)) error {
	switch p.Model {
	case "alpha-beta":
		return alphaBeta(ctx, p, edges, progress)
	case "rmat":
		return drawRecursiveMatrix(ctx, p, edges, progress)
	}
	byPage := map[string]func(context.Context, *Plan, Sink, func(int64)) error{
		"er": erdosRenyi, "ba": drawPreferential, "copying": drawCopying, "host-local": storeComputed, "matched": storeComputed,
	}
	return byPage[p.Model](ctx, p, pages, progress)
}

// Generate writes the graph to a folder.
func (p *Plan) Generate(ctx context.Context, dir string, opt webgraph.Options) error {
	opt.Nodes, opt.Links, opt.Made = p.Nodes, p.Links, p
	progress := func(total int64) func(int64) {
		return func(done int64) {
			if opt.Progress != nil {
				opt.Progress(p.Model, done, total)
			}
		}
	}
	if p.drawsUnordered() {
		b, err := webgraph.NewBuilder(dir, webgraph.BuilderOptions{Options: opt, MinNodes: p.Nodes})
		if err != nil {
			return err
		}
		defer b.Abort()
		if err := p.drawLinks(ctx, nil, b, progress(p.Links)); err != nil {
			return err
		}
		return b.Finish(ctx)
	}
	w, err := webgraph.Create(dir, opt)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := p.drawLinks(ctx, w, nil, progress(p.Nodes)); err != nil {
		return err
	}
	if p.sites != nil {
		w.SetSites(p.sites[:len(p.sites)-1])
	}
	return w.Finish(ctx)
}
