package testweb

import (
	"testing"

	"github.com/freshet/freshet/lab/testweb/behaviour"
)

// What a perfect robot gets, by behaviours whose effect on it can be counted by
// hand.
func TestObtainable(t *testing.T) {
	t.Parallel()
	const pages = 1000
	tests := []struct {
		yaml        string
		least, most uint64
	}{
		{"", pages, pages},
		{"jslinks: {hosts: 1, pages: 1}", pages, pages},                           // it runs scripts
		{"redirect: {pages: 1, loop: 0}", pages, pages},                           // it follows chains
		{"redirect: {pages: 1, loop: 1}", 0, 0},                                   // but no loop ends
		{"errors: {pages: 0.2, window: 1h}", pages, pages},                        // it comes again
		{"errors: {pages: 1, window: 0s}", 0, 0},                                  // which is no use here
		{"calendar: {hosts: 1}\nsession: {hosts: 1}", pages, pages},               // traps add no page
		{"robots: {variants: [closed]}", 0, 0},                                    // it obeys
		{"robots: {variants: [normal, bom, huge, delay, missing]}", pages, pages}, //
		{"dns: {hosts: 1, faults: [nxdomain]}", 0, 0},                             //
		{"dns: {hosts: 1, faults: [slow, cname]}", pages, pages},                  //
		{"nofollow: {hosts: 1, pages: 1, links: 1, meta: 0}", 1, 1},               // the first page alone
		{"reset: {pages: 0.1}", pages / 10, pages * 9 / 10},                       // what is behind a broken page is lost, too
		{"ratelimit: {hosts: 1, busy: 0.5}\noutage: {hosts: 1, down: 0.3}", pages, pages},
	}
	for _, tt := range tests {
		set, err := behaviour.Parse("", []byte(tt.yaml))
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewWeb(Config{Pages: pages, Sites: 15, Seed: 2, Behaviours: set})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Obtainable([]uint64{0}); got < tt.least || got > tt.most {
			t.Errorf("%q: %d pages, want %d to %d", tt.yaml, got, tt.least, tt.most)
		}
	}
}
