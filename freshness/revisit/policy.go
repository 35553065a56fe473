package revisit

import "math"

// Policy gives an item's visit rate at a price per visit. The price is what
// makes the rates of all items sum to the budget.
type Policy struct {
	share  func(it *Item, price float64) float64
	random bool // visits are at random times, else at fixed intervals
	flat   bool // rates do not depend on what a visit costs
	even   bool // nor on how often items change
}

// Rate is the item's visit rate at a price: the gain of its objective that a
// further visit must bring.
func (p Policy) Rate(it Item, price float64) float64 { return p.visitRate(&it, price) }

// Flat reports whether rates of change do not count.
func (p Policy) Flat() bool { return p.flat && p.even }

// visitRate is the item's visit rate at a price per unit of cost.
func (p Policy) visitRate(it *Item, price float64) float64 {
	if p.flat {
		return p.share(it, price)
	}
	return p.share(it, price*it.costOrOne())
}

// rateWithSurcharge is the item's visit rate where a visit costs the price per
// unit of cost and a surcharge besides.
func (p Policy) rateWithSurcharge(it *Item, price, surcharge float64) float64 {
	if p.flat {
		return p.share(it, price+surcharge)
	}
	return p.share(it, price*it.costOrOne()+surcharge)
}

// uniformRate visits every item equally often.
func uniformRate(it *Item, price float64) float64 { return boundedBySignals(it, 1/price) }

// proportionalRate visits in proportion to the change rate.
func proportionalRate(it *Item, price float64) float64 { return boundedBySignals(it, it.Rate/price) }

// boundedBySignals keeps visits on signals at the rate of the signals.
func boundedBySignals(it *Item, rate float64) float64 {
	if it.Signals {
		return min(rate, it.Rate)
	}
	return rate
}

// signalledRate is the rate of a signalled item where freshness is the objective:
// each visit on a signal gains mu/d, up to one a signal.
func signalledRate(it *Item, price float64) float64 {
	if it.Importance/it.Rate > price {
		return it.Rate
	}
	return 0
}

// fixedOptimal solves mu dF/df = price: 1 - e^{-x}(1 + x) = price d/mu, x = d/f.
func fixedOptimal(it *Item, price float64) float64 {
	if it.Rate == 0 {
		return 0
	}
	if it.Signals {
		return signalledRate(it, price)
	}
	if it.Shape > 0 && !math.IsInf(it.Shape, 0) {
		if price >= mostUncertain(it.Importance, it.Rate, it.Shape) {
			return 0
		}
		return 1 / waitUncertain(it.Importance, it.Rate, it.Shape, price)
	}
	y := price * it.Rate / it.Importance
	if y >= 1 {
		return 0 // not even the first visit is worth its price
	}
	return it.Rate / solveWait(y)
}

// ageOptimal solves mu dA/df = -price; with I = 1/f and x = dI the gain of a
// visit is (x^2/2 + x e^{-x} - (1 - e^{-x}))/d^2.
func ageOptimal(it *Item, price float64) float64 {
	if it.Rate == 0 {
		return 0
	}
	if it.Signals { // mean age (1-p)/(p d) falls by 1/(rate^2) a visit
		return min(it.Rate, math.Sqrt(it.Importance/price))
	}
	if it.Importance == 0 {
		return 0
	}
	y := price * it.Rate * it.Rate / it.Importance
	return it.Rate / invertRising(func(x float64) float64 {
		if x < 1e-3 {
			return x * x * x / 3 * (1 - 3*x/8) // the terms cancel: series
		}
		return x*x/2 + x*math.Exp(-x) + math.Expm1(-x)
	}, y)
}

// randomOptimal is rho = max(0, sqrt(mu d/price) - d).
func randomOptimal(it *Item, price float64) float64 {
	if it.Rate == 0 {
		return 0
	}
	if it.Signals {
		return signalledRate(it, price)
	}
	return max(0, math.Sqrt(it.Importance*it.Rate/price)-it.Rate)
}

// noStarvation maximises sum mu ln(rho/(rho+d)), and mu ln p for signalled
// items: rho = (-d + sqrt(d^2 + 4 mu d/price))/2, p = mu/(price d).
func noStarvation(it *Item, price float64) float64 {
	if it.Rate == 0 {
		return 0
	}
	if it.Signals {
		return min(it.Rate, it.Importance/price)
	}
	c := 4 * it.Importance / (price * it.Rate)
	// (-1 + sqrt(1+c))/2 without cancellation for small c
	return it.Rate * c / (2 * (1 + math.Sqrt(1+c)))
}

// invertRising solves f(x) = y for a rising f with f(0) = 0, by bisection of ln x.
func invertRising(f func(float64) float64, y float64) float64 {
	low, high := -700.0, 700.0
	for range 100 {
		mid := (low + high) / 2
		if f(math.Exp(mid)) < y {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}
