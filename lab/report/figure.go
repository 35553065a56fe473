package report

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Style says how a series is drawn.
type Style int

// Styles of a series.
const (
	Lines  Style = iota // straight lines between the points
	Points              // marks only
	Steps               // constant until the next point
	Bars                // a bar from zero a point
)

// Axis is one axis of a figure. On a logarithmic axis points that are not
// positive are left out.
type Axis struct {
	Label string
	Log   bool
}

// Series is one curve: X and Y of equal length; Low and High, if given, are
// the ends of a vertical interval at each point. Points that are NaN or
// infinite are left out.
type Series struct {
	Name      string
	X, Y      []float64
	Low, High []float64
	Style     Style
	Faint     bool // thin and grey: joins what others mark, and takes no colour from them
}

// Figure is one plot, or a finished drawing.
type Figure struct {
	Title   string
	Caption string
	X, Y    Axis
	Series  []Series
	Drawing string // an <svg> element that stands in place of axes and series
	Small   bool   // many stand side by side
}

const width, height = 18 * vg.Centimeter, 10 * vg.Centimeter

// palette is Okabe and Ito's, which colour-blind readers can tell apart.
var palette = [...]color.RGBA{
	{0, 114, 178, 255},
	{213, 94, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{230, 159, 0, 255},
	{86, 180, 233, 255},
	{60, 60, 60, 255},
	{148, 103, 50, 255},
}

// SVG draws the figure as an <svg> element without an XML header; a legend is a
// second one, which stands beside or below as there is room.
func (f *Figure) SVG() (string, error) {
	if f.Drawing != "" {
		return f.Drawing, nil
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = f.X.Label, f.Y.Label
	p.Legend.Top = true
	p.Legend.Padding = vg.Millimeter
	grid := plotter.NewGrid()
	grid.Horizontal.Color = color.Gray{225}
	grid.Vertical.Color = color.Gray{225}
	p.Add(grid)
	drawn, i := 0, 0
	for _, s := range f.Series {
		n, err := s.addSeries(p, i, f.X.Log, f.Y.Log)
		if !s.Faint {
			i++
		}
		if err != nil {
			return "", fmt.Errorf("series %q: %w", s.Name, err)
		}
		drawn += n
	}
	if drawn == 0 {
		return "", errors.New("no point to draw")
	}
	logAxis(&p.X, f.X.Log)
	logAxis(&p.Y, f.Y.Log)
	return f.drawFigure(p)
}

// drawFigure draws the plot and its legend.
func (f *Figure) drawFigure(p *plot.Plot) (string, error) {
	names := 0
	for _, s := range f.Series {
		if s.Name != "" {
			names++
		}
	}
	const margin = 4 * vg.Millimeter
	if names < 2 {
		return drawSVG(width, height, func(c draw.Canvas) { p.Draw(draw.Crop(c, 0, -margin, 0, -margin/2)) })
	}
	legend := p.Legend
	p.Legend = plot.NewLegend()
	legend.Left = true // marks first: a reader's font may be wider than ours
	size := legend.Rectangle(draw.New(vgsvg.New(width, height))).Size()
	room := 1.2*size.X + 3*vg.Millimeter
	body, err := drawSVG(max(width-room, width/2), height, func(c draw.Canvas) { p.Draw(draw.Crop(c, 0, -margin, 0, -margin/2)) })
	if err != nil {
		return "", err
	}
	beside, err := drawSVG(room, size.Y+4*vg.Millimeter, func(c draw.Canvas) { legend.Draw(draw.Crop(c, 0, 0, 0, -2*vg.Millimeter)) })
	return body + beside, err
}

// drawSVG returns what is drawn on one as an <svg> element.
func drawSVG(width, height vg.Length, paint func(draw.Canvas)) (string, error) {
	c := vgsvg.New(width, height)
	paint(draw.New(c))
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return "", err
	}
	svg := buf.String()
	if i := strings.Index(svg, "<svg"); i > 0 {
		svg = svg[i:]
	}
	return svg, nil
}

// margin is the part of an axis's range that is added at each end, so that no
// mark stands on the frame; a range that begins at 0 keeps it.
const margin = .04

// logAxis makes a a logarithmic axis, or leaves it a linear one, with margins; one
// whose range is a single value is widened by a decade each way, since a range of
// no width cannot be drawn.
func logAxis(a *plot.Axis, on bool) {
	switch {
	case a.Min < a.Max && on:
		part := math.Pow(a.Max/a.Min, margin)
		a.Min, a.Max = a.Min/part, a.Max*part
	case a.Min < a.Max:
		part := margin * (a.Max - a.Min)
		if a.Min != 0 {
			a.Min -= part
		}
		a.Max += part
	default:
		if on {
			a.Min, a.Max = a.Min/10, a.Max*10
		} else {
			a.Min, a.Max = a.Min-1, a.Max+1
		}
	}
	a.Tick.Marker = ticks{plot.DefaultTicks{}}
	if on {
		a.Scale = plot.LogScale{}
		a.Tick.Marker = ticks{logTicks{}}
	}
}

// ticks writes the numbers of a ticker shortly.
type ticks struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	out := t.Ticker.Ticks(low, high)
	for i := range out {
		if out[i].Label != "" {
			out[i].Label = shortNumber(out[i].Value)
		}
	}
	return out
}

// shortNumber writes a number of a tick: 0.25, 1000, 2.5e6.
func shortNumber(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 8, 64), 64) // 0.30000000000000004
	if a := math.Abs(v); a != 0 && (a >= 1e5 || a < 1e-4) {
		s := strconv.FormatFloat(v, 'e', -1, 64)
		return strings.Replace(strings.Replace(strings.Replace(s, "e+0", "e", 1), "e+", "e", 1), "e-0", "e-", 1)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// addSeries draws the i-th series and returns how many of its points were drawn.
func (s *Series) addSeries(p *plot.Plot, i int, logX, logY bool) (int, error) {
	if len(s.X) != len(s.Y) {
		return 0, fmt.Errorf("%d x values, %d y values", len(s.X), len(s.Y))
	}
	if (s.Low != nil && len(s.Low) != len(s.X)) || (s.High != nil && len(s.High) != len(s.X)) || (s.Low == nil) != (s.High == nil) {
		return 0, fmt.Errorf("intervals: %d low, %d high for %d points", len(s.Low), len(s.High), len(s.X))
	}
	var pts plotter.XYs
	var errs plotter.YErrors
	for k := range s.X {
		x, y := s.X[k], s.Y[k]
		if isUndrawable(x, logX) || isUndrawable(y, logY) {
			continue
		}
		pts = append(pts, plotter.XY{X: x, Y: y})
		if s.Low != nil {
			low, high := s.Low[k], s.High[k]
			if isUndrawable(low, logY) || isUndrawable(high, logY) {
				low, high = y, y
			}
			errs = append(errs, struct{ Low, High float64 }{y - low, high - y})
		}
	}
	if len(pts) == 0 {
		return 0, nil
	}
	col := palette[i%len(palette)]
	if s.Faint {
		col = color.RGBA{170, 176, 184, 255}
	}
	thumb, err := s.addMarks(p, pts, col, i)
	if err != nil {
		return 0, err
	}
	if s.Name != "" {
		p.Legend.Add(s.Name, thumb)
	}
	if errs != nil {
		bars, err := plotter.NewYErrorBars(struct {
			plotter.XYs
			plotter.YErrors
		}{pts, errs})
		if err != nil {
			return 0, err
		}
		bars.Color = col
		p.Add(bars)
	}
	return len(pts), nil
}

// addMarks adds the series' own drawing and returns what stands in the legend.
func (s *Series) addMarks(p *plot.Plot, pts plotter.XYs, col color.RGBA, i int) (plot.Thumbnailer, error) {
	switch s.Style {
	case Points:
		sc, err := plotter.NewScatter(pts)
		if err != nil {
			return nil, err
		}
		shapes := [...]draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, hollow{draw.RingGlyph{}}, hollow{draw.SquareGlyph{}}, hollow{draw.TriangleGlyph{}}}
		sc.GlyphStyle = draw.GlyphStyle{Color: col, Radius: vg.Points(3), Shape: shapes[i%len(shapes)]}
		p.Add(sc)
		return sc, nil
	case Bars:
		h := &plotter.Histogram{FillColor: col, LineStyle: draw.LineStyle{Width: vg.Points(.5), Color: color.White}, Bins: barBins(pts)}
		p.Add(h)
		return h, nil
	default:
		l, err := plotter.NewLine(pts)
		if err != nil {
			return nil, err
		}
		l.LineStyle = draw.LineStyle{Color: col, Width: vg.Points(1.5)}
		if s.Faint {
			l.LineStyle.Width = vg.Points(1)
		} else if i >= len(palette) {
			l.LineStyle.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		if s.Style == Steps {
			l.StepStyle = plotter.PostStep
		}
		p.Add(l)
		return l, nil
	}
}

// barBins makes bars around the points, as wide as the smallest gap between two.
func barBins(pts plotter.XYs) []plotter.HistogramBin {
	gap := 1.0
	for i := 1; i < len(pts); i++ {
		if d := math.Abs(pts[i].X - pts[i-1].X); d > 0 && (i == 1 || d < gap) {
			gap = d
		}
	}
	out := make([]plotter.HistogramBin, len(pts))
	for i, p := range pts {
		out[i] = plotter.HistogramBin{Min: p.X - gap/2, Max: p.X + gap/2, Weight: p.Y}
	}
	return out
}

func isUndrawable(v float64, log bool) bool {
	return math.IsNaN(v) || math.IsInf(v, 0) || (log && v <= 0)
}
