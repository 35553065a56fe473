package sweep

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// estimate is a mean of replications with the half width of its 95 % interval
// by Student's t; NaN for fewer than two.
type estimate struct{ mean, half float64 }

func estimateOf(vs []float64) estimate {
	if len(vs) == 0 {
		return estimate{math.NaN(), math.NaN()}
	}
	mean, sd := stat.MeanStdDev(vs, nil)
	if len(vs) < 2 {
		return estimate{vs[0], math.NaN()}
	}
	n := float64(len(vs))
	return estimate{mean, studentsT(n-1).Quantile(.975) * sd / math.Sqrt(n)}
}

// differsFromZero reports whether 0 lies outside the interval; without replications,
// whether the difference is not 0.
func (e estimate) differsFromZero() bool {
	if math.IsNaN(e.half) {
		return e.mean != 0
	}
	return math.Abs(e.mean) > e.half
}

func studentsT(freedom float64) distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}
}

// link is how two samples go together: a coefficient and the probability of
// one at least as far from 0 if they were independent (t test with n - 2
// degrees of freedom).
type link struct{ r, p float64 }

// pearsonCorrelation returns the linear correlation; NaN where a sample is constant or
// has fewer than three values.
func pearsonCorrelation(x, y []float64) link {
	n := float64(len(x))
	if n < 3 || isConstant(x) || isConstant(y) {
		return link{math.NaN(), math.NaN()}
	}
	r := max(-1, min(1, stat.Correlation(x, y, nil)))
	t := math.Abs(r) * math.Sqrt((n-2)/(1-r*r))
	if math.IsInf(t, 0) || math.IsNaN(t) {
		return link{r, 0}
	}
	return link{r, 2 * studentsT(n-2).Survival(t)}
}

// spearmanCorrelation is pearson of ranks; equal values share the mean of theirs.
func spearmanCorrelation(x, y []float64) link {
	return pearsonCorrelation(averageRanks(x), averageRanks(y))
}

func isConstant(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != x[0] })
}

func averageRanks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return x[order[a]] < x[order[b]] })
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			out[k] = float64(i+j-1)/2 + 1
		}
		i = j
	}
	return out
}

// factors and responses of the correlation table.
var (
	factorNames = []string{"pages", "time", "changes", "requests"}
	responses   = []string{"freshness_mean", "freshness_end", "stale_end", "bytes", "delay_mean", "delay_max", "age_mean", "max_in_progress", "downloads"}
)

func factorValue(r *row, name string) float64 {
	switch name {
	case "pages":
		return float64(r.Pages)
	case "time":
		return r.Time
	case "changes":
		return r.Changes
	}
	return r.Requests
}

func responseValue(r *row, name string) float64 {
	switch name {
	case "freshness_mean":
		return r.FreshnessMean
	case "freshness_end":
		return r.FreshnessEnd
	case "stale_end":
		return float64(r.StaleEnd)
	case "bytes":
		return float64(r.Bytes)
	case "delay_mean":
		return r.DelayMean
	case "delay_max":
		return r.DelayMax
	case "age_mean":
		return r.AgeMean
	case "max_in_progress":
		return float64(r.MaxInProgress)
	}
	return float64(r.Downloads)
}

// correlation is a line of correlation.csv. Coefficients and probabilities that
// do not exist are empty.
type correlation struct {
	Variant     string   `col:"variant"` // "all" for all together
	Factor      string   `col:"factor"`
	Response    string   `col:"response"`
	N           int      `col:"n"`
	Pearson     *float64 `col:"pearson"`
	PearsonP    *float64 `col:"pearson_p"`
	Spearman    *float64 `col:"spearman"`
	SpearmanP   *float64 `col:"spearman_p"`
	Significant string   `col:"significant"` // by Holm's correction for all lines at 5 %: of Pearson's, Spearman's, both or empty
}

// correlationTable makes the table of every factor that varies with every response,
// for all runs and for each variant.
func correlationTable(variants []string, rows []row) []correlation {
	var out []correlation
	for _, v := range append([]string{"all"}, variants...) {
		var some []*row
		for i := range rows {
			if v == "all" || rows[i].Variant == v {
				some = append(some, &rows[i])
			}
		}
		for _, f := range factorNames {
			x := columnValues(some, f, factorValue)
			if len(x) == 0 || isConstant(x) {
				continue
			}
			for _, name := range responses {
				y := columnValues(some, name, responseValue)
				a, b := pearsonCorrelation(x, y), spearmanCorrelation(x, y)
				out = append(out, correlation{Variant: v, Factor: f, Response: name, N: len(x), Pearson: finiteOrNil(a.r), PearsonP: finiteOrNil(a.p), Spearman: finiteOrNil(b.r), SpearmanP: finiteOrNil(b.p)})
			}
		}
	}
	markSignificant(out, "linear", func(c *correlation) *float64 { return c.PearsonP })
	markSignificant(out, "rank", func(c *correlation) *float64 { return c.SpearmanP })
	return out
}

// markSignificant applies Holm's step-down procedure: with m tests, the k-th smallest
// probability must be below .05/(m-k+1), and so all before it.
func markSignificant(cs []correlation, what string, p func(*correlation) *float64) {
	var tests []int
	for i := range cs {
		if p(&cs[i]) != nil {
			tests = append(tests, i)
		}
	}
	sort.SliceStable(tests, func(a, b int) bool { return *p(&cs[tests[a]]) < *p(&cs[tests[b]]) })
	for k, i := range tests {
		if *p(&cs[i]) > .05/float64(len(tests)-k) {
			return
		}
		if cs[i].Significant != "" {
			cs[i].Significant += "+"
		}
		cs[i].Significant += what
	}
}

func columnValues(rows []*row, name string, get func(*row, string) float64) []float64 {
	out := make([]float64, len(rows))
	for i, r := range rows {
		out[i] = get(r, name)
	}
	return out
}

func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
