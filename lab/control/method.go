package control

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// The ways to solve a policy.
const (
	Auto      = "auto"      // the first of the others that is feasible
	Exact     = "exact"     // dense matrices by levels
	Iterative = "iterative" // one number a state, to rounding
	Lumped    = "lumped"    // approximate: staleness phases of the first waiting pages only
)

// Methods returns the names of the methods.
func Methods() []string { return []string{Auto, Exact, Iterative, Lumped} }

// Options choose how policies are solved.
type Options struct {
	Method    string  // "" is Auto
	MaxStates float64 // of the iterative method; 0 is DefaultMaxStates

	ThresholdsOnly bool // Optimize looks for no policy of another form
}

// DefaultMaxStates is the number of states up to which the iterative method is
// used: about a minute and half a gigabyte.
const DefaultMaxStates = 8e6

// bytesAState is what the iterative method needs for a state.
const bytesAState = 60

// maxExactWork is the number of multiplications up to which Auto takes dense
// matrices where the iterative method would do as well.
const maxExactWork = 1.5e9

// Solve computes the measures of a policy (modes from 1 for 0..N pages present)
// by the first feasible method and checks them against each other.
func (m *Model) Solve(ctx context.Context, policy []int) (Result, error) {
	return m.SolveBy(ctx, policy, Options{})
}

// SolveBy is Solve by a chosen method. Where rates are so far apart that the
// iteration fails, Auto goes on to the lumped method.
func (m *Model) SolveBy(ctx context.Context, policy []int, o Options) (Result, error) {
	if err := m.checkPolicy(policy); err != nil {
		return Result{}, err
	}
	if r := policy[0] - 1; m.isSilent(r) {
		return m.emptyResult(r), nil
	}
	if err := m.checkArrivals(policy); err != nil {
		return Result{}, err
	}
	method, err := m.chooseMethod(o)
	if err != nil {
		return Result{}, err
	}
	switch method {
	case Exact:
		s, err := newSolver(m)
		if err != nil {
			return Result{}, err
		}
		return s.solveDense(ctx, policy)
	case Iterative:
		r, err := m.solveIteratively(ctx, policy)
		if err == nil || ctx.Err() != nil || o.Method == Iterative || m.Q == 1 {
			return r, err
		}
	}
	return m.solveApproximately(ctx, policy, probeStates)
}

func (m *Model) checkPolicy(policy []int) error {
	if len(policy) != m.N+1 {
		return fmt.Errorf("policy: %d entries, want %d: one for each of 0..%d pages", len(policy), m.N+1, m.N)
	}
	for i, r := range policy {
		if r < 1 || r > m.R {
			return fmt.Errorf("policy[%d]: no mode %d; there are 1..%d", i, r, m.R)
		}
	}
	return nil
}

// checkArrivals refuses a policy in whose modes the phases of arrival never
// come together.
func (m *Model) checkArrivals(policy []int) error {
	all, modes := zeroMatrix(m.W, m.W), usedModes(policy)
	for _, r := range modes {
		for _, d := range m.d[r-1] {
			all.addInPlace(d)
		}
	}
	if _, err := stationaryLaw(all); err != nil {
		return fmt.Errorf("policy: in the modes %v that it uses the arrivals are reducible: %w", modes, err)
	}
	return nil
}

// chooseMethod returns the method to take.
func (m *Model) chooseMethod(o Options) (string, error) {
	limit := o.MaxStates
	if limit == 0 {
		limit = DefaultMaxStates
	}
	work, dense := m.denseWork()
	fits := dense <= maxDense && m.topLevelStates() <= maxLevel
	switch o.Method {
	case Exact:
		if !fits {
			return "", fmt.Errorf("%w: %.3g states need matrices of %.3g GB; the iterative or lumped method will do", ErrTooLarge, m.States(), 8e-9*dense)
		}
		return Exact, nil
	case Iterative:
		if m.States() > limit {
			return "", fmt.Errorf("%w: %.4g states, about %.3g GB, the limit is %.4g; allow more states or take the lumped method", ErrTooLarge, m.States(), 1e-9*bytesAState*m.States(), limit)
		}
		return Iterative, nil
	case Lumped:
		return Lumped, nil
	case Auto, "":
	default:
		return "", fmt.Errorf("no method %q; there are %s", o.Method, strings.Join(Methods(), ", "))
	}
	switch {
	case fits && (work <= maxExactWork || m.Q == 1):
		return Exact, nil
	case m.States() <= limit:
		return Iterative, nil
	case m.Q == 1:
		return "", fmt.Errorf("%w: %.4g states, about %.3g GB, the limit is %.4g", ErrTooLarge, m.States(), 1e-9*bytesAState*m.States(), limit)
	}
	return Lumped, nil
}

// topLevelStates returns the number of states of the top level.
func (m *Model) topLevelStates() float64 {
	return float64(m.W*m.M) * math.Pow(float64(m.Q), float64(m.N-1))
}

// denseWork returns about how many multiplications and how many matrix entries
// the exact method takes.
func (m *Model) denseWork() (work, entries float64) {
	n := float64(m.W * m.M)
	for i := 1; i <= m.N; i++ {
		blocks := float64(1 + min(m.K, m.N-i))
		work += n * n * n * (1 + blocks)
		entries += n * n * float64(2+m.R) * blocks
		n *= float64(m.Q)
	}
	return work, entries
}

// keptWidth bounds the states of a level of the lumped chain, probeStates the
// chain at which its error is measured.
const (
	keptWidth   = 64
	mostKept    = 3
	probeStates = 4e4
	margin      = 1.25 // on what is measured
)

// solveApproximately solves with the phases of the first pages only. The error is
// measured: the same model with smaller capacities is solved both ways, and the
// distance continued to the capacity at hand (formula (17)).
func (m *Model) solveApproximately(ctx context.Context, policy []int, probe float64) (Result, error) {
	keep := m.lumpedPhaseCount()
	r, err := m.lumpedResult(ctx, policy, keep)
	if err != nil {
		return r, err
	}
	large := *m
	for large.N > 1 && large.States() > probe {
		large.N--
	}
	far, err := large.lumpedError(ctx, policy, keep)
	if err != nil {
		return r, fmt.Errorf("error of the lumped method with capacity %d: %w", large.N, err)
	}
	r.Error = far
	if small := *m; large.N < m.N && large.N > 4 {
		small.N = large.N - 2
		closeness, err := small.lumpedError(ctx, policy, keep)
		if err != nil {
			return r, fmt.Errorf("error of the lumped method with capacity %d: %w", small.N, err)
		}
		steps := float64(min(m.N-large.N, large.N))
		r.Error += max(0, far-closeness) / 2 * steps
	}
	r.Error *= margin
	return r, nil
}

// lumpedPhaseCount returns how many pages' phases the lumped method keeps.
func (m *Model) lumpedPhaseCount() int {
	keep := 0
	for w := m.W * m.M * m.Q; w <= keptWidth && keep < mostKept && keep < m.N-1; w *= m.Q {
		keep++
	}
	return keep
}

// lumpedError returns the distance of the lumped method from the iterative one.
func (m *Model) lumpedError(ctx context.Context, policy []int, keep int) (float64, error) {
	policy = policy[:m.N+1]
	method := Iterative
	if work, _ := m.denseWork(); work <= maxExactWork && m.topLevelStates() <= maxLevel {
		method = Exact
	}
	want, err := m.SolveBy(ctx, policy, Options{Method: method, MaxStates: math.Inf(1)})
	if err != nil {
		return 0, err
	}
	got, err := m.lumpedResult(ctx, policy, min(keep, m.N-1))
	if err != nil {
		return 0, err
	}
	return got.Distance(want), nil
}

// Distance returns how far a result is from another: the greatest difference of
// probabilities and relative difference of rates, times and cost.
func (r Result) Distance(from Result) float64 {
	worst := 0.0
	for _, v := range [][2]float64{{r.Loss, from.Loss}, {r.Obsolete, from.Obsolete}, {r.Success, from.Success}, {r.Starvation, from.Starvation}} {
		worst = max(worst, math.Abs(v[0]-v[1]))
	}
	for _, v := range [][2]float64{{r.ArrivalRate, from.ArrivalRate}, {r.Sojourn, from.Sojourn}, {r.SojournServed, from.SojournServed}, {r.SojournObsolete, from.SojournObsolete}, {r.MeanRobots, from.MeanRobots}, {r.Cost, from.Cost}} {
		if v[1] != 0 {
			worst = max(worst, math.Abs(v[0]-v[1])/math.Abs(v[1]))
		}
	}
	return worst
}
