package monitor

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/freshet/freshet/lab/field"
)

// near tells whether a is b but for a share.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

// Schemes of sending and asking do what sets them apart: differences cost their
// part, a batch brings what changed in a period, the whole site brings all of it,
// many resources a request save requests, and a short feed loses changes.
func TestSchemes(t *testing.T) {
	t.Parallel()
	f := mustField(t, field.Spec{PageCount: 2000, Length: 400_000, Changed: 8, Seed: 1})
	run := func(v string) *Result { return mustRun(t, v, Config{Field: f}) }
	sent, part := run("deliver"), run("difference:0.1")
	if !near(float64(part.Bytes), .1*float64(sent.Bytes), .01) || part.FreshnessMean != 100 {
		t.Errorf("differences of a tenth: %d of %d bytes, %g %% fresh", part.Bytes, sent.Bytes, part.FreshnessMean)
	}
	asks, delta := run("conditional:3"), run("delta:3:0.1")
	if !near(float64(delta.Bytes), .1*float64(asks.Bytes), .01) || delta.FreshnessMean != asks.FreshnessMean {
		t.Errorf("answers of a tenth: %d of %d bytes, %g of %g %%", delta.Bytes, asks.Bytes, delta.FreshnessMean, asks.FreshnessMean)
	}
	// What changed within a period is stale for half of it on average.
	batch := run("batch:2000")
	if d := batch.Delay; !near(d.Mean, 1000, .05) || d.Max > 2000+downloads || batch.Downloads >= sent.Downloads {
		t.Errorf("a batch every 2000 units: %+v, %d downloads", d, batch.Downloads)
	}
	site := run("site:20000")
	if n := int64(19 * f.Pages()); site.Downloads != n || !near(site.Delay.Mean, 10_000, .1) || site.Bytes < batch.Bytes {
		t.Errorf("the site every 20000 units: %d downloads of %d, %+v", site.Downloads, n, site.Delay)
	}
	many, one := run("bundle:3:50"), run("bundle:3:1")
	if many.Cycles[0] < 10*one.Cycles[0] || many.FreshnessMean <= asks.FreshnessMean || !near(one.FreshnessMean, asks.FreshnessMean, .002) {
		t.Errorf("50 a request: cycles %g, %g %% fresh; one a request: %g, %g %%; asking each: %g %%", many.Cycles, many.FreshnessMean, one.Cycles, one.FreshnessMean, asks.FreshnessMean)
	}
	list, roomy, short := run("sitemap:2000:5"), run("feed:2000:5:2000"), run("feed:2000:5:20")
	if !near(roomy.FreshnessMean, list.FreshnessMean, .001) || short.FreshnessMean > roomy.FreshnessMean-20 || roomy.Bytes <= short.Bytes {
		t.Errorf("a list: %g %% fresh, a feed with room: %g %%, a short one: %g %%", list.FreshnessMean, roomy.FreshnessMean, short.FreshnessMean)
	}
}

// downloads is the longest time of one, as the test sees it.
const downloads = 40

// The worked example of the documentation is the code that runs.
func TestDocsShowTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/monitoring-simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	for i, name := range []string{"deliver.go", "variant.go"} {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(blocks) <= i {
			t.Fatalf("the page shows %d pieces of code", len(blocks))
		}
		shown, _, _ := strings.Cut(blocks[i], "```")
		if have := strings.Join(strings.Fields(string(code)), " "); !strings.Contains(have, strings.Join(strings.Fields(shown), " ")) {
			t.Errorf("%s does not have what the page shows:\n%s", name, shown)
		}
	}
}
