package monitor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/field"
)

// oracle is the model of the dissertation written a second time, from its text
// and as plainly as can be: lists that are searched from end to end, integrals
// that are summed page by page at every event. It shares with the simulator the
// histories and the stream of durations, so that both must agree in everything.
type oracle struct {
	pages   []opage
	now     float64
	horizon float64
	warmup  float64
	under   []job // way, in the order in which they were begun

	rand  *rand.ChaCha8
	draws []uint32

	robots  []orobot
	variant string // plain, conditional or sensor

	area, ages, bytes                   float64
	running, most, probes, downloads    int
	delays                              []float64
	real, detected, overwritten, events int
	stale                               []int // every 5,000 units
	volume                              []float64
}

type opage struct {
	size  uint32
	kind  field.Kind
	stale bool
	first float64 // of the changes that are not known
}

type orobot struct{ from, to, at, visits int }

// job is a probe, an alert, a download or a pause that ends.
type job struct {
	ends  float64
	what  string
	page  int
	robot int
	size  uint32
	tells bool    // sensor: it brings the change of ...
	first float64 // ... this moment
}

func newOracle(f field.Field, variant string, robots int, seed uint64, warmup float64) *oracle {
	o := &oracle{horizon: f.Horizon(), warmup: warmup, variant: variant, rand: rng.Source(seed, "durations", 0, 0)}
	for _, size := range f.Sizes() {
		o.pages = append(o.pages, opage{size: size, kind: field.Same})
	}
	for i := range robots {
		n := len(o.pages)
		o.robots = append(o.robots, orobot{from: i * n / robots, to: (i + 1) * n / robots, at: i * n / robots})
	}
	return o
}

// dice returns a uniform integer from 1 to n: the upper half of a word of the
// stream, then its lower half.
func (o *oracle) dice(n uint64) float64 {
	if len(o.draws) == 0 {
		w := o.rand.Uint64()
		o.draws = []uint32{uint32(w >> 32), uint32(w)}
	}
	d := o.draws[0]
	o.draws = o.draws[1:]
	return float64(1 + uint64(d)*n>>32)
}

// run goes from moment to moment: changes first, then requests, then what ends.
func (o *oracle) run(changes []field.Change, requests []field.Request) {
	prev := make([]field.Kind, len(o.pages))
	for i := range prev {
		prev[i] = field.Same
	}
	for i := range o.robots {
		o.visit(i)
	}
	for {
		t, what, which := o.horizon, "end", 0
		for i := len(o.under) - 1; i >= 0; i-- {
			if o.under[i].ends <= t && o.under[i].ends < o.horizon {
				t, what, which = o.under[i].ends, "job", i
			}
		}
		if o.variant == "sensor" && len(requests) > 0 && requests[0].Time <= t && requests[0].Time < o.horizon {
			t, what = requests[0].Time, "request"
		}
		if len(changes) > 0 && changes[0].Time <= t && changes[0].Time < o.horizon {
			t, what = changes[0].Time, "change"
		}
		o.sample(t)
		o.integrate(t)
		o.now = t
		if what == "end" {
			return
		}
		o.events++
		switch what {
		case "change":
			o.change(changes[0], &prev[changes[0].Page])
			changes = changes[1:]
		case "request":
			if p := int(requests[0].Page); o.pages[p].stale {
				o.probes++
				o.begin(job{what: "alert", page: p}, o.dice(3))
			}
			requests = requests[1:]
		case "job":
			j := o.under[which]
			o.under = append(o.under[:which], o.under[which+1:]...)
			o.ended(j)
		}
	}
}

func (o *oracle) begin(j job, takes float64) {
	j.ends = o.now + takes
	o.under = append(o.under, j)
}

// integrate adds what lies between now and t, after the warm-up.
func (o *oracle) integrate(t float64) {
	a := max(o.now, o.warmup)
	if t <= a {
		return
	}
	for _, p := range o.pages {
		if p.stale {
			o.area += t - a
			o.ages += ((t-p.first)*(t-p.first) - (a-p.first)*(a-p.first)) / 2
		}
	}
}

// sample notes what held before the events of multiples of the periods up to t.
func (o *oracle) sample(t float64) {
	for float64(len(o.stale))*5000 <= t {
		n := 0
		for _, p := range o.pages {
			if p.stale {
				n++
			}
		}
		o.stale = append(o.stale, n)
	}
	for float64(len(o.volume))*10000 <= t {
		o.volume = append(o.volume, o.bytes)
	}
}

// change applies an event: real unless the kind is that of the event before and
// one of 1, 2, 3, 6, or 6 comes after 4 or 5.
func (o *oracle) change(c field.Change, prev *field.Kind) {
	p, k, was := &o.pages[c.Page], c.Kind, *prev
	p.kind, p.size, *prev = k, c.Size, k
	if k == was && (k == 1 || k == 2 || k == 3 || k == 6) {
		return
	}
	if k == 6 && (was == 4 || was == 5) {
		return
	}
	o.real++
	if p.stale {
		o.overwritten++
		return
	}
	p.stale, p.first = true, o.now
}

// visit sends a robot to the next resource that takes time; if a whole share
// takes none, it waits a unit.
func (o *oracle) visit(i int) {
	r := &o.robots[i]
	for n := 0; n < r.to-r.from; n++ {
		p := r.at
		if r.at++; r.at == r.to {
			r.at = r.from
		}
		if o.variant == "conditional" {
			o.probes++
			o.begin(job{what: "probe", page: p, robot: i}, o.dice(3))
			return
		}
		if o.download(p, i) {
			return
		}
		r.visits++
	}
	o.begin(job{what: "pause", robot: i}, 1)
}

// download fetches a page for a robot and tells whether that takes time.
func (o *oracle) download(p, robot int) bool {
	o.downloads++
	if o.pages[p].kind <= 3 {
		o.events++
		o.learn(p)
		return false
	}
	if o.running++; o.running > o.most {
		o.most = o.running
	}
	o.begin(job{what: "download", page: p, robot: robot, size: o.pages[p].size}, o.dice(40))
	return true
}

func (o *oracle) learn(p int) {
	if page := &o.pages[p]; page.stale {
		page.stale = false
		o.detected++
		o.delay(page.first)
	}
}

func (o *oracle) delay(first float64) {
	if o.now >= o.warmup {
		o.delays = append(o.delays, o.now-first)
	}
}

func (o *oracle) ended(j job) {
	if j.what == "download" {
		o.running--
		o.bytes += float64(j.size)
	}
	if o.variant == "sensor" {
		o.alerted(j)
		return
	}
	switch j.what {
	case "probe":
		if o.pages[j.page].stale && o.download(j.page, j.robot) {
			return
		}
		o.robots[j.robot].visits++
	case "download":
		o.learn(j.page)
		o.robots[j.robot].visits++
	}
	o.visit(j.robot)
}

// alerted starts the download of an alert, from whose start the page is known,
// or ends it.
func (o *oracle) alerted(j job) {
	if j.what == "download" {
		if j.tells {
			o.delay(j.first)
		}
		return
	}
	p := &o.pages[j.page]
	tells := p.stale
	if p.stale {
		p.stale = false
		o.detected++
	}
	o.downloads++
	if p.kind <= 3 {
		o.events++
		if tells {
			o.delay(p.first)
		}
		return
	}
	if o.running++; o.running > o.most {
		o.most = o.running
	}
	o.begin(job{what: "download", page: j.page, size: p.size, tells: tells, first: p.first}, o.dice(40))
}

// all reads a history to its end, in pieces of an odd size.
func all[E any](read func([]E) int) (out []E) {
	buf := make([]E, 7)
	for n := read(buf); n > 0; n = read(buf) {
		out = append(out, buf[:n]...)
	}
	return out
}

// differ returns what a result and the oracle do not agree in.
func (o *oracle) differ(r *Result) (out []string) {
	check := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
			out = append(out, fmt.Sprintf("%s %v, not %v", name, got, want))
		}
	}
	n, t, stale := float64(len(o.pages)), o.horizon-o.warmup, 0
	for _, p := range o.pages {
		if p.stale {
			stale++
		}
	}
	check("freshness_end", r.FreshnessEnd, 100*(n-float64(stale))/n)
	check("freshness_mean", r.FreshnessMean, 100-100*o.area/n/t)
	check("stale_end", float64(r.StaleEnd), float64(stale))
	check("bytes", float64(r.Bytes), o.bytes)
	check("age_mean", r.AgeMean, o.ages/n/t)
	check("in_progress", float64(r.InProgress), float64(o.running))
	check("max_in_progress", float64(r.MaxInProgress), float64(o.most))
	check("downloads", float64(r.Downloads), float64(o.downloads))
	check("probes", float64(r.Probes), float64(o.probes))
	check("real", float64(r.Real), float64(o.real))
	check("detected", float64(r.Detected), float64(o.detected))
	check("overwritten", float64(r.Overwritten), float64(o.overwritten))
	check("events", float64(r.Events), float64(o.events))
	check("delays", float64(r.Delay.Count), float64(len(o.delays)))
	least, most, sum := math.Inf(1), 0., 0.
	for _, d := range o.delays {
		least, most, sum = min(least, d), max(most, d), sum+d
	}
	if len(o.delays) > 0 {
		check("least delay", r.Delay.Min, least)
		check("mean delay", r.Delay.Mean, sum/float64(len(o.delays)))
		check("greatest delay", r.Delay.Max, most)
	}
	check("robots", float64(len(r.Cycles)), float64(len(o.robots)))
	for i, c := range r.Cycles {
		check("cycles", c, float64(o.robots[i].visits)/float64(o.robots[i].to-o.robots[i].from))
	}
	check("samples", float64(len(r.Series.Stale)), float64(len(o.stale)))
	check("samples of volume", float64(len(r.Series.Volume)), float64(len(o.volume)))
	for i := range min(len(o.stale), len(r.Series.Stale)) {
		check("sample", float64(r.Series.Stale[i]), float64(o.stale[i]))
	}
	for i := range min(len(o.volume), len(r.Series.Volume)) {
		check("sample of volume", float64(r.Series.Volume[i]), o.volume[i])
	}
	return out
}

// The simulator agrees with the model written a second time on hundreds of
// random fields: of few pages (all of them in error now and then), of hardly any
// and of very many changes, with integer times where everything comes at once.
func TestAgreesWithOracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	waited, midway, twice := 0, 0, 0
	for i := range 500 {
		spec := field.Spec{
			PageCount: 1 + r.IntN(20), Length: 20 + r.Float64()*r.Float64()*15_000, Changed: math.Exp(6*r.Float64() - 2), Requested: math.Exp(8*r.Float64() - 2), Seed: uint64(i),
		}
		if i%3 == 0 {
			spec.Kinds = field.KindShares{.3, .3, .3, .04, .03, .03}
		}
		if i%5 == 0 {
			spec.PageCount, spec.Least, spec.Most = 1+r.IntN(3), 100, 102
		}
		if i%7 == 0 {
			spec.Length = 5_000 * float64(1+r.IntN(3))
		}
		var f field.Field = mustField(t, spec)
		changes, requests := all(f.Changes().Read), all(f.Requests().Read)
		if i%4 == 0 { // on whole units, some at one moment
			for k := range changes {
				changes[k].Time = math.Floor(changes[k].Time)
			}
			for k := range requests {
				requests[k].Time = math.Floor(requests[k].Time)
			}
			f = &scripted{sizes: f.Sizes(), horizon: f.Horizon(), changes: changes, requests: requests}
		}
		warmup := 0.
		if i%2 == 0 {
			warmup = r.Float64() * spec.Length
		}
		for _, v := range []struct {
			text, name string
			robots     int
		}{{"plain:1", "plain", 1}, {"conditional:1", "conditional", 1}, {"plain:", "plain", 1 + r.IntN(spec.PageCount)}, {"conditional:", "conditional", 1 + r.IntN(spec.PageCount)}, {"sensor", "sensor", 0}} {
			text := v.text
			if text == v.name+":" {
				text += fmt.Sprint(v.robots)
			}
			o := newOracle(f, v.name, v.robots, spec.Seed, warmup)
			o.run(changes, requests)
			if d := o.differ(mustRun(t, text, Config{Field: f, Seed: spec.Seed, Warmup: warmup})); d != nil {
				t.Fatalf("field %d %+v, %s, warm-up %g: %q", i, spec, text, warmup, d)
			}
			waited += len(o.delays)
			if v.name == "sensor" {
				midway += o.running
				twice += o.downloads - o.detected
			}
		}
	}
	t.Logf("%d delays agree; %d downloads of alerts that another one had dealt with", waited, twice)
	if waited < 50_000 || midway < 10 || twice < 500 {
		t.Errorf("too little happened: %d delays, %d under way at the end, %d alerts twice", waited, midway, twice)
	}
}
