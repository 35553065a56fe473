package monitor

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/freshet/freshet/lab/field"
)

func mustField(t testing.TB, s field.Spec) field.Field {
	t.Helper()
	f, err := field.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustRun(t testing.TB, variant string, c Config) *Result {
	t.Helper()
	var err error
	if c.Variant, err = Parse(variant); err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// classic is a small field with the dissertation's laws.
func classic(seed uint64) field.Spec {
	return field.Spec{PageCount: 2000, Length: 400_000, Changed: 8, Requested: 20, Seed: seed}
}

// short is classic in an eighth of the time.
func short(seed uint64) field.Spec {
	return field.Spec{PageCount: 500, Length: 50_000, Changed: 8, Requested: 20, Seed: seed}
}

// every is one text of each registered variant.
func every(t testing.TB) []string {
	t.Helper()
	out := []string{
		"plain:1", "plain:3", "conditional:1", "conditional:5", "sensor", "sensor-queue:2:5", "sensor-queue:40kB/s", "push:3", "push:1:0.5", "deliver",
		"delta:2:0.1", "bundle:2:20", "feed:3700:2:40", "difference:0.05", "batch:3700", "site:13700", "sitemap:3700:2", "mobile:3700:20kB/s", "plan:fixed-optimal:2", "plan:random-optimal:1:ask", "plan:uniform:50kB/s",
		"learn:no-starvation:2", "learn:age-optimal:2:ask", "value:greedy:2", "value:sweep:1:ask", "value:most-changes:1MB/s",
		"plan:sweep:2/s", "plan:fixed-optimal:0.5/s", "learn:uniform:1/s", "value:greedy:3/s", "told:greedy:1/s",
		"plan:greedy:1", "plan:adaptive:1", "told:greedy:1", "told:greedy:2:0.5:1e-4", "told:most-likely-changed:1:0.9",
	}
	have := map[string]bool{}
	for _, v := range out {
		name, _, _ := strings.Cut(v, ":")
		have[name] = true
	}
	for n := range variantMakers() {
		if !have[n] {
			t.Errorf("variant %s has no test", n)
		}
	}
	return out
}

// The freshness of a plain robot agrees with the mean of the probability that
// nothing changed within a cycle: (1-e^-x)/x where every event is a real change
// (Cho, Garcia-Molina 2003), and the sum over kinds of such terms else. The
// interval is of 30 replications.
func TestPlainRobotAgreesWithClosedForm(t *testing.T) {
	t.Parallel()
	const (
		replications = 30
		pages        = 1000
		length       = 400_000
		changed      = 16
	)
	for name, kinds := range map[string]field.KindShares{"every event real": {0, 0, 0, .5, .5, 0}, "classic": field.Classic()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, squares, want float64
			for i := range replications {
				spec := field.Spec{PageCount: pages, Length: length, Changed: changed, Kinds: kinds, Seed: 5, Replication: i}
				r := mustRun(t, "plain:1", Config{Field: mustField(t, spec), Warmup: length / 4, Replication: i})
				spec.Length, spec.Changed = length/4, changed/4 // no resource is in error at the start: cycles are longer
				start := mustRun(t, "plain:1", Config{Field: mustField(t, spec), Replication: i})
				got += r.FreshnessMean / 100
				squares += r.FreshnessMean * r.FreshnessMean / 1e4
				cycle := length * 3 / 4 / (r.Cycles[0] - start.Cycles[0])
				want += kinds.Cycle(changed/float64(length), cycle)
				if kinds[3] == .5 {
					x := changed / float64(length) * cycle
					if d := kinds.Cycle(changed/float64(length), cycle) + math.Expm1(-x)/x; math.Abs(d) > 1e-12 {
						t.Fatalf("the two forms differ by %g", d)
					}
				}
			}
			got, want, squares = got/replications, want/replications, squares/replications
			half := 2.756 * math.Sqrt((squares-got*got)/(replications-1)) // t, 99 %
			t.Logf("freshness %.5f +- %.5f, closed form %.5f", got, half, want)
			if math.Abs(got-want) > half || half > .003 {
				t.Errorf("freshness %.5f +- %.5f, closed form %.5f", got, half, want)
			}
		})
	}
}

// A resource that a sensor watches is in turn fresh for 1/D, stale until the next
// visitor for 1/q, and until the alert has arrived for d: where every event is a
// real change, F = (1/D) / (1/D + 1/q + d). Alerts are rare enough for no two of
// a resource to be under way.
func TestSensorAgreesWithClosedForm(t *testing.T) {
	t.Parallel()
	const (
		replications = 20
		length       = 400_000
		changed      = 40
		requested    = 100
	)
	d := length / float64(changed)
	want := d / (d + length/float64(requested) + (1+ProbeTime)/2.)
	var got, squares float64
	for i := range replications {
		spec := field.Spec{PageCount: 500, Length: length, Changed: changed, Requested: requested, Kinds: field.KindShares{0, 0, 0, .5, .5, 0}, Seed: 9, Replication: i}
		f := mustRun(t, "sensor", Config{Field: mustField(t, spec), Warmup: length / 4, Replication: i}).FreshnessMean / 100
		got, squares = got+f/replications, squares+f*f/replications
	}
	half := 2.861 * math.Sqrt((squares-got*got)/(replications-1)) // t, 99 %
	t.Logf("freshness %.5f +- %.5f, closed form %.5f", got, half, want)
	if math.Abs(got-want) > half || half > .003 {
		t.Errorf("freshness %.5f +- %.5f, closed form %.5f", got, half, want)
	}
}

// ledger checks what a run tells by its single events.
type ledger struct {
	bytes   int64
	fetched int64
	waited  float64
	learned int64
	last    float64
	order   bool
	real    int64
	stale   map[uint32]float64 // pages, by the first change not known
	area    float64            // integral of their number
}

func (l *ledger) at(t float64) {
	if t < l.last {
		l.order = false
	}
	l.area += float64(len(l.stale)) * (t - l.last)
	l.last = t
}

func (l *ledger) Changed(t float64, c field.Change) {
	l.at(t)
	if !c.Real {
		return
	}
	l.real++
	if l.stale == nil {
		l.stale = map[uint32]float64{}
	}
	if _, ok := l.stale[c.Page]; !ok {
		l.stale[c.Page] = t
	}
}

func (l *ledger) Learned(t float64, p uint32, since float64) {
	l.at(t)
	l.learned++
	l.waited += t - since
	delete(l.stale, p)
}

func (l *ledger) Fetched(t float64, _, _ uint32, bytes int64) {
	l.at(t)
	l.fetched++
	l.bytes += bytes
}

// Conservation, volume and Little's law hold for every variant: the integral of
// stale resources, taken event by event, is the sum of the times for which they
// were stale, which is how the simulator has it.
func TestBooksBalance(t *testing.T) {
	t.Parallel()
	for _, v := range every(t) {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			f := mustField(t, classic(2))
			l := &ledger{order: true}
			r := mustRun(t, v, Config{Field: f, Log: l})
			if r.Real != r.Detected+r.Overwritten+int64(r.StaleEnd) || r.Real != l.real {
				t.Errorf("%d real changes (%d told), %d detected + %d overwritten + %d stale", r.Real, l.real, r.Detected, r.Overwritten, r.StaleEnd)
			}
			if lists := strings.Contains(v, ":3700:"); r.Bytes < l.bytes || (!lists && r.Bytes != l.bytes) || r.Delay.Count != l.learned || !l.order || r.Detected == 0 {
				t.Errorf("bytes %d of %d told, learned %d of %d, in order: %v", r.Bytes, l.bytes, r.Delay.Count, l.learned, l.order)
			}
			if math.Abs(l.waited/float64(l.learned)-r.Delay.Mean) > 1e-6*r.Delay.Mean {
				t.Errorf("mean delay %g of %g told", r.Delay.Mean, l.waited/float64(l.learned))
			}
			if r.Delay.Min > r.Delay.P50 || r.Delay.P50 > r.Delay.P90 || r.Delay.P90 > r.Delay.P99 || r.Delay.P99 > r.Delay.Max {
				t.Errorf("quantiles out of order: %+v", r.Delay)
			}
			little(t, f, l, r)
		})
	}
}

// little checks the integral of stale resources. For a strategy that knows from
// the start of a download, what the ledger is told comes later by the download, at
// most DownloadTime for each detection, and a change in mid-download escapes it:
// there the model written a second time is the better check.
func little(t *testing.T, f field.Field, l *ledger, r *Result) {
	t.Helper()
	l.at(f.Horizon())
	whole := float64(f.Pages()) * f.Horizon()
	area := (1 - r.FreshnessMean/100) * whole
	slack, escaped := 1e-9*whole, 1e-9*whole
	if len(r.Cycles) == 0 {
		slack, escaped = DownloadTime*float64(r.Detected), .01*whole
	}
	if area > l.area+escaped || area < l.area-slack {
		t.Errorf("sum of stale times %.6g, integral of stale resources %.6g", area, l.area)
	}
	sum := 0.
	for _, n := range r.Series.Stale {
		sum += float64(n)
	}
	if mean := sum / float64(len(r.Series.Stale)); math.Abs(mean-area/f.Horizon()) > .1*mean+3 {
		t.Errorf("samples have mean %.1f stale, the integral %.1f", mean, area/f.Horizon())
	}
	if n, v := len(r.Series.Stale), len(r.Series.Volume); n != int(f.Horizon()/SampleEvery)+1 || v != int(f.Horizon()/VolumeEvery)+1 || r.Series.Volume[v-1] != r.Bytes || int(r.Series.Stale[n-1]) != r.StaleEnd {
		t.Errorf("%d samples of stale, %d of volume; the last are %d and %d, not %d and %d", n, v, r.Series.Stale[n-1], r.Series.Volume[v-1], r.StaleEnd, r.Bytes)
	}
}

// The mean age is the integral over single stale times of their squares' half.
func TestAgeByAnotherWay(t *testing.T) {
	t.Parallel()
	f := mustField(t, classic(4))
	l := &spans{}
	r := mustRun(t, "conditional:3", Config{Field: f, Log: l})
	got := r.AgeMean * float64(f.Pages()) * f.Horizon()
	if got < l.halves || got > l.halves*1.1 { // beside them are those stale at the end
		t.Errorf("integral of ages %.6g, half squares of delays %.6g", got, l.halves)
	}
}

type spans struct{ halves float64 }

func (*spans) Changed(float64, field.Change)          {}
func (*spans) Fetched(float64, uint32, uint32, int64) {}
func (s *spans) Learned(t float64, _ uint32, since float64) {
	s.halves += (t - since) * (t - since) / 2
}

// Means of a run with warm-up are those of the rest: (whole - part) / rest.
func TestWarmup(t *testing.T) {
	t.Parallel()
	long := classic(6)
	short := long
	short.Length, short.Changed, short.Requested = long.Length/4, long.Changed/4, long.Requested/4
	whole := mustRun(t, "plain:3", Config{Field: mustField(t, long)})
	part := mustRun(t, "plain:3", Config{Field: mustField(t, short)})
	rest := mustRun(t, "plain:3", Config{Field: mustField(t, long), Warmup: short.Length})
	want := (whole.FreshnessMean*4 - part.FreshnessMean) / 3
	if math.Abs(rest.FreshnessMean-want) > 1e-9 || rest.Delay.Count+part.Delay.Count != whole.Delay.Count {
		t.Errorf("freshness %.9f, want %.9f; delays %d + %d of %d", rest.FreshnessMean, want, rest.Delay.Count, part.Delay.Count, whole.Delay.Count)
	}
	if want := (whole.AgeMean*4 - part.AgeMean) / 3; math.Abs(rest.AgeMean-want) > 1e-6*want {
		t.Errorf("age %.6f, want %.6f", rest.AgeMean, want)
	}
}

func TestReproducible(t *testing.T) {
	t.Parallel()
	for _, v := range every(t) {
		a := mustRun(t, v, Config{Field: mustField(t, short(7)), Seed: 7})
		b := mustRun(t, v, Config{Field: mustField(t, short(7)), Seed: 7})
		c := mustRun(t, v, Config{Field: mustField(t, short(8)), Seed: 8})
		a.Seconds, b.Seconds = 0, 0
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two runs differ: %+v %+v", v, a, b)
		}
		if a.Bytes == c.Bytes {
			t.Errorf("%s: another seed gives the same bytes", v)
		}
	}
}

// What the sensor knows is from the start of a download: a change that comes in
// the middle stays unknown. A robot's visit makes it known.
func TestChangeInMidDownload(t *testing.T) {
	t.Parallel()
	f := &scripted{
		sizes: []uint32{100}, horizon: 1000,
		changes: []field.Change{
			{Time: 10, Size: 100, Kind: field.Grown, Real: true},
			{Time: 23.5, Size: 200, Kind: field.Grown, Real: true}, // alert at 21..23, download to 22..63
		},
		requests: []field.Request{{Time: 20}},
	}
	midway := 0
	for seed := range uint64(40) {
		r := mustRun(t, "sensor", Config{Field: f, Seed: seed})
		if r.Detected != 1 || r.StaleEnd != 1 || r.Bytes != 100 || r.Downloads != 1 || r.Probes != 1 {
			t.Fatalf("seed %d: %+v", seed, r)
		}
		if 10+r.Delay.Max > 23.5 {
			midway++
		}
	}
	if midway < 20 {
		t.Errorf("the change came in mid-download %d times of 40", midway)
	}
	// Two visitors before the alert is there: two alerts, two downloads, one detection.
	f.changes, f.requests = f.changes[:1], []field.Request{{Time: 20}, {Time: 20.5}}
	if r := mustRun(t, "sensor", Config{Field: f}); r.Detected != 1 || r.Downloads != 2 || r.Bytes != 200 || r.Delay.Count != 1 || r.StaleEnd != 0 {
		t.Errorf("%+v", r)
	}
	// Errors take no time and no bytes, and are learned.
	f.changes[0].Kind = field.Missing
	if r := mustRun(t, "plain:1", Config{Field: f}); r.Detected != 1 || r.StaleEnd != 0 || r.Delay.Max > DownloadTime {
		t.Errorf("%+v", r)
	}
	if r := mustRun(t, "sensor", Config{Field: f}); r.Bytes != 0 || r.Detected != 1 || r.MaxInProgress != 0 || r.Delay.Max < 11 || r.Delay.Max > 13 {
		t.Errorf("%+v", r)
	}
}

// scripted is a field of given events.
type scripted struct {
	sizes    []uint32
	horizon  float64
	changes  []field.Change
	requests []field.Request
}

func (s *scripted) Pages() int              { return len(s.sizes) }
func (s *scripted) Horizon() float64        { return s.horizon }
func (s *scripted) Rates() []float64        { return make([]float64, len(s.sizes)) }
func (s *scripted) RequestRates() []float64 { return make([]float64, len(s.sizes)) }
func (s *scripted) Sizes() []uint32         { return s.sizes }

func (s *scripted) Changes() field.ChangeReader   { return &script[field.Change]{s.changes} }
func (s *scripted) Requests() field.RequestReader { return &script[field.Request]{s.requests} }

type script[E any] struct{ rest []E }

func (s *script[E]) Read(buf []E) int {
	n := copy(buf, s.rest)
	s.rest = s.rest[n:]
	return n
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	f := mustField(t, field.Spec{PageCount: 3, Length: 100, Changed: 1})
	v, _ := Parse("plain:4")
	if _, err := Run(context.Background(), Config{Field: f, Variant: v}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "4 robots for 3 pages") {
		t.Error(err)
	}
	v, _ = Parse("plain:3")
	if _, err := Run(context.Background(), Config{Field: f, Variant: v, Warmup: 100}); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, Config{Field: f, Variant: v}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, bad := range []string{"", "plain", "plain:x", "plain:0", "plain:1:2", "sensor:1", "robot"} {
		if _, err := Parse(bad); !errors.Is(err, ErrInput) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	for _, v := range []string{"plain:1", "plain:5", "conditional:5", "sensor"} {
		b.Run(v, func(b *testing.B) {
			f := mustField(b, field.Spec{PageCount: 200_000, Length: 2e6, Changed: 5, Requested: 10, Seed: 1})
			var events int64
			for b.Loop() {
				events += mustRun(b, v, Config{Field: f}).Events
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}
