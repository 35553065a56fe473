package control

import (
	"errors"
	"fmt"
	"math"
)

// tolerance is how far two ways to the same figure may lie apart, relative to
// the larger scale of the two.
const tolerance = 1e-8

// negligible is a figure that has lost digits because it is near the smallest
// float64: the loss of a large queue that is hardly ever full.
const negligible = 1e-280

// comparison collects figures that must agree.
type comparison struct {
	worst float64 // relative distance
	errs  []error
}

func (c *comparison) expectNear(what string, a, b, scale float64) {
	if scale = max(scale, math.Abs(a), math.Abs(b)); scale < negligible {
		return
	}
	d := math.Abs(a-b) / scale
	c.worst = max(c.worst, d)
	if !(d <= tolerance) {
		c.errs = append(c.errs, fmt.Errorf("self-check: %s: %.12g and %.12g", what, a, b))
	}
}

// compareFates compares what must agree among long-run rates: the fates of pages,
// Little's law, the tagged page.
func (c *comparison) compareFates(acc []float64) {
	lambda := acc[accPages]
	c.expectNear("lost, stale and served pages add to the arrivals", acc[accLoss]+acc[accObsolete]+acc[accSuccess], lambda, 0)
	c.expectNear("Little's law", acc[accServedTime]+acc[accStaleTime], acc[accLength], 0)
	c.expectNear("served pages by the tagged page", acc[accServed], acc[accSuccess], lambda)
}

// balanceError returns the greatest relative distance among what must agree.
func balanceError(acc []float64) (float64, error) {
	var c comparison
	c.expectNear("probabilities add to", acc[accTime], 1, 1)
	c.compareFates(acc)
	return c.worst, errors.Join(c.errs...)
}

// checkAccruals compares also the accruals by first passages (acc) and by the
// stationary law (direct).
func checkAccruals(acc, direct []float64) (float64, error) {
	var c comparison
	c.expectNear("probabilities add to", direct[accTime], 1, 1)
	c.compareFates(acc)
	for k := range acc {
		c.expectNear(fmt.Sprintf("accrual %d by first passages and by the law", k), acc[k], direct[k], 0)
	}
	return c.worst, errors.Join(c.errs...)
}
