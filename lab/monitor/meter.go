package monitor

import "math"

// Delay sums up the times from a change to the end of the download that
// learned it, in units; zeros if there was none. Quantiles are from a histogram
// of relative width 1/128.
type Delay struct {
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	Max   float64 `json:"max"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Count int64   `json:"count"`
}

// Result is what a run measured. Means, delays and ages are of the time after
// the warm-up; everything else is of the whole run.
type Result struct {
	FreshnessEnd  float64   `json:"freshness_end"`   // percent
	FreshnessMean float64   `json:"freshness_mean"`  // percent, over time
	StaleEnd      int       `json:"stale_end"`       // resources
	Bytes         int64     `json:"bytes"`           // of downloads that have ended
	Cycles        []float64 `json:"cycles"`          // of each robot
	Delay         Delay     `json:"delay"`           // units
	AgeMean       float64   `json:"age_mean"`        // units, over resources and time; a fresh one has age 0
	InProgress    int       `json:"in_progress"`     // downloads at the end
	MaxInProgress int       `json:"max_in_progress"` // at any time
	Downloads     int64     `json:"downloads"`       // those of resources in error included
	Probes        int64     `json:"probes"`          // or alerts
	Dropped       int64     `json:"dropped"`         // alerts lost to a full queue
	Real          int64     `json:"real_changes"`    // = Detected + Overwritten + StaleEnd
	Detected      int64     `json:"detected"`
	Overwritten   int64     `json:"overwritten"` // came to a resource that was stale already
	Events        int64     `json:"events"`
	Seconds       float64   `json:"seconds"` // that the run took

	Series Series `json:"-"`
}

// Series are samples at multiples of SampleEvery and VolumeEvery, from 0 on: of
// the state before the events of that moment.
type Series struct {
	Stale  []int32 `json:"stale"`
	Volume []int64 `json:"volume"` // bytes since the start
}

// meter integrates and counts.
type meter struct {
	pages   int
	horizon float64
	warmup  float64
	next    float64 // when look wants to be called

	stale int
	area  float64 // integral of stale pages over time, so far as they were learned
	ages  float64 // ... of their ages

	bytes                                          int64
	in, most                                       int
	downloads, probes, detected, real, overwritten int64
	delays                                         histogram
	series                                         Series
}

func (m *meter) startMeter(pages int, horizon, warmup float64) {
	m.pages, m.horizon, m.warmup = pages, horizon, warmup
	m.delays.min = math.Inf(1)
	m.next = m.takeSamples(0)
}

// addStaleSpan adds the time from since to t, in which a page was stale, to the
// integrals; what lies before the end of the warm-up is left out.
func (m *meter) addStaleSpan(since, t float64) {
	stale := t - since
	m.area += stale
	m.ages += stale * stale / 2
	if since < m.warmup {
		before := min(t, m.warmup) - since
		m.area -= before
		m.ages -= before * before / 2
	}
}

// countFreshened counts a page that is stale no more.
func (m *meter) countFreshened(since, t float64) {
	m.addStaleSpan(since, t)
	m.stale--
	m.detected++
}

func (m *meter) recordDelay(t, d float64) {
	if t >= m.warmup {
		m.delays.addObservation(d)
	}
}

func (m *meter) beginDownload() {
	m.downloads++
	m.in++
	m.most = max(m.most, m.in)
}

func (m *meter) endDownload(size int64) {
	m.in--
	m.bytes += size
}

// takeSamples takes the samples due up to t and returns when the next one is. The
// present state holds since before the oldest of them.
func (m *meter) takeSamples(t float64) float64 {
	for {
		sample := float64(len(m.series.Stale)) * SampleEvery
		volume := float64(len(m.series.Volume)) * VolumeEvery
		at := min(sample, volume, m.horizon)
		if at > t || at >= m.horizon {
			return at
		}
		if at == sample {
			m.series.Stale = append(m.series.Stale, int32(m.stale))
		}
		if at == volume {
			m.series.Volume = append(m.series.Volume, m.bytes)
		}
	}
}

// takeLastSamples takes the last samples.
func (m *meter) takeLastSamples(t float64) {
	m.takeSamples(t)
	if t == float64(len(m.series.Stale))*SampleEvery {
		m.series.Stale = append(m.series.Stale, int32(m.stale))
	}
	if t == float64(len(m.series.Volume))*VolumeEvery {
		m.series.Volume = append(m.series.Volume, m.bytes)
	}
}

func (s *Sim) simulationResult() *Result {
	m := &s.meter
	n, t := float64(m.pages), m.horizon-m.warmup
	r := &Result{
		FreshnessEnd:  100 * (n - float64(m.stale)) / n,
		FreshnessMean: 100 * (1 - m.area/(n*t)),
		StaleEnd:      m.stale, Bytes: m.bytes, Cycles: []float64{}, AgeMean: m.ages / (n * t),
		InProgress: m.in, MaxInProgress: m.most, Downloads: m.downloads, Probes: m.probes,
		Real: m.real, Detected: m.detected, Overwritten: m.overwritten, Events: s.events,
		Delay: m.delays.summarizeDelay(), Series: m.series,
	}
	if c, ok := s.strategy.(cycler); ok {
		r.Cycles = c.Cycles()
	}
	if w, ok := s.strategy.(waster); ok {
		r.Dropped = w.Dropped()
	}
	return r
}

// histogram counts positive numbers in cells of equal ratio: the exponent and
// the first 7 bits of the fraction of a float64.
type histogram struct {
	cell     [cells]int64
	n        int64
	sum      float64
	min, max float64
}

const (
	fraction = 7
	lowest   = -10 // exponent of the least number told apart
	highest  = 44
	cells    = (highest - lowest) << fraction
	offset   = (1023 + lowest) << fraction
)

func (h *histogram) addObservation(v float64) {
	i := int(math.Float64bits(v)>>(52-fraction)) - offset
	h.cell[min(max(i, 0), cells-1)]++
	h.n++
	h.sum += v
	h.min, h.max = min(h.min, v), max(h.max, v)
}

// quantileCell returns the middle of the cell in which it lies, within the extremes.
func (h *histogram) quantileCell(q float64) float64 {
	rank := int64(math.Ceil(q * float64(h.n)))
	for i, c := range h.cell {
		if rank -= c; rank <= 0 {
			low := math.Float64frombits(uint64(i+offset) << (52 - fraction))
			high := math.Float64frombits(uint64(i+offset+1) << (52 - fraction))
			return min(max((low+high)/2, h.min), h.max)
		}
	}
	return h.max
}

func (h *histogram) summarizeDelay() Delay {
	if h.n == 0 {
		return Delay{}
	}
	return Delay{h.min, h.sum / float64(h.n), h.max, h.quantileCell(.5), h.quantileCell(.9), h.quantileCell(.99), h.n}
}
