package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Method says how a law of service is found.
type Method string

// Methods of service. ByMoments matches three moments; ByLikelihood fits a
// hyper-Erlang law to all values; Auto takes the hyperexponential law of order
// 2 where three moments allow it and its distribution function is not far off
// the sample's, and the hyper-Erlang law otherwise.
const (
	Auto         Method = "auto"
	ByMoments    Method = "moments"
	ByLikelihood Method = "em"
)

// ServiceOptions bound the search. Zero values mean the defaults.
type ServiceOptions struct {
	Method   Method
	Branches int // of the hyper-Erlang law at most; default 6
	Order    int // phases of the hyper-Erlang law at most; default 30
}

// Candidate is a law that was tried.
type Candidate struct {
	Law
	Family   string // in two or three words
	Goodness Goodness
	Chosen   bool
}

// Service is a fitted law of service times with what else was tried.
type Service struct {
	Candidate
	Tried []Candidate
	Words []string // why this law, in sentences
}

// FitService fits a law to service times or sizes.
func FitService(ctx context.Context, s *Sample, o ServiceOptions) (*Service, error) {
	if err := errors.Join(setBoundedOption("branches", &o.Branches, 6, 20), setBoundedOption("order", &o.Order, 30, MaxOrder)); err != nil {
		return nil, err
	}
	if o.Method == "" {
		o.Method = Auto
	}
	var tried []Candidate
	moments, momentsErr := Moments(s.Moments[:]...)
	if momentsErr == nil {
		tried = append(tried, Candidate{Law: *moments, Family: "moments", Goodness: s.goodnessOfFit(&moments.PH)})
	}
	likely, likelyErr := HyperErlangEM(ctx, s, o.Branches, o.Order)
	if likelyErr != nil && (ctx.Err() != nil || o.Method == ByLikelihood) {
		return nil, likelyErr
	}
	if likelyErr == nil {
		tried = append(tried, Candidate{Law: *likely, Family: "likelihood", Goodness: s.goodnessOfFit(&likely.PH)})
	}
	if momentsErr != nil && (o.Method == ByMoments || likelyErr != nil) {
		return nil, momentsErr
	}
	out := &Service{Tried: tried}
	h2 := momentsErr == nil && s.SCV() > 1 && s.Moments[2]*s.Moments[0] > 1.5*s.Moments[1]*s.Moments[1]
	chosen := len(tried) - 1
	if momentsErr == nil && (o.Method == ByMoments || likelyErr != nil || (o.Method == Auto && h2 && !isMomentFitFar(tried))) {
		chosen = 0
	}
	out.Tried[chosen].Chosen = true
	out.Candidate = out.Tried[chosen]
	out.Words = s.explainService(out, o, h2, momentsErr)
	return out, nil
}

// Bounds of the choice between moments and likelihood.
const (
	farDistance = .1 // distribution functions off by more are far off
	sameMoments = .2 // relative error of the second moment that is no objection
)

// isMomentFitFar tells that the law of the moments, the first tried, is far off in
// distribution where the law of the likelihood, the second, is near in
// distribution and second moment: one outlier among values that vary little
// makes the moments those of no likeness of the sample.
func isMomentFitFar(tried []Candidate) bool {
	if len(tried) < 2 {
		return false
	}
	m := tried[1].Goodness.Moments[1]
	d := tried[0].Goodness.KS.Distance
	return d > farDistance && tried[1].Goodness.KS.Distance < d/2 && math.Abs(m.Fit/m.Sample-1) < sameMoments
}

// explainService says why the law was taken.
func (s *Sample) explainService(v *Service, o ServiceOptions, h2 bool, momentsErr error) []string {
	m1, m2, m3 := s.Moments[0], s.Moments[1], s.Moments[2]
	var words []string
	bound := fmt.Sprintf("m3 m1 = %.4g against 1.5 m2^2 = %.4g, SCV %.4g", m3*m1, 1.5*m2*m2, s.SCV())
	switch {
	case momentsErr != nil:
		words = append(words, "The moments cannot be matched: "+momentsErr.Error()+".")
	case h2:
		words = append(words, "A hyperexponential law of order 2 can have the three moments ("+bound+").")
	default:
		words = append(words, "A hyperexponential law of order 2 cannot have the three moments ("+bound+").")
	}
	if h2 && o.Method == Auto && !v.Tried[0].Chosen {
		words = append(words, fmt.Sprintf("But its distribution function would be off by %.3f.", v.Tried[0].Goodness.KS.Distance))
	}
	words = append(words, fmt.Sprintf("Taken: %s (%s).", v.Law.Method, map[Method]string{Auto: "chosen by itself", ByMoments: "as asked", ByLikelihood: "as asked"}[o.Method]))
	for _, c := range v.Tried {
		if !c.Chosen && c.Goodness.KS.Distance < .7*v.Goodness.KS.Distance {
			m := c.Goodness.Moments[1]
			words = append(words, fmt.Sprintf("%s, of order %d, follows the distribution function better (distance %.3f instead of %.3f); its second moment is %.3g times the log's.",
				c.Law.Method, c.Order(), c.Goodness.KS.Distance, v.Goodness.KS.Distance, m.Fit/m.Sample))
		}
	}
	return append(words, v.Notes...)
}

// goodnessOfFit compares a law with the sample.
func (s *Sample) goodnessOfFit(p *PH) Goodness {
	g := s.distanceAndMoments(p)
	g.Score = s.likelihoodScore(p)
	return g
}

// distanceAndMoments is goodness without likelihood.
func (s *Sample) distanceAndMoments(p *PH) Goodness {
	ks := s.Distance(p)
	fit := p.Moments(3)
	g := Goodness{Samples: len(s.Sorted), KS: &ks, SCV: &Pair{Sample: s.SCV(), Fit: fit[1]/(fit[0]*fit[0]) - 1}}
	for k, m := range s.Moments {
		g.Moments = append(g.Moments, Pair{Sample: m, Fit: fit[k]})
	}
	return g
}

// likelihoodScore computes the likelihood of a law; parameters are what a law of its
// shape needs: one a distinct rate, one a weight beyond the first.
func (s *Sample) likelihoodScore(p *PH) *Score {
	d := s.binValues()
	var ll float64
	for i, f := range p.Density(d.x) {
		ll += d.weight[i] * math.Log(math.Max(f, math.SmallestNonzeroFloat64))
	}
	return &Score{LogLikelihood: ll, BIC: float64(freeParameters(p))*math.Log(d.n) - 2*ll}
}

// freeParameters counts the free figures of a law of Erlang branches or of a chain.
func freeParameters(p *PH) int {
	rates := map[float64]bool{}
	starts := 0
	for i, row := range p.S {
		rates[row[i]] = true
		if p.Beta[i] > 0 {
			starts++
		}
	}
	return len(rates) + max(0, starts-1) + len(p.connectedPhases())
}
