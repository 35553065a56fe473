package report

import (
	"fmt"
	"html"
	"image/color"
	"math"
	"strings"
)

// Map is a response surface over two factors: a cell for each pair of their
// values, coloured and with its number.
type Map struct {
	Across, Down string // factors
	X, Y         []string
	Values       [][]float64 // by row, of Y, then column; NaN leaves a cell empty
	Low, High    float64     // values at the ends of the colours, for maps that are to be compared; both 0: those of the values
	Log          bool        // colours by the logarithm
	Format       string      // of a number; "%.3g" if empty
}

// Sizes of a map in the units of its view box, about pixels of a small one.
const (
	mapCell   = 68
	mapRow    = 34
	mapTop    = 44
	mapLetter = 7.4 // of the labels beside rows
)

// ramp is viridis in nine steps: even to the eye, also in grey and to
// colour-blind readers.
var ramp = [...]color.RGBA{
	{68, 1, 84, 255},
	{71, 44, 122, 255},
	{59, 81, 139, 255},
	{44, 113, 142, 255},
	{33, 144, 141, 255},
	{39, 173, 129, 255},
	{92, 200, 99, 255},
	{170, 220, 50, 255},
	{253, 231, 37, 255},
}

// shareColor returns the one of a share from 0 to 1, and whether ink on it is white.
func shareColor(share float64) (c color.RGBA, white bool) {
	at := max(0, min(1, share)) * float64(len(ramp)-1)
	i := min(int(at), len(ramp)-2)
	part := at - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + part*(float64(b)-float64(a)))) }
	a, b := ramp[i], ramp[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}, share < .6
}

// colorEnds returns the values at the ends of the colours.
func (m *Map) colorEnds() (low, high float64) {
	low, high = m.Low, m.High
	if low == 0 && high == 0 {
		low, high = math.Inf(1), math.Inf(-1)
		for _, row := range m.Values {
			for _, v := range row {
				if !isUndrawable(v, m.Log) {
					low, high = min(low, v), max(high, v)
				}
			}
		}
	}
	return low, high
}

// shareBetween returns where a value lies between the ends.
func (m *Map) shareBetween(v, low, high float64) float64 {
	if m.Log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	if !(high > low) {
		return .5
	}
	return (v - low) / (high - low)
}

// SVG draws the map as an <svg> element.
func (m *Map) SVG() (string, error) {
	if len(m.Values) != len(m.Y) {
		return "", fmt.Errorf("map: %d rows for %d values of %s", len(m.Values), len(m.Y), m.Down)
	}
	low, high := m.colorEnds()
	format := m.Format
	if format == "" {
		format = "%.3g"
	}
	left := 24 + mapLetter*float64(longestName(m.Y)+1)
	width, height := left+float64(mapCell*len(m.X))+4, float64(mapTop+mapRow*len(m.Y)+4)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="system-ui, sans-serif" font-size="13" role="img">`, width, height, width, height)
	fmt.Fprintf(&b, `<text x="%.1f" y="14" text-anchor="middle" fill="#57606a">%s</text>`, left+float64(mapCell*len(m.X))/2, html.EscapeString(m.Across))
	fmt.Fprintf(&b, `<text transform="translate(13 %.1f) rotate(-90)" text-anchor="middle" fill="#57606a">%s</text>`, mapTop+float64(mapRow*len(m.Y))/2, html.EscapeString(m.Down))
	for i, x := range m.X {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, left+mapCell*(float64(i)+.5), mapTop-9, html.EscapeString(x))
	}
	for j, row := range m.Values {
		if len(row) != len(m.X) {
			return "", fmt.Errorf("map: %d cells in row %s for %d values of %s", len(row), m.Y[j], len(m.X), m.Across)
		}
		y := mapTop + mapRow*j
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="end">%s</text>`, left-7, y+mapRow/2+5, html.EscapeString(m.Y[j]))
		for i, v := range row {
			if isUndrawable(v, m.Log) {
				continue
			}
			c, white := shareColor(m.shareBetween(v, low, high))
			ink := "#111"
			if white {
				ink = "#fff"
			}
			x := left + float64(mapCell*i)
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%d" height="%d" rx="3" fill="#%02x%02x%02x"/>`, x+1, y+1, mapCell-2, mapRow-2, c.R, c.G, c.B)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="%s">`+format+`</text>`, x+mapCell/2, y+mapRow/2+5, ink, v)
		}
	}
	b.WriteString("</svg>")
	return b.String(), nil
}

func longestName(names []string) (n int) {
	for _, s := range names {
		n = max(n, len([]rune(s)))
	}
	return n
}
