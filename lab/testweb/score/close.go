package score

import (
	"math"
	"slices"
)

// closeBook works the sums out.
func (b *book) closeBook() {
	c := &b.card
	c.Seconds = b.last.Sub(b.first).Seconds()
	c.Pages = len(b.pages)
	if c.Exist > 0 {
		c.Coverage = float64(c.Pages) / float64(c.Exist)
	}
	b.measurePoliteness()
	b.measureFreshness()
}

// measurePoliteness measures the gaps between requests to each host.
func (b *book) measurePoliteness() {
	c := &b.card
	c.MinInterval = -1
	var gaps []float64
	for _, h := range b.hosts {
		if h.shown {
			c.Hosts++
		}
		if !h.first.IsZero() && (h.read.IsZero() || h.read.After(h.first)) {
			c.RobotsUnread++
		}
		slices.SortFunc(h.asked, func(x, y span) int {
			switch {
			case x.from < y.from:
				return -1
			case x.from > y.from:
				return 1
			}
			return 0
		})
		end := math.Inf(-1)
		for i, a := range h.asked {
			if a.from < end {
				c.Overlaps++
			}
			end = max(end, a.to)
			if i == 0 {
				continue
			}
			gap := a.from - h.asked[i-1].from
			gaps = append(gaps, gap)
			if gap < h.delay*delayTolerance {
				c.DelayViolations++
			}
		}
	}
	if len(gaps) > 0 {
		slices.Sort(gaps)
		c.MinInterval, c.MedianInterval = gaps[0], gaps[len(gaps)/2]
	}
}

// delayTolerance is the part of a Crawl-delay that counts as kept: the times are
// those of arrival, and the network adds and takes.
const delayTolerance = .95

// measureFreshness measures, from copies whose spans do not overlap, how much of the web the robot had in its current version.
func (b *book) measureFreshness() {
	c := &b.card
	for _, p := range b.pages {
		b.closeHolding(p, c.Seconds)
	}
	of := float64(c.Exist)
	if of == 0 {
		of = float64(c.Pages)
	}
	if of == 0 || c.Seconds <= 0 {
		return
	}
	c.Freshness, c.Found = make([]float64, freshnessSteps+1), make([]float64, freshnessSteps+1)
	step := c.Seconds / freshnessSteps
	for _, p := range b.pages {
		for i := int(math.Ceil(b.secondsSince(p.firstAt) / step)); i <= freshnessSteps; i++ {
			c.Found[i] += 1 / of
		}
	}
	for _, s := range b.held {
		c.FreshnessMean += (s.to - s.from) / c.Seconds / of
		for i := int(math.Ceil(s.from / step)); i < freshnessSteps && float64(i)*step < s.to; i++ {
			c.Freshness[i] += 1 / of
		}
		if s.to >= c.Seconds {
			c.FreshnessEnd += 1 / of
		}
	}
	c.Freshness[freshnessSteps] = c.FreshnessEnd
}
