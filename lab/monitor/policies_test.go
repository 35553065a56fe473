package monitor

import (
	"math"
	"testing"

	"github.com/freshet/freshet/freshness/revisit"
	"github.com/freshet/freshet/lab/field"
)

// uneven is a field whose pages change at very different rates.
func uneven(t testing.TB, seed uint64) field.Field {
	t.Helper()
	spread, err := field.ParseLaw("lognormal:1.5")
	if err != nil {
		t.Fatal(err)
	}
	return mustField(t, field.Spec{PageCount: 600, Length: 1_200_000, Changed: 90, Requested: 20, ChangeSpread: spread, Kinds: field.KindShares{0, 0, 0, .5, .5, 0}, Seed: seed})
}

// A policy in the simulator keeps the freshness that its plan promises for the
// visits that it made: two ways to the same number.
func TestPoliciesKeepWhatTheyPromise(t *testing.T) {
	t.Parallel()
	f := uneven(t, 3)
	items := make([]revisit.Item, f.Pages())
	for i, d := range f.Rates() {
		items[i] = revisit.Item{Importance: 1, Rate: d}
	}
	for _, name := range []string{"fixed-optimal", "uniform", "proportional", "age-optimal"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRun(t, "plan:"+name+":1", Config{Field: f, Warmup: 200_000})
			plan, err := revisit.New(revisit.Policies()[name], items, float64(r.Downloads)/f.Horizon())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %.3f %%, promised %.3f %%", name, r.FreshnessMean, 100*plan.Freshness)
			if math.Abs(r.FreshnessMean-100*plan.Freshness) > 1 {
				t.Errorf("freshness %.3f %%, promised %.3f %%", r.FreshnessMean, 100*plan.Freshness)
			}
		})
	}
}

// What theory says of the order of variants holds on uneven fields: the optimum
// beats uniform, uniform beats proportional, the greedy rule comes to the
// optimum, estimated rates come between uniform and known ones, and asking first
// beats all of them for fewer bytes. On one field chance moves each freshness by
// some tenths of a point, so variants are compared pair by pair on several: the
// bound must lie outside the 99 % interval of the mean difference.
func TestOrderOfPolicies(t *testing.T) {
	t.Parallel()
	const replications = 6
	names := []string{"plan:fixed-optimal:1", "learn:fixed-optimal:1", "value:greedy:1", "plan:uniform:1", "plan:proportional:1", "plain:1", "plan:fixed-optimal:1:ask"}
	fresh, bytes := map[string][]float64{}, map[string][]float64{}
	for i := range replications {
		f := uneven(t, 5+uint64(i))
		for _, v := range names {
			r := mustRun(t, v, Config{Field: f, Warmup: 600_000, Replication: i})
			fresh[v], bytes[v] = append(fresh[v], r.FreshnessMean), append(bytes[v], float64(r.Bytes))
		}
	}
	for _, tt := range []struct {
		a, b      string
		low, high float64 // of the freshness of a less that of b, points
	}{
		{"plan:fixed-optimal:1", "plan:uniform:1", 1, 100},
		{"plan:uniform:1", "plan:proportional:1", 1, 100},
		{"value:greedy:1", "plan:fixed-optimal:1", -.5, .5},
		{"plain:1", "plan:uniform:1", -.5, .5},
		{"learn:fixed-optimal:1", "plan:uniform:1", 1, 100},
		{"learn:fixed-optimal:1", "plan:fixed-optimal:1", -100, 0},
		{"plan:fixed-optimal:1:ask", "plan:fixed-optimal:1", 1, 100},
	} {
		low, high := pairedInterval(fresh[tt.a], fresh[tt.b])
		t.Logf("%s - %s: %.2f to %.2f", tt.a, tt.b, low, high)
		if low < tt.low || high > tt.high {
			t.Errorf("%s - %s: %.2f to %.2f points, not within %g to %g", tt.a, tt.b, low, high, tt.low, tt.high)
		}
	}
	if _, high := pairedInterval(bytes["plan:fixed-optimal:1:ask"], bytes["plan:fixed-optimal:1"]); high >= 0 {
		t.Error("asking first does not save bytes")
	}
}

// pairedInterval returns the 99 % interval of the mean of a - b, six pairs of them.
func pairedInterval(a, b []float64) (low, high float64) {
	n, sum, squares := float64(len(a)), 0., 0.
	for i := range a {
		d := a[i] - b[i]
		sum, squares = sum+d, squares+d*d
	}
	mean := sum / n
	half := 4.032 * math.Sqrt(max(0, squares/n-mean*mean)/(n-1)) // t, 5 degrees of freedom
	return mean - half, mean + half
}

// A line of so many bytes a second carries no more, and is used.
func TestLineIsKept(t *testing.T) {
	t.Parallel()
	f := uneven(t, 6)
	for _, v := range []string{"plan:uniform:30kB/s", "value:sweep:30kB/s"} {
		r := mustRun(t, v, Config{Field: f})
		most := 30e3 * f.Horizon() * field.Unit
		if b := float64(r.Bytes); b > most || b < .999*most-field.MaxSize {
			t.Errorf("%s: %.0f bytes of %.0f", v, b, most)
		}
		if r.MaxInProgress != 1 {
			t.Errorf("%s: %d at a time", v, r.MaxInProgress)
		}
	}
}

// The bounded sensor loses alerts when its queue is short, never has more
// downloads than downloaders, and with room for all knows what the sensor knows
// for no more bytes.
func TestSensorQueue(t *testing.T) {
	t.Parallel()
	f := mustField(t, field.Spec{PageCount: 2000, Length: 100_000, Changed: 8, Requested: 40, Seed: 1})
	free, roomy, tight := mustRun(t, "sensor", Config{Field: f}), mustRun(t, "sensor-queue:200", Config{Field: f}), mustRun(t, "sensor-queue:1:3", Config{Field: f})
	if tight.Dropped == 0 || tight.MaxInProgress != 1 || tight.FreshnessMean >= roomy.FreshnessMean {
		t.Errorf("tight: %+v", tight)
	}
	if roomy.Dropped != 0 || roomy.Bytes > free.Bytes || roomy.Probes >= free.Probes || math.Abs(roomy.FreshnessMean-free.FreshnessMean) > .5 {
		t.Errorf("roomy %+v, free %+v", roomy, free)
	}
}

// Told of every change, the index is stale only for notice and download; with
// half of the notices it is much staler; sent the resources, it needs no notice.
func TestPush(t *testing.T) {
	t.Parallel()
	f := mustField(t, field.Spec{PageCount: 2000, Length: 400_000, Changed: 8, Seed: 1})
	all, half, sent := mustRun(t, "push:5", Config{Field: f}), mustRun(t, "push:5:0.5", Config{Field: f}), mustRun(t, "deliver", Config{Field: f})
	if all.FreshnessMean < 99.9 || all.Delay.P50 > 30 || half.FreshnessMean > 85 || sent.FreshnessMean != 100 || sent.Delay.Max > DownloadTime+1e-6 {
		t.Errorf("all %+v\nhalf %+v\nsent %+v", all, half, sent)
	}
	sitemap, mobile := mustRun(t, "sitemap:2000:5", Config{Field: f}), mustRun(t, "mobile:2000:5", Config{Field: f})
	if d := sitemap.Delay; d.Mean < 900 || d.Mean > 1200 || d.Max > 2500 {
		t.Errorf("delays of a list every 2000 units: %+v", d)
	}
	if lists := sitemap.Bytes - mobile.Bytes; lists < 190*2000*sitemapEntry*9/10 {
		t.Errorf("sitemaps cost %d bytes more than digests", lists)
	}
}

// Fields in which everything is in error or nothing changes do not make any
// strategy spin.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	gone := &scripted{sizes: make([]uint32, 2), horizon: 3000, changes: []field.Change{{Time: 1, Kind: field.Missing, Real: true}, {Time: 1, Page: 1, Kind: field.Failed, Real: true}}, requests: []field.Request{{Time: 5, Page: 1}}}
	still := mustField(t, field.Spec{PageCount: 3, Length: 3000, Requested: 2})
	for _, v := range every(t) {
		if v == "plain:3" || v == "conditional:5" {
			continue
		}
		if r := mustRun(t, v, Config{Field: gone}); r.Events > 50_000 {
			t.Errorf("%s: %d events where all is gone", v, r.Events)
		}
		if r := mustRun(t, v, Config{Field: still}); r.FreshnessMean != 100 || r.Detected != 0 {
			t.Errorf("%s: %+v where nothing changes", v, r)
		}
	}
}
