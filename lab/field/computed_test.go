package field

import (
	"math"
	"testing"
)

func computed(t *testing.T, s Spec) *Computed {
	t.Helper()
	f, err := NewComputed(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A resource asked for alone at any time is what reading all histories from
// the start says, by every law; and of any resource beyond the count too.
func TestComputedAloneIsComputedAmongAll(t *testing.T) {
	t.Parallel()
	for _, name := range laws {
		for _, spread := range []Law{nil, Lognormal{1}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				law, _ := ParseLaw(name)
				s := Spec{PageCount: 50, Length: 1e5, Changed: 40, Requested: 5, ChangeLaw: law, ChangeSpread: spread, Seed: 4}
				f := computed(t, s)
				x, err := NewIndex(f)
				if err != nil {
					t.Fatal(err)
				}
				s.PageCount = 0
				alone := computed(t, s)
				for page := range uint64(f.Pages()) {
					for i := range 30 {
						at := float64(i) * 3500 // also beyond the horizon
						got, want := alone.At(page, at), x.At(page, at)
						if got.Number == 0 != (want.Number == 0) {
							t.Fatalf("page %d at %g: number %d, want %d", page, at, got.Number, want.Number)
						}
						got.Number = want.Number // one counts, the other only rises
						if got != want {
							t.Fatalf("page %d at %g: %+v, want %+v", page, at, got, want)
						}
					}
				}
				checkIntensity(t, f)
			})
		}
	}
	far := computed(t, Spec{Length: 1e6, Changed: 10, Seed: 1})
	if s := far.At(1<<42, 9e5); s.Number == 0 || s.Size < MinSize || s.Size > MaxSize || s.Since > 9e5 || s.Until <= 9e5 {
		t.Errorf("the last of 2^42 resources: %+v", s)
	}
}

// Also where kinds are such that changes are few or none.
func TestComputedOfFewKinds(t *testing.T) {
	t.Parallel()
	for _, kinds := range []KindShares{{1}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 1}, {.5, 0, 0, 0, 0, .5}, {0, 0, .01, 0, 0, .99}} {
		f := computed(t, Spec{PageCount: 30, Length: 1e4, Changed: 50, Kinds: kinds, Seed: 4})
		x, err := NewIndex(f)
		if err != nil {
			t.Fatal(err)
		}
		for page := range uint64(30) {
			for at := 0.; at < 1.2e4; at += 431 {
				got, want := f.At(page, at), x.At(page, at)
				got.Number = want.Number
				if got != want {
					t.Fatalf("%v, page %d at %g: %+v, want %+v", kinds, page, at, got, want)
				}
			}
		}
	}
}

// checkIntensity compares the numbers of events with what the rates promise.
func checkIntensity(t *testing.T, f *Computed) {
	t.Helper()
	var wantReal float64
	for _, c := range allChanges(f, 64) {
		if c.Real {
			wantReal++
		}
	}
	requests := float64(len(allRequests(f, 64)))
	for name, v := range map[string][2]float64{"real changes": {wantReal, total(f.Rates())}, "requests": {requests, total(f.RequestRates())}} {
		want := v[1] * f.Horizon()
		if math.Abs(v[0]-want) > 12*math.Sqrt(want) { // heavy tails spread more than a Poisson count
			t.Errorf("%.0f %s, want %.0f", v[0], name, want)
		}
	}
}

// Each state ends where the next one begins, and numbers rise.
func TestStatesFollowEachOther(t *testing.T) {
	t.Parallel()
	for _, name := range laws {
		law, _ := ParseLaw(name)
		f := computed(t, Spec{Length: 1e5, Changed: 50, ChangeLaw: law, ChangeSpread: Pareto{1.5}, Seed: 9})
		for page := range uint64(50) {
			s := f.At(page, 0)
			for n := 0; !math.IsInf(s.Until, 1) && n < 200; n++ {
				next := f.At(page, s.Until)
				if next.Since != s.Until || next.Number <= s.Number || next.Until <= next.Since {
					t.Fatalf("%s, page %d: %+v follows %+v", name, page, next, s)
				}
				s = next
			}
		}
	}
}

// By the exponential law the computed field has the freshness that the closed
// form gives for visits at a fixed interval, kinds and all.
func TestComputedFreshnessByClosedForm(t *testing.T) {
	t.Parallel()
	const interval, length, pages = 1000., 1e5, 300
	s := Spec{Length: length, Changed: length / 1500, Seed: 2}
	f := computed(t, s)
	var fresh float64
	for page := range uint64(pages) {
		for at := 50 * interval; at+interval <= length; at += interval {
			fresh += min(f.At(page, at).Until-at, interval)
		}
	}
	got := fresh / (length - 50*interval) / pages
	if want := Classic().Cycle(1/1500., interval); math.Abs(got-want) > .005 {
		t.Errorf("freshness %.4f, want %.4f", got, want)
	}
}

// Resources beyond those of a field never change.
func TestIndexBeyondTheField(t *testing.T) {
	t.Parallel()
	f, err := New(Spec{PageCount: 3, Length: 1e4, Changed: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewIndex(f)
	if err != nil {
		t.Fatal(err)
	}
	if s := x.At(3, 5e3); s != (Still{}).At(3, 5e3) || x.At(2, 5e3).Number == 0 {
		t.Errorf("%+v", s)
	}
}

func TestParseKinds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]KindShares{"": Classic(), "classic": Classic(), "text": Text(), "0,.5,0,.25,.25,0": {0, .5, 0, .25, .25, 0}} {
		if k, err := ParseKinds(text); err != nil || k != want {
			t.Errorf("%q: %v, %v", text, k, err)
		}
	}
	for _, text := range []string{"all", "1,2", "0,.5,0,.25,.25,0,9"} {
		if k, err := ParseKinds(text); err == nil {
			t.Errorf("%q: %v, no error", text, k)
		}
	}
}

func BenchmarkComputed(b *testing.B) {
	for _, name := range []string{"exponential", "weibull:0.7"} {
		b.Run(name, func(b *testing.B) {
			law, _ := ParseLaw(name)
			f, err := NewComputed(Spec{Length: 1e6, Changed: 100, ChangeLaw: law})
			if err != nil {
				b.Fatal(err)
			}
			for i := range uint64(b.N) {
				f.At(i, 8e5)
			}
		})
	}
}
