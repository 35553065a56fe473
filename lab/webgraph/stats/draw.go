package stats

import (
	"fmt"
	"math"
	"strings"
)

// drawBowTie draws the bow-tie as SVG: wings and knot with areas in proportion to
// their shares, the rest as discs below.
func (t *TieShare) drawBowTie() string {
	const (
		width, height = 680., 380.
		area          = 50_000. // of all pages, in square units
		middle        = 150.
	)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" role="img" font-family="system-ui, sans-serif" font-size="14">`, width, height, width)
	// A wing is a trapezium whose short side is a quarter of the long one, 1.25 s
	// by s; the knot a disc.
	radius := math.Sqrt(t.SCC * area / math.Pi)
	cx := width / 2
	wing := func(share float64, side float64, fill, name string) {
		s := math.Sqrt(share * area / (1.25 * .625))
		near := cx + side*(radius+2)
		far := near + side*1.25*s
		fmt.Fprintf(&b, `<path d="M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ" fill="%s"/>`, near, middle-s/8, far, middle-s/2, far, middle+s/2, near, middle+s/8, fill)
		writeLabel(&b, cx+side*240, 30, name, share)
	}
	wing(t.In, -1, "#56b4e9", "IN")
	wing(t.Out, 1, "#e69f00", "OUT")
	fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="#0072b2"/>`, cx, middle, radius)
	writeLabel(&b, cx, 30, "SCC", t.SCC)
	for i, d := range []struct {
		name  string
		share float64
		fill  string
	}{{"tendrils", t.Tendrils, "#009e73"}, {"tubes", t.Tubes, "#cc79a7"}, {"disconnected", t.Disconnected, "#8a8a8a"}} {
		x := cx + float64(i-1)*220
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s" fill-opacity=".8"/>`, x, 310., min(math.Sqrt(d.share*area/math.Pi), 70), d.fill)
		writeLabel(&b, x, 372, d.name, d.share)
	}
	b.WriteString(`</svg>`)
	return b.String()
}

func writeLabel(b *strings.Builder, x, y float64, name string, share float64) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s %.3g %%</text>`, x, y, name, 100*share)
}
