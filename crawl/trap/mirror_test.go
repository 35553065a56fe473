package trap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/internal/rng"
)

func TestWithoutHostName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ title, host, want string }{
		{"Rivers - mirror1", "mirror1.example.org", "Rivers - "},
		{"Rivers - Mirror1.Example.ORG", "mirror1.example.org", "Rivers - "},
		{"example.org | Rivers", "www.example.org", " | Rivers"},
		{"Rivers", "mirror1.example.org", "Rivers"},
		{"Rivers in the org", "a.org", "Rivers in the org"},
		{"mirror1", "mirror1.example.org", "mirror1"},
		{"mirror1 - 5", "mirror1.example.org", "mirror1 - 5"},
		{"mirror10: Rivers", "mirror1.example.org", "mirror10: Rivers"},
		{"", "mirror1.example.org", ""},
	} {
		if got := withoutHostName(tt.title, tt.host); got != tt.want {
			t.Errorf("%q at %s: %q, want %q", tt.title, tt.host, got, tt.want)
		}
	}
}

// prose is text of random words.
func prose(r *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "%s ", strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(2))+fmt.Sprint(r.IntN(3000)))
	}
	return b.String()
}

// Hosts that are the same but for their name, in titles and at the foot of each page,
// are recognised. Hosts of one template that say different things are not, however
// little they say beside it, though their paths and titles are the same but for the
// host's name.
func TestMirrorsThatSayTheirName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		template, text int  // words
		own            bool // each host says something else
		want           bool
	}{
		{"mirror of articles", 60, 400, false, true},
		{"mirror with a large frame", 500, 200, false, true},
		{"articles in a frame", 60, 400, true, false},
		{"shops with short texts", 300, 60, true, false},
		{"little text", 30, 8, true, false},
		{"large frame, little text", 600, 40, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			frame := prose(rng.New(1, "frame", 0), tt.template)
			var d Detector
			copied := map[string]string{}
			for k := range 4 {
				host := fmt.Sprintf("mirror%d.example.org", k)
				for i := range 60 {
					of := uint64(i)
					if tt.own {
						of += 1000 * uint64(k)
					}
					u := mustParse(t, fmt.Sprintf("http://%s/page-%d.html", host, i))
					html := fmt.Sprintf("<title>Page %d - mirror%d</title><body><div>%s</div><p>%s</p><footer>This is %s</footer>", i, k, frame, prose(rng.New(of, "text", 0), tt.text), host)
					page := extract.Document(t.Context(), []byte(html), "text/html", u, extract.Options{})
					if of := d.MirrorOf(u, page.Title, page.Simhash, Standing{}, time.Now()); of != "" {
						copied[host] = of
					}
				}
			}
			if got := len(copied); tt.want && got != 3 || !tt.want && got != 0 {
				t.Errorf("copies: %v", copied)
			}
		})
	}
}

// say has a host tell its pages from to up to, all hosts the same under the same paths, and
// returns whose copy it is then.
func say(t *testing.T, d *Detector, host string, from, to int, s Standing, now time.Time) (of string) {
	t.Helper()
	for i := from; i < to; i++ {
		of = d.MirrorOf(mustParse(t, fmt.Sprintf("http://%s/page-%d", host, i)), fmt.Sprintf("Page %d", i), appendHash(hashStart, fmt.Sprint(i))*goldenRatio, s, now)
	}
	return of
}

// Who is taken for the copy: the host that comes second, unless it is a source or has more
// pages; a source is never set aside.
func TestWhoIsTheCopy(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name          string
		first, second Standing
		want          string // the host that is set aside
	}{
		{"strangers", Standing{}, Standing{}, "second"},
		{"the second is a source", Standing{}, Standing{IsSource: true}, "first"},
		{"the first is a source", Standing{IsSource: true, Pages: 5}, Standing{Pages: 5000}, "second"},
		{"both are sources", Standing{IsSource: true}, Standing{IsSource: true}, ""},
		{"the second has the longer history", Standing{Pages: 30}, Standing{Pages: 4000}, "first"},
		{"the first has the longer history", Standing{Pages: 4000}, Standing{Pages: 30}, "second"},
	} {
		var d Detector
		say(t, &d, "first", 0, 60, tt.first, now)
		say(t, &d, "second", 0, 60, tt.second, now)
		for _, host := range []string{"first", "second"} {
			if got := d.CopyOf(host, now) != ""; got != (host == tt.want) {
				t.Errorf("%s: %s is set aside: %v, want %q", tt.name, host, got, tt.want)
			}
		}
	}
}

// A copy is set aside for a month. Then it is one again only if the original is still there.
func TestCopyIsJudgedAgain(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{true, false} {
		var d Detector
		now := time.Now()
		say(t, &d, "first", 0, 60, Standing{}, now)
		if of := say(t, &d, "second", 0, 60, Standing{}, now); of != "first" {
			t.Fatalf("the second host is the copy of %q, want first", of)
		}
		now = now.Add(MirrorAge - time.Hour)
		if of := d.CopyOf("second", now); of != "first" {
			t.Errorf("before a month has passed it is the copy of %q, want first", of)
		}
		if !gone {
			for i := range 60 {
				d.ConfirmPage(mustParse(t, fmt.Sprintf("http://first/page-%d", i)), fmt.Sprintf("Page %d", i), appendHash(hashStart, fmt.Sprint(i))*goldenRatio, now)
			}
		}
		now = now.Add(2 * time.Hour)
		if of := d.CopyOf("second", now); of != "" {
			t.Errorf("after a month it is the copy of %q, want to see it judged again", of)
		}
		if of := say(t, &d, "second", 0, 60, Standing{}, now); (of == "first") == gone {
			t.Errorf("the first host is gone: %v; then the second is the copy of %q", gone, of)
		}
	}
}

// A host that says the same as another under the same paths is left alone once
// that is clear; two hosts that share a few pages are not mirrors.
func TestMirrors(t *testing.T) {
	t.Parallel()
	var d Detector
	text := func(i int) uint64 { return appendHash(hashStart, fmt.Sprint("text ", i)) }
	for i := range 100 {
		d.MirrorOf(mustParse(t, fmt.Sprintf("http://a/%d", i)), "t", text(i), Standing{}, time.Now())
	}
	for _, tt := range []struct {
		host, title, kind string
		of                func(i int) uint64 // simhash of page i
	}{
		{"same", "t", "mirror host", text},
		{"near", "t", "near-duplicate host", func(i int) uint64 { return text(i) ^ 1<<(i%16) ^ 1<<(16+i%16) ^ 1<<(32+i%32) }},
		{"four-bits", "t", "", func(i int) uint64 { return text(i) ^ 1<<(i%16)*0x0001_0001_0001_0001 }},
		{"other-titles", "of its own", "", text},
		{"two-thirds", "t", "", func(i int) uint64 {
			if i%3 == 0 {
				return text(1000 + i)
			}
			return text(i)
		}},
	} {
		judged := 0
		for i := range 100 {
			if of := d.MirrorOf(mustParse(t, fmt.Sprintf("http://%s/%d", tt.host, i)), tt.title, tt.of(i), Standing{}, time.Now()); of != "" {
				if of != "a" || tt.kind == "" || string(d.MirrorKind(tt.host)) != tt.kind {
					t.Errorf("%s: %s of %s after %d pages", tt.host, d.MirrorKind(tt.host), of, i+1)
				}
				judged = i + 1
				break
			}
		}
		if tt.kind != "" && judged != mirrorPages {
			t.Errorf("%s: judged after %d pages", tt.host, judged)
		}
	}
}

// With a table that is too small for all pages, a copy is noticed by the pages
// that all hosts are sampled by.
func TestMirrorsSampled(t *testing.T) {
	t.Parallel()
	d := Detector{maxTable: 2000}
	text := func(i int) uint64 { return appendHash(hashStart, fmt.Sprint("text ", i)) }
	for i := range 3000 {
		for k := range 3 { // hosts that say different things
			d.MirrorOf(mustParse(t, fmt.Sprintf("http://h%d/%d", k, i)), "t", text(10_000*k+i), Standing{}, time.Now())
		}
	}
	if d.sampleBits == 0 || len(d.originals) > 1000 {
		t.Fatalf("one of 2^%d paths, %d entries", d.sampleBits, len(d.originals))
	}
	for i := 2999; i >= 0 && d.CopyOf("copy", time.Now()) == ""; i-- {
		d.MirrorOf(mustParse(t, fmt.Sprintf("http://copy/%d", i)), "t", text(20_000+i), Standing{}, time.Now())
	}
	if got := d.CopyOf("copy", time.Now()); got != "h2" {
		t.Errorf("copy of %q", got)
	}
}

// A copy stays known as one when its next agent comes, and hosts that all say
// the same do not fill the memory.
func TestMirrorsKept(t *testing.T) {
	t.Parallel()
	d := Detector{maxTable: 1000}
	for _, host := range []string{"a", "b"} {
		for i := range mirrorPages + 5 {
			d.MirrorOf(mustParse(t, fmt.Sprintf("http://%s/%d", host, i)), "t", appendHash(hashStart, fmt.Sprint(i)), Standing{}, time.Now())
		}
	}
	if a, b := d.CopyOf("a", time.Now()), d.CopyOf("b", time.Now()); a != "" || b != "a" {
		t.Errorf("a is a copy of %q, b of %q", a, b)
	}
	for i := range 5000 {
		host := fmt.Sprintf("h%d", i)
		d.MirrorOf(mustParse(t, "http://"+host+"/"), "t", appendHash(hashStart, host), Standing{}, time.Now())
		d.RepeatsAnswer(host, [16]byte{1})
		d.SuspectSoft404(host, true)
		if len(d.candidates) > 1000 || len(d.originals) > 1000 || len(d.answers) > 1000 || len(d.soft404Suspect) > 1000 {
			t.Fatalf("after %d hosts: %d hosts, %d pages, %d answers, %d suspects", i, len(d.candidates), len(d.originals), len(d.answers), len(d.soft404Suspect))
		}
	}
}
