package crawl

import (
	"fmt"
	"testing"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Pages that many link to are fetched before pages that few link to.
func TestOPICOrder(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": link("/a1", "/a2", "/a3", "/a4")}
	for i := 1; i <= 4; i++ {
		pages[fmt.Sprintf("/a%d", i)] = link("/zz-popular", fmt.Sprintf("/b%d", i))
		pages[fmt.Sprintf("/b%d", i)] = link()
	}
	pages["/zz-popular"] = link()
	s := newSite(t, pages, nil)
	r := newRig(t)
	r.config.Ordering = new(OPIC)
	r.crawl(t, s.URL+"/")
	at := map[string]int{}
	for i, p := range s.log {
		at[p] = i
	}
	for i := 1; i <= 4; i++ {
		b := fmt.Sprintf("/b%d", i)
		if at["/zz-popular"] > at[b] {
			t.Errorf("%s was fetched before the popular page: %v", b, s.log)
		}
	}
	if len(s.log) != len(pages)+1 {
		t.Errorf("%d requests for %d pages", len(s.log), len(pages))
	}
	var o OPIC
	from, to := mustParse(t, "http://h/1").Key(), mustParse(t, "http://h/2")
	before := o.Order(&store.Found{URL: to})
	o.Spread(from, []weburl.Key{to.Key()})
	if after := o.Order(&store.Found{URL: to}); after >= before {
		t.Errorf("order %d after cash came, %d before", after, before)
	}
	if c := o.cash[from] + o.cash[to.Key()]; c != 2*opicStart {
		t.Errorf("cash %g is not kept", c)
	}
}
