package field

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseEntry(t *testing.T) {
	t.Parallel()
	at := time.Date(2000, 10, 10, 20, 55, 36, 0, time.UTC)
	tests := []struct {
		line string
		want Entry
	}{
		{`127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326`, Entry{Host: "127.0.0.1", User: "frank", Method: "GET", Target: "/apache_pb.gif", Status: 200, Bytes: 2326}},
		{`::1 - - [10/Oct/2000:20:55:36 +0000] "GET /a?b=c d HTTP/1.1" 404 - "http://x/" "Mozilla/5.0 (\"quoted\" \\ agent)"`, Entry{Host: "::1", User: "-", Method: "GET", Target: "/a?b=c d", Status: 404, Bytes: -1, Referrer: "http://x/", Agent: `Mozilla/5.0 ("quoted" \ agent)`}},
		{`h - John Smith [10/Oct/2000:20:55:36 +0000] "\x16\x03\x01" 400 157 "-" "-"`, Entry{Host: "h", User: "John Smith", Status: 400, Bytes: 157, Referrer: "-", Agent: "-"}},
		{`h - - [10/Oct/2000:20:55:36 +0000] "" 408 0 "-" "-" "1.2.3.4" 0.002`, Entry{Host: "h", User: "-", Status: 408, Referrer: "-", Agent: "-"}},
		{`h - - [10/Oct/2000:20:55:36 +0000] "GET /old" 200 5` + "\r\n", Entry{Host: "h", User: "-", Method: "GET", Target: "/old", Status: 200, Bytes: 5}},
	}
	for _, tt := range tests {
		e, err := ParseEntry(tt.line)
		if err != nil || !e.Time.Equal(at) {
			t.Errorf("%s: %v, %v", tt.line, e.Time, err)
		}
		e.Time = time.Time{}
		if e != tt.want {
			t.Errorf("%s\n%+v\nwant %+v", tt.line, e, tt.want)
		}
	}
	for line, want := range map[string]string{
		"":                                       "no host",
		"h":                                      "no identity",
		"h - -":                                  "no user",
		"h - - [10/Oct/2000]":                    "no time",
		`h - - [10/Oct/2000:20:55:36 +0000] GET`: "no request in quotes",
		`h - - [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.0`:          "no request in quotes",
		`h - - [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.0" x 1`:     `status "x"`,
		`h - - [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.0" 200 -5`:  `bytes "-5"`,
		`h - - [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.0" 200 5 -`: "no referrer",
		`h - - [99/Oct/2000:20:55:36 +0000] "GET / HTTP/1.0" 200 5`:   "no time",
	} {
		if e, err := ParseEntry(line); !errors.Is(err, ErrLine) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %s", line, e, err, want)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add(`127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326`)
	f.Add(`::1 - - [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 404 - "http://x/" "a \" \\ b"`)
	f.Add(`h - a [b [10/Oct/2000:20:55:36 +0000] "\x16" 400 0 "" ""`)
	f.Fuzz(func(t *testing.T, line string) {
		e, err := ParseEntry(line)
		if err != nil {
			if !errors.Is(err, ErrLine) {
				t.Fatalf("%v", err)
			}
			return
		}
		if e.Host == "" || e.User == "" || e.Status < 0 || e.Bytes < -1 || (e.Target != "" && e.Method == "") {
			t.Fatalf("%q gives %+v", line, e)
		}
	})
}

// log writes lines of an access log, some seconds after a start.
type entry struct {
	second       int
	path, status string
	bytes        int
	agent        string
}

func logOf(es ...entry) string {
	var b strings.Builder
	for _, e := range es {
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(e.second) * time.Second)
		fmt.Fprintf(&b, "h - - [%s] \"GET %s HTTP/1.1\" %s %d \"-\" \"%s\"\n", at.Format("02/Jan/2006:15:04:05 -0700"), e.path, e.status, e.bytes, e.agent)
	}
	return b.String()
}

// What a log shows of changes lies between the sightings that differ.
func TestHistoryOfLog(t *testing.T) {
	t.Parallel()
	text := logOf(
		entry{0, "/a", "200", 100, "x"},
		entry{10, "/never", "404", 9, "x"}, // was never there
		entry{20, "/a", "200", 100, "x"},
		entry{30, "/a", "304", 0, "x"},
		entry{40, "/a", "200", 150, "SomeBot/1.0"}, // grown in (30, 40), seen by a robot
		entry{45, "/b", "503", 9, "x"},             // in error in (0, 45)
		entry{50, "/a", "404", 9, "x"},
		entry{60, "/a", "404", 9, "x"},
		entry{65, "/a", "301", 9, "x"}, // tells nothing
		entry{70, "/b", "200", 70, "x"},
		entry{80, "/a", "200", 150, "x"}, // back as it was
		entry{90, "/a", "200", 120, "x"},
		entry{99, "/b", "304", 0, "x"},
	)
	s := &Sightings{Seed: 1}
	if lines, bad, err := ReadLog(strings.NewReader(text), s, LogOptions{Name: "log", Robots: []string{"bot"}}); err != nil || lines != 13 || bad != 0 || s.Skipped != 1 {
		t.Fatalf("%d lines, %d bad, %d skipped, %v", lines, bad, s.Skipped, err)
	}
	h, err := s.History()
	if err != nil {
		t.Fatal(err)
	}
	if h.Pages() != 2 || h.Name(0) != "/a" || h.Name(1) != "/b" || !slices.Equal(h.Sizes(), []uint32{100, 70}) || h.Horizon() != 1000 {
		t.Fatalf("%d pages, sizes %v, horizon %g", h.Pages(), h.Sizes(), h.Horizon())
	}
	got := allChanges(h, 3)
	slices.SortStableFunc(got, func(a, b Change) int { return int(a.Page) - int(b.Page) })
	want := []struct {
		page     uint32
		from, to float64
		kind     Kind
		size     uint32
	}{
		{0, 300, 400, Grown, 150},
		{0, 400, 500, Missing, 150},
		{0, 600, 800, Same, 150},
		{0, 800, 900, Shrunk, 120},
		{1, 0, 450, Failed, 70},
		{1, 450, 700, Same, 70},
	}
	if len(got) != len(want) {
		t.Fatalf("changes %+v", got)
	}
	for i, w := range want {
		if g := got[i]; g.Page != w.page || g.Time < w.from || g.Time > w.to || g.Kind != w.kind || g.Size != w.size || !g.Real {
			t.Errorf("change %+v, want %+v", g, w)
		}
	}
	if _, wantReal, requests := h.Count(); wantReal != 6 || requests != 10 {
		t.Errorf("%d real changes, %d requests", wantReal, requests)
	}
}

func TestLogErrors(t *testing.T) {
	t.Parallel()
	late := logOf(entry{50, "/a", "200", 1, ""}, entry{20, "/a", "200", 2, ""})
	if _, _, err := ReadLog(strings.NewReader(late), &Sightings{}, LogOptions{Name: "x.log"}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "x.log:2: ") || !strings.Contains(err.Error(), "out of order") {
		t.Error(err)
	}
	s := &Sightings{Sort: true}
	if _, _, err := ReadLog(strings.NewReader(late), s, LogOptions{}); err != nil {
		t.Error(err)
	}
	if h, err := s.History(); err != nil || h.Horizon() != 310 {
		t.Errorf("%v", err)
	}
	s = &Sightings{Length: 100}
	if _, _, err := ReadLog(strings.NewReader(logOf(entry{0, "/a", "200", 1, ""}, entry{20, "/a", "200", 2, ""})), s, LogOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := s.History(); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "beyond the horizon") {
		t.Error(err)
	}
	junk := logOf(entry{0, "/a", "200", 1, ""}) + "junk\n"
	if _, _, err := ReadLog(strings.NewReader(junk), &Sightings{}, LogOptions{Name: "x.log"}); !errors.Is(err, ErrLine) || !strings.Contains(err.Error(), "x.log:2") {
		t.Error(err)
	}
	if n, bad, err := ReadLog(strings.NewReader(junk), &Sightings{}, LogOptions{Lenient: true}); n != 2 || bad != 1 || err != nil {
		t.Error(n, bad, err)
	}
	if _, err := (&Sightings{}).History(); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
	if _, _, err := ReadLog(strings.NewReader(strings.Repeat("x", 2<<20)), &Sightings{}, LogOptions{Lenient: true}); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
}

// A field reads back as it was written, in both formats.
func TestTablesRoundTrip(t *testing.T) {
	t.Parallel()
	f, err := New(Spec{PageCount: 50, Length: 1e4, Changed: 20, Requested: 200, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	var text, bin bytes.Buffer
	if err := errors.Join(WriteCSV(&text, f), WriteParquet(&bin, f)); err != nil {
		t.Fatal(err)
	}
	a, err := ReadCSV(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadParquet(bytes.NewReader(bin.Bytes()), int64(bin.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]*History{"csv": a, "parquet": b} {
		if h.Horizon() != f.Horizon() || !slices.Equal(h.Sizes(), f.Sizes()) || !slices.Equal(allChanges(h, 100), allChanges(f, 77)) || !slices.Equal(allRequests(h, 100), allRequests(f, 77)) {
			t.Errorf("%s: another field came back", name)
		}
		if got, want := total(h.Rates()), total(f.Rates()); math.Abs(got-want) > .2*want {
			t.Errorf("%s: rates sum to %g, want %g", name, got, want)
		}
	}
	for _, cut := range []int{bin.Len() / 2, bin.Len() - 5, 3} {
		if _, err := ReadParquet(bytes.NewReader(bin.Bytes()[:cut]), int64(cut)); !errors.Is(err, ErrInput) {
			t.Errorf("%d bytes of Parquet: %v", cut, err)
		}
	}
}

func TestReadCSVErrors(t *testing.T) {
	t.Parallel()
	const head = "time,event,page,kind,size,name\n"
	for _, tt := range []struct{ text, want string }{
		{"", "line 1"},
		{"time,event\n", "line 1"},
		{head, `"end" is missing`},
		{head + "0,page,0,0,5,\n", `"end" is missing`},
		{head + "10,end,,,,\n", "line 2: field: no resources"},
		{head + "0,page,1,0,5,\n", "page 1 where page 0"},
		{head + "0,page,0,0,5,\n5,change,0,4,3,\n4,change,0,4,2,\n10,end,,,,\n", "line 4: field: time 4 is before 5"},
		{head + "0,page,0,0,5,\n5,change,0,4,3,\n5,end,,,,\n", "line 4: field: the event at 5 is beyond the horizon 5"},
		{head + "0,page,0,0,5,\n5,change,1,4,3,\n", "resource 1 of 1"},
		{head + "0,page,0,0,5,\n5,change,0,7,3,\n", "kind 7"},
		{head + "0,page,0,0,5,\n5,change,0,0,3,\n", "no kind 0"},
		{head + "0,page,0,0,5,\n5,remove,0,0,3,\n", `no event "remove"`},
		{head + "0,page,0,0,5,\nx,change,0,1,3,\n", `time "x"`},
		{head + "0,page,0,0,5,\nNaN,change,0,1,3,\n", "time NaN"},
		{head + "0,page,zero,0,5,\n", `page "zero"`},
		{head + "0,page,0,0,5,\n9,end,,,,\n9,end,,,,\n", "after the end"},
		{head + "0,page,0,0,5,\n1,request,0,,,\n0,page,1,0,5,\n", "after the first event"},
		{head + "0,page\n", "wrong number of fields"},
	} {
		if h, err := ReadCSV(strings.NewReader(tt.text)); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, %v", tt.text, h, err)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("time,event,page,kind,size,name\n0,page,0,0,5,a\n5,change,0,4,3,\n6,request,0,,,\n9,end,,,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			return
		}
		last := 0.
		for _, c := range allChanges(h, 10) {
			if c.Time < last || c.Time >= h.Horizon() || int(c.Page) >= h.Pages() {
				t.Fatalf("%+v", c)
			}
			last = c.Time
		}
	})
}

// The log of visits of our own robot makes the same history in all its formats.
func TestVisits(t *testing.T) {
	t.Parallel()
	const text = `url,time,changed,status,bytes,seconds
http://x/,2026-03-01T00:00:00Z,true,200,100,0.1
http://x/,2026-03-01T01:00:00Z,false,304,0,0.1
http://x/,2026-03-01T02:00:00Z,true,200,90,0.1
http://x/,2026-03-01T03:00:00Z,true,200,90,0.1
http://x/,2026-03-01T04:00:00Z,false,0,0,0.1
`
	s := &Sightings{}
	if err := ReadVisitsCSV(strings.NewReader(text), s); err != nil {
		t.Fatal(err)
	}
	h, err := s.History()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []Kind
	for _, c := range allChanges(h, 10) {
		kinds = append(kinds, c.Kind)
	}
	if _, _, requests := h.Count(); !slices.Equal(kinds, []Kind{Shrunk, Grown, Failed}) || requests != 0 {
		t.Errorf("kinds %v, %d requests", kinds, requests)
	}
	for text, want := range map[string]string{
		`{"url":"a","time":"2026-03-01T00:00:00Z","changed":true,"status":200,"bytes":1}` + "\n" + `{"url":"a","time":"2026-02-01T00:00:00Z"}`: "line 2",
		`{"url":`: "line 1", `{"time":"2026-03-01T00:00:00Z"}`: "without url",
	} {
		if err := ReadVisits(strings.NewReader(text), &Sightings{}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{"": "line 1", "url,time\n": "no column", "url,time,changed,status,bytes\na,b,c,d,e\n": "line 2"} {
		if err := ReadVisitsCSV(strings.NewReader(text), &Sightings{}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Sizes that count header fields differ by a few bytes from answer to answer:
// within the slack they are the same, and without it they are pointed out.
func TestSlack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ slack, changes, small int }{{0, 4, 3}, {2, 2, 1}, {16, 1, 0}} {
		s := &Sightings{Slack: int64(tt.slack)}
		for i, size := range []int64{1000, 1002, 1000, 1010, 2000} {
			if err := s.Add(Sighting{Name: "/", Time: time.Unix(int64(i), 0), Status: 200, Size: size, Visitor: true}); err != nil {
				t.Fatal(err)
			}
		}
		h, err := s.History()
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := h.Count(); n != tt.changes || s.Small != tt.small {
			t.Errorf("slack %d: %d changes, %d small ones", tt.slack, n, s.Small)
		}
	}
}
