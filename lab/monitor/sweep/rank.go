package sweep

import (
	"slices"
	"strings"
)

// place is a line of ranking.csv: how a variant does on a field.
//
// A variant dominates another if it is fresher for no more volume, or as fresh
// for less. Front 1 holds those that nothing dominates, front 2 those that only
// front 1 dominates, and so on. Two are tied if neither freshness nor volume
// tells them apart: equal without replications, else by the 95 % intervals of
// their paired differences.
type place struct {
	Field         int      `col:"field"`
	Variant       string   `col:"variant"`
	Replications  int      `col:"replications"`
	Freshness     float64  `col:"freshness_mean"`
	FreshnessHalf *float64 `col:"freshness_half"` // of the 95 % interval
	Bytes         float64  `col:"bytes"`
	BytesHalf     *float64 `col:"bytes_half"`
	FreshnessRank int      `col:"freshness_rank"` // equal ones share the best rank
	VolumeRank    int      `col:"volume_rank"`
	Front         int      `col:"front"`
	DominatedBy   string   `col:"dominated_by"`
	Ties          string   `col:"ties"`
}

// paired is a line of paired.csv: a variant against the baseline on the same
// histories.
type paired struct {
	Field         int     `col:"field"`
	Variant       string  `col:"variant"`
	Baseline      string  `col:"baseline"`
	Replications  int     `col:"replications"`
	Freshness     float64 `col:"freshness_difference"` // percent
	FreshnessHalf float64 `col:"freshness_half"`
	Bytes         float64 `col:"bytes_difference"`
	BytesHalf     float64 `col:"bytes_half"`
	Verdict       string  `col:"verdict"`
}

// watched holds the replications of a variant on a field.
type watched struct {
	variant          string
	freshness, bytes []float64
	replications     []int
}

// groupByVariant sorts the rows of a field by variant, in the order of the plan.
func groupByVariant(variants []string, rows []row) []watched {
	var out []watched
	for _, v := range variants {
		w := watched{variant: v}
		for i := range rows {
			if rows[i].Variant == v {
				w.freshness = append(w.freshness, rows[i].FreshnessMean)
				w.bytes = append(w.bytes, float64(rows[i].Bytes))
				w.replications = append(w.replications, rows[i].Replication)
			}
		}
		if len(w.freshness) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// pairedDifference returns the estimates of a - b over the replications that both have.
func (a *watched) pairedDifference(b *watched) (freshness, bytes estimate, n int) {
	var f, v []float64
	for i, r := range a.replications {
		if j := slices.Index(b.replications, r); j >= 0 {
			f, v = append(f, a.freshness[i]-b.freshness[j]), append(v, a.bytes[i]-b.bytes[j])
		}
	}
	return estimateOf(f), estimateOf(v), len(f)
}

// isTied reports whether neither criterion tells a from b.
func (a *watched) isTied(b *watched) bool {
	f, v, n := a.pairedDifference(b)
	return n > 0 && !f.differsFromZero() && !v.differsFromZero()
}

// dominatesPlace compares means.
func (p *place) dominatesPlace(q *place) bool {
	return p.Freshness >= q.Freshness && p.Bytes <= q.Bytes && (p.Freshness > q.Freshness || p.Bytes < q.Bytes)
}

// rankVariants places the variants of a field.
func rankVariants(number int, ws []watched) []place {
	out := make([]place, len(ws))
	for i, w := range ws {
		f, v := estimateOf(w.freshness), estimateOf(w.bytes)
		out[i] = place{
			Field: number, Variant: w.variant, Replications: len(w.freshness),
			Freshness: f.mean, FreshnessHalf: finiteOrNil(f.half), Bytes: v.mean, BytesHalf: finiteOrNil(v.half), FreshnessRank: 1, VolumeRank: 1,
		}
	}
	for i := range out {
		var over, ties []string
		for j := range out {
			if out[j].Freshness > out[i].Freshness {
				out[i].FreshnessRank++
			}
			if out[j].Bytes < out[i].Bytes {
				out[i].VolumeRank++
			}
			switch {
			case i == j:
			case ws[i].isTied(&ws[j]):
				ties = append(ties, out[j].Variant)
			case out[j].dominatesPlace(&out[i]):
				over = append(over, out[j].Variant)
			}
		}
		out[i].DominatedBy, out[i].Ties = strings.Join(over, " "), strings.Join(ties, " ")
	}
	assignFronts(out, ws)
	return out
}

// assignFronts peels off what nothing left dominates, ties apart. Dominance has no
// cycles, so each turn finds some.
func assignFronts(ps []place, ws []watched) {
	for front, left := 1, len(ps); left > 0; front++ {
		var peel []int
		for i := range ps {
			if ps[i].Front != 0 {
				continue
			}
			free := true
			for j := range ps {
				if ps[j].Front == 0 && ps[j].dominatesPlace(&ps[i]) && !ws[i].isTied(&ws[j]) {
					free = false
				}
			}
			if free {
				peel = append(peel, i)
			}
		}
		for _, i := range peel {
			ps[i].Front = front
		}
		left -= len(peel)
	}
}

// compareToBaseline sets every variant of a field against the baseline. Fields with fewer
// than two replications have no intervals and no lines.
func compareToBaseline(number int, baseline string, ws []watched) []paired {
	at := slices.IndexFunc(ws, func(w watched) bool { return w.variant == baseline })
	if at < 0 {
		return nil
	}
	var out []paired
	for i := range ws {
		f, v, n := ws[i].pairedDifference(&ws[at])
		if i == at || n < 2 {
			continue
		}
		out = append(out, paired{number, ws[i].variant, baseline, n, f.mean, f.half, v.mean, v.half, verdictText(f, v)})
	}
	return out
}

func verdictText(f, v estimate) string {
	say := func(e estimate, more, less, same string) string {
		switch {
		case !e.differsFromZero():
			return same
		case e.mean > 0:
			return more
		}
		return less
	}
	return say(f, "fresher", "staler", "as fresh") + ", " + say(v, "more volume", "less volume", "same volume")
}
