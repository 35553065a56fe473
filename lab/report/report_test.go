package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// Whatever the values are, the drawing is well-formed XML or an error, never a
// panic: results with holes, zeros on logarithmic axes and single points occur.
func TestFigureDrawsAwkwardValues(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		name string
		f    Figure
		want string // part of the error; empty: it draws
	}{
		{"lines", Figure{Series: []Series{{Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}}}}, ""},
		{"single point", Figure{X: Axis{Log: true}, Y: Axis{Log: true}, Series: []Series{{X: []float64{1}, Y: []float64{3}, Style: Points}}}, ""},
		{"holes", Figure{Series: []Series{{X: []float64{1, 2, 3}, Y: []float64{nan, inf, 4}}}}, ""},
		{"log of zero left out", Figure{Y: Axis{Log: true}, Series: []Series{{X: []float64{1, 2}, Y: []float64{0, 4}, Style: Steps}}}, ""},
		{"bars", Figure{Series: []Series{{X: []float64{0, 1, 2}, Y: []float64{5, 2, 1}, Style: Bars}}}, ""},
		{"intervals", Figure{Series: []Series{{X: []float64{1, 2}, Y: []float64{3, 4}, Low: []float64{2, nan}, High: []float64{4, 5}}}}, ""},
		{"nothing", Figure{Series: []Series{{X: []float64{nan}, Y: []float64{1}}}}, "no point"},
		{"unequal", Figure{Series: []Series{{X: []float64{1, 2}, Y: []float64{1}}}}, "2 x values, 1 y values"},
		{"half an interval", Figure{Series: []Series{{X: []float64{1}, Y: []float64{1}, Low: []float64{0}}}}, "intervals"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			svg, err := tt.f.SVG()
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("error %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			dec := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := dec.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("not well-formed: %v", err)
				}
			}
		})
	}
}

func TestPageEscapesText(t *testing.T) {
	t.Parallel()
	p := Page{
		Title: "F <against> V", Intro: "Čia – по-русски & more",
		Sections: []Section{{
			Title:   "One",
			Tables:  []Table{{Header: []string{"host", "pages"}, Rows: [][]string{{"<b>", "1"}}}},
			Figures: []Figure{{Title: "fig", Series: []Series{{X: []float64{1, 2}, Y: []float64{1, 2}}}}},
		}},
	}
	var buf bytes.Buffer
	if err := p.Write(&buf); err != nil {
		t.Fatal(err)
	}
	out := buf.String()
	for _, want := range []string{"F &lt;against&gt; V", "Čia – по-русски &amp; more", "<td>&lt;b&gt;</td>", "<svg"} {
		if !strings.Contains(out, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(out, "http://www.w3.org/1999/xhtml") || strings.Contains(out, "<link") || strings.Contains(out, "<script") {
		t.Error("the page refers to something outside itself")
	}
	p.Sections[0].Figures[0].Series = nil
	if err := p.Write(io.Discard); err == nil || !strings.Contains(err.Error(), `figure "fig"`) {
		t.Errorf("error %v does not name the figure", err)
	}
}
