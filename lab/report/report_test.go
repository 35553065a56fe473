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

func TestShort(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", .1 + .2: "0.3", 99.5: "99.5", 1000: "1000", 1.25e6: "1.25e6", 1e10: "1e10", 3e-7: "3e-7", -2e5: "-2e5"} {
		if s := shortNumber(v); s != want {
			t.Errorf("%g is written %s, not %s", v, s, want)
		}
	}
}

// A map has a cell and a number for each value that there is, coloured from low
// to high, and says what does not fit.
func TestMap(t *testing.T) {
	t.Parallel()
	m := Map{Across: "pages <b>", Down: "changes", X: []string{"1", "2"}, Y: []string{"10", "20"}, Values: [][]float64{{1, 2}, {math.NaN(), 4}}}
	svg, err := m.SVG()
	if err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(strings.NewReader(svg))
	var fills, texts []string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			for _, a := range e.Attr {
				if e.Name.Local == "rect" && a.Name.Local == "fill" {
					fills = append(fills, a.Value)
				}
			}
		case xml.CharData:
			texts = append(texts, string(e))
		}
	}
	if len(fills) != 3 || fills[0] != "#440154" || fills[2] != "#fde725" {
		t.Errorf("colours %q", fills)
	}
	if got := strings.Join(texts, "|"); got != "pages <b>|changes|1|2|10|1|2|20|4" {
		t.Errorf("texts %q", got)
	}
	m.Log, m.Low, m.High = true, 1, 4
	if s := m.shareBetween(2, 1, 4); math.Abs(s-.5) > 1e-12 {
		t.Errorf("2 lies at %g between 1 and 4 by the logarithm", s)
	}
	m.Values = m.Values[:1]
	if _, err := m.SVG(); err == nil {
		t.Error("a row is missing")
	}
}

// Whatever the range of a logarithmic axis, at least two ticks on it have
// numbers, within the range.
func TestLogTicks(t *testing.T) {
	t.Parallel()
	for _, r := range [][2]float64{{1, 20}, {.9, 1.1}, {2.1, 2.9}, {3e7, 2e8}, {1e-3, 1e6}, {4, 30}, {1.1e8, 1.4e8}, {8, 55}} {
		labels := 0
		for _, tick := range (ticks{logTicks{}}).Ticks(r[0], r[1]) {
			if tick.Value < r[0]*.999 || tick.Value > r[1]*1.001 {
				t.Errorf("%v: tick at %g", r, tick.Value)
			}
			if tick.Label != "" {
				labels++
			}
		}
		if labels < 2 || labels > 12 {
			t.Errorf("%v: %d ticks have numbers", r, labels)
		}
	}
}
