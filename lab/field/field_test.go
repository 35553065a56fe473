package field

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/rng"
)

var laws = []string{
	"exponential", "deterministic", "uniform:0.5", "uniform:1", "pareto:3.5", "lognormal:0.7", "weibull:0.7", "weibull:2", "empirical:1,2,2,7",
}

// Every law has mean 1, and its residual has the mean E[X^2]/2 of renewal
// theory, the second moment being taken from the draws themselves.
func TestLawsHaveTheirMoments(t *testing.T) {
	t.Parallel()
	for _, name := range laws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			law, err := ParseLaw(name)
			if err != nil {
				t.Fatal(err)
			}
			const n = 400_000
			r := rng.New(1, "law", name)
			var sum, squares, fourth, rest, rests float64
			for range n {
				x, y := law.Draw(r), law.Residual(r)
				sum += x
				squares += x * x
				fourth += x * x * x * x
				rest += y
				rests += y * y
			}
			mean, second := sum/n, squares/n
			if d := math.Abs(mean - 1); d > 5*math.Sqrt(max(0, second-1)/n)+1e-9 {
				t.Errorf("mean %.5f", mean)
			}
			got, want := rest/n, second/2
			noise := math.Sqrt((rests/n-got*got)/n) + math.Sqrt(max(0, fourth/n-second*second)/n)/2
			if math.Abs(got-want) > 5*noise+1e-9 {
				t.Errorf("residual has mean %.5f, want %.5f (noise %.5f)", got, want, noise)
			}
			again, err := ParseLaw(law.String())
			if err != nil || again.String() != law.String() {
				t.Errorf("%q reads back as %v, %v", law, again, err)
			}
		})
	}
}

func TestParseLawErrors(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"gauss", "pareto", "pareto:1", "pareto:x", "uniform:2", "weibull:0", "lognormal:-1", "exponential:1", "deterministic:2", "empirical:", "empirical:0,0", "empirical:1,-1", "pareto:NaN"} {
		if law, err := ParseLaw(s); !errors.Is(err, ErrInput) {
			t.Errorf("%q: %v, %v", s, law, err)
		}
	}
}

func allChanges(f Field, buf int) (out []Change) {
	r := f.Changes()
	b := make([]Change, buf)
	for n := r.Read(b); n > 0; n = r.Read(b) {
		out = append(out, b[:n]...)
	}
	return out
}

func allRequests(f Field, buf int) (out []Request) {
	r := f.Requests()
	b := make([]Request, buf)
	for n := r.Read(b); n > 0; n = r.Read(b) {
		out = append(out, b[:n]...)
	}
	return out
}

// Histories are in order, within the horizon and the bounds, real by the rule,
// of the asked intensity, and the same however they are read.
func TestHistories(t *testing.T) {
	t.Parallel()
	for _, name := range laws {
		for _, spread := range []string{"", "lognormal:1", "pareto:1.5"} {
			t.Run(name+" "+spread, func(t *testing.T) {
				t.Parallel()
				law, _ := ParseLaw(name)
				s := Spec{PageCount: 2000, Length: 1e5, Changed: 20, Requested: 10, ChangeLaw: law, RequestLaw: law, Seed: 3}
				if spread != "" {
					s.ChangeSpread, _ = ParseLaw(spread)
					s.RequestSpread = s.ChangeSpread
				}
				f, err := New(s)
				if err != nil {
					t.Fatal(err)
				}
				checkHistory(t, f)
			})
		}
	}
}

func checkHistory(t *testing.T, f *Synthetic) {
	t.Helper()
	cs, qs := allChanges(f, 4096), allRequests(f, 4096)
	if !slices.Equal(cs, allChanges(f, 7)) || !slices.Equal(qs, allRequests(f, 7)) {
		t.Error("the size of the buffer changes the history")
	}
	for name, v := range map[string][2]float64{"changes": {float64(len(cs)), total(f.changes())}, "requests": {float64(len(qs)), total(f.requests())}} {
		want := v[1] * f.Horizon()
		if math.Abs(v[0]-want) > 12*math.Sqrt(want) { // heavy tails spread more than a Poisson count
			t.Errorf("%.0f %s, want %.0f", v[0], name, want)
		}
	}
	kind := slices.Repeat([]Kind{Same}, f.Pages())
	size := slices.Clone(f.Sizes())
	last := 0.
	for i, c := range cs {
		ok := c.Time >= last && c.Time < f.Horizon() && c.Real == Real(kind[c.Page], c.Kind) && c.Size >= MinSize && c.Size <= MaxSize
		switch was := size[c.Page]; c.Kind {
		case Shrunk:
			ok = ok && (c.Size < was || was == MinSize)
		case Grown:
			ok = ok && (c.Size > was || was == MaxSize)
		default:
			ok = ok && c.Size == was
		}
		if !ok {
			t.Fatalf("change %d is %+v after %v of %d bytes at %g", i, c, kind[c.Page], size[c.Page], last)
		}
		last, kind[c.Page], size[c.Page] = c.Time, c.Kind, c.Size
	}
	if !slices.IsSortedFunc(qs, func(a, b Request) int { return int(math.Copysign(1, a.Time-b.Time)) }) {
		t.Error("requests out of order")
	}
}

func total(vs []float64) (s float64) {
	for _, v := range vs {
		s += v
	}
	return s
}

// Kinds come in their shares, real changes in theirs, and pages in proportion
// to their rates.
func TestShares(t *testing.T) {
	t.Parallel()
	spread, _ := ParseLaw("lognormal:1")
	f, err := New(Spec{PageCount: 500, Length: 1e6, Changed: 1000, ChangeSpread: spread, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	cs := allChanges(f, 1000)
	var kind [kinds + 1]float64
	page := make([]float64, f.Pages())
	gone := 0.
	for _, c := range cs {
		kind[c.Kind]++
		page[c.Page]++
		if c.Real {
			gone++
		}
	}
	n := float64(len(cs))
	for k, p := range Classic() {
		if d := math.Abs(kind[k+1]/n - p); d > 5*math.Sqrt(p/n) {
			t.Errorf("%v: share %.4f, want %.4f", Kind(k+1), kind[k+1]/n, p)
		}
	}
	if got, want := gone/n, Classic().RealShare(); math.Abs(got-want) > 5*math.Sqrt(.25/n) || math.Abs(want-.850472) > 1e-9 {
		t.Errorf("real share %.4f, want %.6f", got, want)
	}
	var chi2 float64
	for i, c := range page {
		want := f.changes()[i] * f.Horizon()
		chi2 += (c - want) * (c - want) / want
	}
	if chi2 > 500+6*math.Sqrt(1000) {
		t.Errorf("chi-square %.0f of %d pages", chi2, f.Pages())
	}
}

// The probability of no real change agrees with histories, and its mean over a
// cycle with numeric integration.
func TestFreshAfter(t *testing.T) {
	t.Parallel()
	f, err := New(Spec{PageCount: 20_000, Length: 1e5, Changed: 20, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	const from, x = 5e4, 4000
	stale := map[uint32]bool{}
	for _, c := range allChanges(f, 4096) {
		if c.Real && c.Time >= from && c.Time < from+x {
			stale[c.Page] = true
		}
	}
	lambda := 20 / 1e5
	got, want := 1-float64(len(stale))/20_000, Classic().FreshAfter(lambda, x)
	if math.Abs(got-want) > 5*math.Sqrt(.25/20_000) {
		t.Errorf("fresh %.4f, want %.4f", got, want)
	}
	sum := 0.
	for i := range 10_000 {
		sum += Classic().FreshAfter(lambda, x*(float64(i)+.5)/10_000)
	}
	if cycle := Classic().Cycle(lambda, x); math.Abs(cycle-sum/10_000) > 1e-7 {
		t.Errorf("mean %.7f, integral %.7f", cycle, sum/10_000)
	}
}

func TestStreamsAreNamed(t *testing.T) {
	t.Parallel()
	base := Spec{PageCount: 10, Length: 1000, Changed: 5, Requested: 5, Seed: 1}
	other := []Spec{base, base, base}
	other[0].Seed, other[1].Number, other[2].Replication = 2, 1, 1
	a, _ := New(base)
	for i, s := range other {
		b, _ := New(s)
		if slices.Equal(allChanges(a, 8), allChanges(b, 8)) {
			t.Errorf("case %d has the same history", i)
		}
	}
}

func TestSpecErrors(t *testing.T) {
	t.Parallel()
	good := Spec{PageCount: 1, Length: 1, Changed: 1}
	tests := []struct {
		want string
		edit func(*Spec)
	}{
		{"0 pages", func(s *Spec) { s.PageCount = 0 }},
		{"time", func(s *Spec) { s.Length = math.NaN() }},
		{"time", func(s *Spec) { s.Length = 0 }},
		{"changes", func(s *Spec) { s.Changed = -1 }},
		{"requests", func(s *Spec) { s.Requested = math.Inf(1) }},
		{"sum to", func(s *Spec) { s.Kinds = KindShares{1, 1} }},
		{"probability", func(s *Spec) { s.Kinds = KindShares{-1, 2} }},
		{"sizes", func(s *Spec) { s.Least, s.Most = 2, 1 }},
	}
	for _, tt := range tests {
		s := good
		tt.edit(&s)
		if _, err := New(s); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.want, err)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

func BenchmarkChanges(b *testing.B) {
	for _, c := range []struct{ name, law, spread string }{{"exponential", "exponential", ""}, {"spread", "exponential", "lognormal:1"}, {"pareto", "pareto:2", ""}} {
		b.Run(c.name, func(b *testing.B) {
			law, _ := ParseLaw(c.law)
			s := Spec{PageCount: 200_000, Length: 1e10, Changed: 1e9, ChangeLaw: law}
			if c.spread != "" {
				s.ChangeSpread, _ = ParseLaw(c.spread)
			}
			f, err := New(s)
			if err != nil {
				b.Fatal(err)
			}
			r := f.Changes()
			buf := make([]Change, 1024)
			b.ResetTimer()
			for n := 0; n < b.N; n += 1024 {
				r.Read(buf)
			}
		})
	}
}

func BenchmarkRequests(b *testing.B) {
	f, err := New(Spec{PageCount: 200_000, Length: 1e10, Requested: 1e9})
	if err != nil {
		b.Fatal(err)
	}
	r := f.Requests()
	buf := make([]Request, 1024)
	for n := 0; n < b.N; n += 1024 {
		r.Read(buf)
	}
}
