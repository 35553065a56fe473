package crawl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/lab/rng"
)

func TestAnonymous(t *testing.T) {
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
		if got := anonymous(tt.title, tt.host); got != tt.want {
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
			var w waste
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
					page := extract.Document([]byte(html), "text/html", u, extract.Options{})
					if of := w.mirror(u, page.Title, page.Simhash); of != "" {
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
