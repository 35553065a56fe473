package crawl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/store"
)

// prose is text of random words.
func prose(r *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "%s ", strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(2))+fmt.Sprint(r.IntN(3000)))
	}
	return b.String()
}

// Pages of a copy are set aside, not excluded for good, and no page of a source is.
func TestSetAside(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	var all []string
	for i := range 60 {
		path := fmt.Sprintf("/page-%d", i)
		all = append(all, path)
		pages[path] = fmt.Sprintf("<title>Page %d</title><p>%s", i, prose(rng.New(uint64(i), "text", 0), 80))
	}
	pages["/"] = link(all...)
	first, second := newSite(t, pages, nil), newSite(t, pages, nil)
	r := newRig(t)
	r.config.Agents = 1
	r.crawl(t, first.URL+"/")
	robot := func(kind string, seeds ...string) *Robot {
		c := r.config
		c.Store, c.Archive = r.store, r.archive
		for _, seed := range seeds {
			scope, err := NewScope(mustParse(t, seed), kind, 0, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Scopes.Add(scope)
		}
		return New(c)
	}
	run := func(c *Robot) (aside int) {
		t.Helper()
		now := time.Now()
		say := &c.traps
		for i, path := range all { // the first host was seen by this process
			page := extract.Document(t.Context(), []byte(pages[path]), "text/html", mustParse(t, first.URL+path), extract.Options{})
			say.MirrorOf(mustParse(t, first.URL+path), page.Title, page.Simhash, trap.Standing{Pages: int64(i)}, now)
		}
		if _, err := r.store.Add(t.Context(), []store.Found{{URL: mustParse(t, second.URL+"/"), Order: 1, Due: now}}); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.store.Pages(t.Context(), func(p *store.Page) error {
			if p.Reason == store.ReasonMirror {
				if aside++; p.State != store.Excluded || p.Slot.Due.Before(now.Add(trap.MirrorAge-time.Hour)) {
					t.Errorf("%s: %s, due %v, want it visited in a month", p.URL, p.State, p.Slot.Due)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return aside
	}
	if n := run(robot("any", first.URL+"/")); n < 20 {
		t.Errorf("%d pages of the copy are set aside, want most of 60", n)
	}
	if n := run(robot("any", second.URL+"/")); n < 20 {
		t.Errorf("%d pages are set aside, want those of before", n)
	}
}
