package control

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func TestIterativeAgainstExact(t *testing.T) {
	t.Parallel()
	for law, stale := range staleLaws {
		for name, service := range map[string]*Service{"exponential": exponential(1.5), "hyperexponential": hyperService, "Coxian": coxService} {
			for _, thinned := range []bool{false, true} {
				t.Run(fmt.Sprint(law, name, thinned), func(t *testing.T) {
					t.Parallel()
					s := optimisable(6, stale, service, thinned)
					s.Policy = []int{3, 3, 1, 2, 3, 2, 1}
					m := mustNew(t, s)
					want, err := m.Solve(t.Context(), s.Policy)
					if err != nil {
						t.Fatal(err)
					}
					got, err := m.solveIteratively(t.Context(), s.Policy)
					if err != nil {
						t.Fatal(err)
					}
					same(t, got, want, 1e-10)
				})
			}
		}
	}
}

// Capacity 12 with staleness of two phases, to rounding in less than the 10 s
// that are asked for: of work, whatever else the machine does.
func TestCapacity12(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread() // the solver works where it is called
	defer runtime.UnlockOSThread()
	for _, law := range []string{"Erlang-2", "hyperexponential"} {
		s := optimisable(12, staleLaws[law], hyperService, false)
		s.Policy = []int{3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1}
		begin := worked(t)
		r := mustSolve(t, s)
		if d := worked(t) - begin; r.Method != Iterative || r.States != 16382 || r.Error > 1e-9 || d > 10*time.Second {
			t.Errorf("%s: %s, %g states, error %g, %s", law, r.Method, r.States, r.Error, d)
		}
	}
}

// worked is how long the calling thread has been on a processor.
func worked(t *testing.T) time.Duration {
	t.Helper()
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// long says whether the tests may take minutes.
func long() bool { return os.Getenv("FRESHET_LONG") != "" }

// Four million states.
func TestManyStates(t *testing.T) {
	if !long() {
		t.Skip("FRESHET_LONG is not set")
	}
	m := mustNew(t, optimisable(20, staleLaws["hyperexponential"], hyperService, false))
	begin := time.Now()
	r, err := m.Solve(t.Context(), m.fixedModePolicy(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%g states, error %.1g, %s", r.States, r.Error, time.Since(begin))
}

func BenchmarkCapacity12(b *testing.B) {
	m := mustNew(b, optimisable(12, staleLaws["Erlang-2"], hyperService, false))
	for b.Loop() {
		if _, err := m.Solve(b.Context(), m.fixedModePolicy(2)); err != nil {
			b.Fatal(err)
		}
	}
}
