package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// With one phase of staleness nothing is lost by lumping.
func TestLumpedOfOnePhase(t *testing.T) {
	t.Parallel()
	s := optimisable(9, staleLaws["exponential"], hyperService, true)
	s.Policy = []int{3, 3, 1, 2, 3, 2, 1, 2, 2, 1}
	m := mustNew(t, s)
	for keep := range 3 {
		got, err := m.lumpedResult(t.Context(), s.Policy, keep)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, mustSolve(t, s), 1e-10)
	}
}

// With all phases kept the chain is the exact one; the ages are not, as they
// take the phases of other pages as independent of the page's own.
func TestLumpedKeepsAll(t *testing.T) {
	t.Parallel()
	for law, stale := range staleLaws {
		s := optimisable(5, stale, hyperService, false)
		s.Policy = []int{3, 3, 1, 2, 3, 2}
		got, err := mustNew(t, s).lumpedResult(t.Context(), s.Policy, 4)
		if err != nil {
			t.Fatal(err)
		}
		want := mustSolve(t, s)
		for i, p := range want.QueueLength {
			near(t, fmt.Sprintf("%s: p_%d", law, i), got.QueueLength[i], p, 1e-10)
		}
		near(t, law+": stale", got.Obsolete, want.Obsolete, 1e-10)
		near(t, law+": Little's law", got.Sojourn, want.Sojourn, 1e-10)
	}
}

// The stated error holds the distance from the iterative method, over laws of
// staleness and service and light, middle and heavy load.
func TestLumpedErrorHolds(t *testing.T) {
	t.Parallel()
	for law, n := range map[string]int{"Erlang-2": 13, "hyperexponential": 13, "cyclic PH(3)": 9} {
		for name, service := range map[string]*Service{"hyperexponential": hyperService, "exponential": exponential(1.5), "slow": exponential(.3)} {
			for mode := 1; mode <= 3; mode++ {
				t.Run(fmt.Sprint(law, name, mode), func(t *testing.T) {
					t.Parallel()
					s := optimisable(n, staleLaws[law], service, false)
					if !long() && (mode != 1 || name == "exponential" || (name == "slow") != (law == "hyperexponential")) {
						t.Skip("FRESHET_LONG is not set")
					}
					m := mustNew(t, s)
					p := m.fixedModePolicy(mode)
					want, err := m.solveIteratively(t.Context(), p)
					if err != nil {
						t.Fatal(err)
					}
					got, err := m.solveApproximately(t.Context(), p, 3000) // capacities 9 and 7, or 5 and 3
					if err != nil {
						t.Fatal(err)
					}
					d := got.Distance(want)
					t.Logf("distance %.3g, stated %.3g", d, got.Error)
					if d > got.Error || got.Error > 4*d && got.Error > .05 {
						t.Errorf("distance %g, stated %g", d, got.Error)
					}
				})
			}
		}
	}
}

func TestMethodIsChosen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n       int
		law     string
		o       Options
		want    string
		refused string
	}{
		{100, "exponential", Options{}, Exact, ""},
		{5, "Erlang-2", Options{}, Exact, ""},
		{12, "Erlang-2", Options{}, Iterative, ""},
		{40, "Erlang-2", Options{}, Lumped, ""},
		{5, "Erlang-2", Options{Method: Lumped}, Lumped, ""},
		{40, "Erlang-2", Options{Method: Exact}, "", "states need matrices"},
		{40, "Erlang-2", Options{Method: Iterative}, "", "the limit is 8e+06"},
		{12, "Erlang-2", Options{Method: Iterative, MaxStates: 1000}, "", "the limit is 1000"},
		{12, "Erlang-2", Options{Method: "magic"}, "", `no method "magic"`},
	} {
		got, err := mustNew(t, optimisable(c.n, staleLaws[c.law], hyperService, false)).chooseMethod(c.o)
		if got != c.want || c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%d %s %+v: %q, %v", c.n, c.law, c.o, got, err)
		}
		if err != nil && c.o.Method != "magic" && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v is not ErrTooLarge", err)
		}
	}
}
