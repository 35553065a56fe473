package crawl

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/lab/jsweb"
	"github.com/freshet/freshet/render"
)

func chromium(t *testing.T) {
	t.Helper()
	if _, err := render.Find(""); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func kinds() []string {
	var out []string
	for _, k := range jsweb.Kinds {
		out = append(out, k.Name)
	}
	return out
}

// The robot finds at least 95 % of what only a browser finds, with at most 1.5
// times the renders of one who knows which pages need it, and leaves alone what
// the server rendered.
func TestDecision(t *testing.T) {
	t.Parallel()
	chromium(t)
	pages := 13
	if os.Getenv("FRESHET_LONG") != "" {
		pages = 60
	}
	web, err := jsweb.New(len(jsweb.Kinds), pages, kinds())
	if err != nil {
		t.Fatal(err)
	}
	a := &Agents{Web: web, Fetch: 8, Render: 4}
	row, err := a.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	truth := web.Truth()
	d := Judge(row, truth, false)
	t.Logf("%+v", *row)
	t.Logf("%+v", d)
	if d.URLs < .95 || d.Ratio > 1.5 {
		t.Errorf("recall of URLs %.3f, renders %.2f times the oracle's", d.URLs, d.Ratio)
	}
	if row.Only != int64(len(truth.Only)) && d.URLs == 1 {
		t.Errorf("%d URLs counted as found only by rendering, there are %d", row.Only, len(truth.Only))
	}
	if row.Examined > row.Scripts+int64(5*pages) || row.Scripts > 20 {
		t.Errorf("%d scripts fetched, %d examined", row.Scripts, row.Examined)
	}
	var wrong []string
	for u, rendered := range row.Pages {
		if rendered && !truth.Needed[u] || !rendered && truth.Needed[u] {
			wrong = append(wrong, u+": "+row.Why[u])
		}
	}
	for u, rendered := range row.Pages {
		for _, kind := range []string{"hydrated", "static", "counted"} {
			if rendered && strings.HasPrefix(u, "http://"+kind) && pages < 20 { // of more pages one is looked at
				t.Errorf("%s was rendered: %s", u, row.Why[u])
			}
		}
	}
	slices.Sort(wrong)
	for _, w := range wrong {
		t.Log("wrong: ", w)
	}
	for u := range truth.URLs {
		if _, ok := row.Pages[u]; !ok {
			t.Log("not found: ", u)
		}
	}
}
