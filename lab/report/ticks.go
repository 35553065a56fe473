package report

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// logTicks are those of a logarithmic axis. Powers of ten are enough of many
// decades; few have 2 and 5 as well, and less than one the ticks of a linear
// axis, so that there are always some to read values by.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	decades := math.Log10(high / low)
	switch {
	case !(low > 0) || decades > 3:
		return plot.LogTicks{Prec: -1}.Ticks(low, high)
	case decades < .8:
		return plot.DefaultTicks{}.Ticks(low, high)
	}
	var out []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.; m < 10; m++ {
			t := plot.Tick{Value: m * math.Pow(10, e)}
			if m == 1 || m == 2 || m == 5 {
				t.Label = "x" // ticks writes the number
			}
			if t.Value >= low && t.Value <= high {
				out = append(out, t)
			}
		}
	}
	return out
}

// hollow draws the outline of a mark as thick as curves are: gonum's are hardly
// seen.
type hollow struct{ draw.GlyphDrawer }

// DrawGlyph implements draw.GlyphDrawer.
func (h hollow) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	thick := *c
	thick.Canvas = &stroke{c.Canvas}
	h.GlyphDrawer.DrawGlyph(&thick, s, at)
}

// stroke is a canvas whose lines have one width.
type stroke struct{ vg.Canvas }

// SetLineWidth implements vg.Canvas.
func (s *stroke) SetLineWidth(vg.Length) { s.Canvas.SetLineWidth(vg.Points(1.5)) }
