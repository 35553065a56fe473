package fit

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
)

var logSeeds = []string{
	"time\n0\n1\n2.5\n2.5\n9\n",
	"\uFEFFTime,url\r\n2026-01-02T03:04:05Z,a\r\n2026-01-02T03:04:06.5+02:00,b\r\n",
	"# a comment\nid,seconds\n\"a\nb\",3\nc,\n",
	"{\"time\":1,\"bytes\":20}\n\n{\"time\":\"2026-01-02T03:04:05Z\"}\n{\"bytes\":null}\n",
	"url,bytes\n\"open,1\n2\n3\n",
	"time\nNaN\n",
	"time\n1e999\n-0\n0x1p3\n",
	"{\"time\":[1]}\n",
	"time,time\n1,2\n3\n",
	"\n\n",
	" \t{",
	"time,batch\n3,1\n1,7\n2,\n",
	"time,batch\n1,1e3\n",
}

// Whatever the bytes are, reading ends with finite values of known lines or
// with an error that names a line, and cleaning never fails in another way.
func FuzzReadTable(f *testing.F) {
	for _, s := range logSeeds {
		f.Add([]byte(s), .5, .9)
	}
	f.Fuzz(func(t *testing.T, b []byte, batch, quantile float64) {
		const most = 100
		tab, err := ReadTable(strings.NewReader(string(b)), Columns{Value: []string{"time", "seconds", "bytes"}, Count: "batch", Most: most})
		if err != nil {
			if !strings.Contains(err.Error(), "line ") && !strings.Contains(err.Error(), "bytes in one row") {
				t.Fatalf("the error names no line: %v", err)
			}
			return
		}
		if len(tab.Values) != len(tab.Lines) || len(tab.Values) > most || !slices.Contains(tab.Head, tab.Column) {
			t.Fatalf("%+v", tab)
		}
		for i, v := range tab.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) || tab.Lines[i] < 1 || (i > 0 && tab.Lines[i] <= tab.Lines[i-1]) {
				t.Fatalf("%+v", tab)
			}
		}
		g, err := tab.Gaps(Cleaning{Batch: batch, PauseQuantile: quantile, Sort: true})
		if err != nil {
			return
		}
		total := 0
		for _, k := range g.All {
			total += k
		}
		if total != g.Epochs {
			t.Fatalf("%d epochs in batches, %d read", total, g.Epochs)
		}
	})
}

// Any figures give a valid law of these moments or an error.
func FuzzMoments(f *testing.F) {
	f.Add(1., 2., 6.)
	f.Add(49207.0356, 2.0527e11, 2.5773e18)
	f.Add(1., 1.5, 3.)
	f.Add(1e-300, 1e-300, 1e300)
	f.Fuzz(func(t *testing.T, m1, m2, m3 float64) {
		l, err := Moments(m1, m2, m3)
		if err != nil {
			return
		}
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		if got := l.Mean(); math.Abs(got/m1-1) > 1e-6 {
			t.Fatalf("%s: mean %g, want %g", l.Method, got, m1)
		}
	})
}

// Any log gives a valid process or an error.
func FuzzFitArrivals(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 1, 1, 0, 0, 7}, 1.)
	f.Add([]byte{5, 5, 5, 5}, 1e6)
	f.Add([]byte{0, 255, 0, 255, 1, 255}, 1e-9)
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 1}, 1e30)
	f.Fuzz(func(t *testing.T, gaps []byte, unit float64) {
		tab := &Table{Column: "time"}
		at := 0.0
		for i, g := range gaps[:min(len(gaps), 60)] {
			at += math.Expm1(float64(g)/8) * unit // from 0 to 7e13 units
			if math.IsInf(at, 0) || math.IsNaN(at) {
				return
			}
			tab.Values, tab.Lines = append(tab.Values, at), append(tab.Lines, i+2)
		}
		a, err := FitArrivals(context.Background(), tab, ArrivalOptions{Regimes: 2, Order: 8})
		if err != nil {
			return
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		rate, err := a.Rate()
		if err != nil || !(rate > 0) {
			t.Fatalf("rate %g: %v", rate, err)
		}
	})
}

// A row without end must not take all memory.
func TestReadTableLimitsRows(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{"csv": "time,url\n1,\"", "json": `{"time":1,"url":"`, "header": `"time`} {
		in := &endless{start: []byte(start)}
		if _, err := ReadTable(in, Columns{Value: []string{"time"}, Most: 10}); err == nil || !strings.Contains(err.Error(), "bytes in one row") {
			t.Errorf("%s: %v", name, err)
		}
		if in.read > 3*maxEntry {
			t.Errorf("%s: %d bytes were read", name, in.read)
		}
	}
}

// endless gives its start and then the letter a for ever.
type endless struct {
	start []byte
	read  int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	copy(p, e.start)
	e.start = e.start[min(len(p), len(e.start)):]
	e.read += len(p)
	return len(p), nil
}

func TestReadTableErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"", "line 1: the log is empty"},
		{"\ntime\n", "line 1: empty"},
		{"id,when\n1,2\n", `line 1: no column time or seconds; there are "id,when"`},
		{"time\n1\nsoon\n", `line 3: time: "soon" is neither a number nor a time of RFC 3339`},
		{"time\n1\nNaN\n", "line 3: time: NaN is no finite number"},
		{"time,b\n1,2\n3\n", "line 3: another number of fields"},
		{"time\n1\n2\n3\n4\n", "line 5: more than 3 rows"},
		{"time,url\n1,a\"b\n", "line 2: column"},
		{"{\"time\":1}\n{\"time\"}\n", "line 2: no JSON object"},
		{"time,batch\n1,0\n", `line 2: batch: "0" is no whole number from 1`},
		{"{\"a\":1}\n", `line 1: no column time or seconds; there are "a"`},
		{"{\"time\":1}\n[1]\n", "line 2: no JSON object"},
		{"{\"time\":{\"s\":1}}\n", "line 1: time: \"{\\\"s\\\":1}\" is neither"},
	}
	for _, tt := range tests {
		if _, err := ReadTable(strings.NewReader(tt.in), Columns{[]string{"time", "seconds"}, "batch", 3}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.in, err, tt.want)
		}
	}
	for _, in := range []string{"time,batch\n1,2\n4,\n2,3\n", "{\"time\":1,\"batch\":2}\n{\"time\":4}\n{\"time\":2,\"batch\":\"3\"}\n"} {
		tab, err := ReadTable(strings.NewReader(in), Columns{[]string{"time"}, "batch", 9})
		if err != nil || !slices.Equal(tab.Counts, []int{2, 1, 3}) {
			t.Fatalf("%q: %+v %v", in, tab, err)
		}
		g, err := tab.Gaps(Cleaning{Sort: true})
		if err != nil || g.Epochs != 6 || !slices.Equal(g.All, []int{2, 3, 1}) {
			t.Errorf("%q: %+v %v", in, g, err)
		}
	}
	tab, err := ReadTable(strings.NewReader("x,Time\na,2026-01-02T03:04:05.25Z\nb,\n"), Columns{Value: []string{"time"}})
	if err != nil || len(tab.Values) != 1 || tab.Empty != 1 || math.Abs(tab.Values[0]-1767323045.25) > 1e-6 {
		t.Errorf("%+v %v", tab, err)
	}
}
