// Package control answers how many robots should be active: the queue between
// robots and indexer, whose arrivals are chosen by the number of pages in it,
// whose waiting pages go stale. It solves a policy exactly, finds the best
// one, and simulates any. docs/robot-control.md has the formulas.
package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Batches are the matrices D_0, D_1, ..., D_K of a batch Markovian arrival
// process, each by rows.
type Batches struct {
	D [][][]float64 `json:"d"`
}

// Marked is one process whose batches carry the mark of a robot.
type Marked struct {
	D0     [][]float64     `json:"d0"`
	Robots [][][][]float64 `json:"robots"` // of each robot D_1, ..., D_K
}

// Service is a phase-type law of service times.
type Service struct {
	Beta []float64   `json:"beta"`
	S    [][]float64 `json:"s"`
}

// Obsolescence is a phase-type law of the time until a waiting page is stale.
type Obsolescence struct {
	Gamma []float64   `json:"gamma"`
	G     [][]float64 `json:"g"`
}

// Cost weighs the measures.
type Cost struct {
	Loss       float64 `json:"loss"`
	Obsolete   float64 `json:"obsolete"`
	Response   float64 `json:"response"`
	Starvation float64 `json:"starvation"`
	Robot      float64 `json:"robot"`
}

// Spec is MODEL.json: the modes in one of four ways, and the rest.
type Spec struct {
	Capacity     int           `json:"capacity"`
	Modes        []Batches     `json:"modes,omitempty"`
	Robots       []Batches     `json:"robots,omitempty"`
	Idle         string        `json:"idle,omitempty"`
	Common       *Batches      `json:"common,omitempty"`
	Thinning     []float64     `json:"thinning,omitempty"`
	Marked       *Marked       `json:"marked,omitempty"`
	Service      *Service      `json:"service"`
	Obsolescence *Obsolescence `json:"obsolescence"`
	Policy       []int         `json:"policy,omitempty"`
	Thresholds   []int         `json:"thresholds,omitempty"`
	Cost         Cost          `json:"cost"`
}

// Model is a checked Spec with the modes worked out.
type Model struct {
	N    int // greatest number of pages, the one in service included
	R    int // modes
	W    int // phases of arrival
	M    int // phases of service
	Q    int // phases of staleness
	K    int // largest batch
	Cost Cost

	d     [][]mat // of mode r (from 0) D_0..D_K; the diagonal of D_0 makes rows sum to 0
	beta  mat
	s     mat
	s0    mat
	gamma mat
	g     mat
	g0    mat

	policy []int // modes from 1 by pages present, nil if the file has none
}

// Read reads MODEL.json.
func Read(r io.Reader) (*Model, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var s Spec
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, explainJSONError(b, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the model's object")
	}
	return New(s)
}

// explainJSONError puts the place into an error of the JSON decoder.
func explainJSONError(b []byte, err error) error {
	place := func(at int64) string {
		head := b[:min(max(at, 0), int64(len(b)))]
		return fmt.Sprintf("line %d column %d", 1+bytes.Count(head, []byte("\n")), len(head)-bytes.LastIndexByte(head, '\n')-1)
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w", place(syntax.Offset), err)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: %s: a %s does not belong here", place(kind.Offset), kind.Field, kind.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the model's object is cut short")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// What a model may have at most, so that reading one cannot exhaust memory.
const (
	maxCapacity = 100_000
	maxPhases   = 512 // of arrival, of several robots together
	maxEntries  = 5e7 // of all matrices of arrivals
)

// The range of rates and weights, so that products of a few of them neither
// overflow nor vanish.
const (
	minNumber = 1e-60
	maxNumber = 1e60
)

// New checks a specification; an error names the entry that is wrong.
func New(s Spec) (*Model, error) {
	m := &Model{N: s.Capacity, Cost: s.Cost}
	if s.Capacity < 1 || s.Capacity > maxCapacity {
		return nil, fmt.Errorf("capacity: %d is not in 1..%d", s.Capacity, maxCapacity)
	}
	for _, c := range []struct {
		name string
		v    float64
	}{{"loss", s.Cost.Loss}, {"obsolete", s.Cost.Obsolete}, {"response", s.Cost.Response}, {"starvation", s.Cost.Starvation}, {"robot", s.Cost.Robot}} {
		if c.v < 0 {
			return nil, fmt.Errorf("cost.%s: %g is negative", c.name, c.v)
		}
		if !(c.v <= maxNumber) {
			return nil, fmt.Errorf("cost.%s: %g is more than %g", c.name, c.v, maxNumber)
		}
	}
	if err := m.buildArrivalModes(s); err != nil {
		return nil, err
	}
	if s.Service == nil {
		return nil, errors.New("service: missing")
	}
	var err error
	if m.beta, m.s, m.s0, err = phaseType("service.beta", "service.s", s.Service.Beta, s.Service.S); err != nil {
		return nil, err
	}
	if p := neverEnds(m.s, m.s0); p >= 0 {
		return nil, fmt.Errorf("service.s[%d]: service never ends from this phase", p)
	}
	gamma, g := []float64{1}, [][]float64{{0}}
	if s.Obsolescence != nil {
		gamma, g = s.Obsolescence.Gamma, s.Obsolescence.G
	}
	if m.gamma, m.g, m.g0, err = phaseType("obsolescence.gamma", "obsolescence.g", gamma, g); err != nil {
		return nil, err
	}
	m.M, m.Q = m.beta.c, m.gamma.c
	return m, m.readSpecPolicy(s)
}

// readSpecPolicy takes policy or thresholds.
func (m *Model) readSpecPolicy(s Spec) error {
	switch {
	case s.Policy != nil && s.Thresholds != nil:
		return errors.New("policy and thresholds: give one of them")
	case s.Policy != nil:
		if err := m.checkPolicy(s.Policy); err != nil {
			return err
		}
		m.policy = s.Policy
	case s.Thresholds != nil:
		p, err := m.FromThresholds(s.Thresholds)
		if err != nil {
			return err
		}
		m.policy = p
	case m.R == 1:
		m.policy = m.fixedModePolicy(1)
	}
	return nil
}

// Policy returns the policy of the file, nil if it has none.
func (m *Model) Policy() []int { return m.policy }

func (m *Model) fixedModePolicy(mode int) []int {
	p := make([]int, m.N+1)
	for i := range p {
		p[i] = mode
	}
	return p
}

// FromThresholds returns the policy of thresholds j_1 <= ... <= j_{R-1}.
func (m *Model) FromThresholds(j []int) ([]int, error) {
	if len(j) != m.R-1 {
		return nil, fmt.Errorf("thresholds: %d entries, want %d for %d modes", len(j), m.R-1, m.R)
	}
	for i, v := range j {
		if v < -1 || v > m.N {
			return nil, fmt.Errorf("thresholds[%d]: %d is not in -1..%d", i, v, m.N)
		}
		if i > 0 && v < j[i-1] {
			return nil, fmt.Errorf("thresholds[%d]: %d is less than %d before it", i, v, j[i-1])
		}
	}
	p := m.fixedModePolicy(1)
	for i := range p {
		for k, v := range j {
			if i <= v {
				p[i] = m.R - k
				break
			}
		}
	}
	return p, nil
}

// Thresholds returns the thresholds of a policy whose modes do not rise with
// the number of pages, nil of any other.
func (m *Model) Thresholds(policy []int) []int {
	j := make([]int, m.R-1)
	for k := range j {
		j[k] = -1
	}
	for i, r := range policy {
		if i > 0 && r > policy[i-1] {
			return nil
		}
		for k := range j {
			if r >= m.R-k {
				j[k] = i
			}
		}
	}
	return j
}

// buildArrivalModes works out the matrices of the modes.
func (m *Model) buildArrivalModes(s Spec) error {
	ways := 0
	for _, given := range []bool{s.Modes != nil, s.Robots != nil, s.Common != nil, s.Marked != nil} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("modes: give one of modes, robots, common, marked")
	case s.Robots == nil && s.Idle != "":
		return errors.New("idle: goes with robots only")
	case s.Common == nil && s.Thinning != nil:
		return errors.New("thinning: goes with common only")
	}
	var err error
	switch {
	case s.Modes != nil:
		err = m.plainModes(s.Modes)
	case s.Robots != nil:
		err = m.robotModes(s.Robots, s.Idle)
	case s.Common != nil:
		err = m.thinnedModes(*s.Common, s.Thinning)
	default:
		err = m.markedModes(*s.Marked)
	}
	if err != nil {
		return err
	}
	m.R, m.W = len(m.d), m.d[0][0].r
	for _, d := range m.d {
		m.K = max(m.K, len(d)-1)
	}
	if err := checkMatrixEntries(m.R, m.K, m.W); err != nil {
		return err
	}
	for r := range m.d {
		for len(m.d[r]) <= m.K {
			m.d[r] = append(m.d[r], zeroMatrix(m.W, m.W))
		}
	}
	return nil
}

// checkMatrixEntries checks the size of the matrices of all modes together.
func checkMatrixEntries(modes, largest, phases int) error {
	if n := float64(modes) * float64(largest+1) * float64(phases*phases); n > maxEntries {
		return fmt.Errorf("%d modes with batches of up to %d pages and %d phases: %.3g entries of matrices are more than %.3g", modes, largest, phases, n, float64(maxEntries))
	}
	return nil
}

func (m *Model) plainModes(modes []Batches) error {
	if len(modes) == 0 {
		return errors.New("modes: empty")
	}
	for r, b := range modes {
		d, err := checkedBMAP(fmt.Sprintf("modes[%d].d", r), b.D)
		if err != nil {
			return err
		}
		if r > 0 && d[0].r != m.d[0][0].r {
			return fmt.Errorf("modes[%d].d[0]: %d phases, modes[0] has %d; all modes share the phases", r, d[0].r, m.d[0][0].r)
		}
		m.d = append(m.d, d)
	}
	return nil
}

func (m *Model) robotModes(robots []Batches, idle string) error {
	if idle != "run" && idle != "freeze" {
		return fmt.Errorf("idle: %q is neither run nor freeze", idle)
	}
	if len(robots) == 0 {
		return errors.New("robots: empty")
	}
	var own [][]mat
	before, w, k := []int{}, 1, 0
	for l, b := range robots {
		d, err := checkedBMAP(fmt.Sprintf("robots[%d].d", l), b.D)
		if err != nil {
			return err
		}
		before = append(before, w)
		if w *= d[0].r; w > maxPhases {
			return fmt.Errorf("robots[%d].d: %d phases of the robots together are more than %d", l, w, maxPhases)
		}
		own, k = append(own, d), max(k, len(d)-1)
	}
	if err := checkMatrixEntries(len(own), k, w); err != nil {
		return err
	}
	lift := func(l int, x mat) mat {
		return kroneckerProduct(identityMatrix(before[l]), x, identityMatrix(w/before[l]/x.r))
	}
	for r := 1; r <= len(own); r++ {
		d := make([]mat, k+1)
		for j := range d {
			d[j] = zeroMatrix(w, w)
		}
		for l, o := range own {
			for j, x := range o {
				switch {
				case l < r:
					d[j].addInPlace(lift(l, x))
				case idle == "run":
					d[0].addInPlace(lift(l, x))
				}
			}
		}
		m.d = append(m.d, d)
	}
	return nil
}

func (m *Model) thinnedModes(common Batches, p []float64) error {
	d, err := checkedBMAP("common.d", common.D)
	if err != nil {
		return err
	}
	if len(p) == 0 {
		return errors.New("thinning: missing or empty")
	}
	if err := checkMatrixEntries(len(p), len(d)-1, d[0].r); err != nil {
		return err
	}
	for r, v := range p {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("thinning[%d]: %g is not in 0..1", r, v)
		}
		x := []mat{d[0].cloneMatrix()}
		for _, b := range d[1:] {
			x[0].addInPlace(b.cloneMatrix().scaleInPlace(1 - v))
			x = append(x, b.cloneMatrix().scaleInPlace(v))
		}
		m.d = append(m.d, x)
	}
	return nil
}

func (m *Model) markedModes(mk Marked) error {
	if len(mk.Robots) == 0 {
		return errors.New("marked.robots: missing or empty")
	}
	names, all := []string{"marked.d0"}, [][][]float64{mk.D0}
	k := 0
	for l, ds := range mk.Robots {
		for j, x := range ds {
			names, all = append(names, fmt.Sprintf("marked.robots[%d][%d]", l, j)), append(all, x)
		}
		k = max(k, len(ds))
	}
	flat, err := checkedGenerator(names, all)
	if err != nil {
		return err
	}
	if err := checkMatrixEntries(len(mk.Robots), k, flat[0].r); err != nil {
		return err
	}
	for r := 1; r <= len(mk.Robots); r++ {
		d := []mat{flat[0].cloneMatrix()}
		for range k {
			d = append(d, zeroMatrix(flat[0].r, flat[0].r))
		}
		at := 1
		for l, ds := range mk.Robots {
			for j := range ds {
				if l < r {
					d[j+1].addInPlace(flat[at])
				} else {
					d[0].addInPlace(flat[at])
				}
				at++
			}
		}
		m.d = append(m.d, d)
	}
	return nil
}

// States returns the number of states of the chain, as a float as it may be
// beyond any integer.
func (m *Model) States() float64 {
	n, level := 1.0, float64(m.M)
	for range m.N {
		n += level
		level *= float64(m.Q)
	}
	return n * float64(m.W)
}
