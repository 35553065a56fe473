package freshness

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/weburl"
)

func pageKey(t *testing.T, address string) weburl.Key {
	t.Helper()
	u, err := weburl.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Key()
}

// The memory of signals and of trust is bounded; a signal is given once, and not
// to a visit that had begun before it.
func TestSignalsBounded(t *testing.T) {
	t.Parallel()
	var s SignalLedger
	now := time.Now()
	u := func(i int) weburl.Key { return pageKey(t, fmt.Sprintf("http://h%d.example/%d", i%3, i)) }
	for i := range 3 * maxPendingPages {
		s.Add("x", u(i), 1, now)
	}
	if n := len(s.now) + len(s.old); n > 2*maxPendingPages {
		t.Errorf("%d signals are kept", n)
	}
	last := u(3*maxPendingPages - 1)
	if got := s.Add("y", last, 2, now).Evidence; got != 3 {
		t.Errorf("two signals say %g, want 3", got)
	}
	if got := s.EndVisit(last); got.Count != 0 {
		t.Errorf("a visit that began before the signals has %+v", got)
	}
	s.BeginVisit(last)
	s.Add("z", last, 4, now) // comes while the page is fetched
	if a, b := s.EndVisit(last), s.EndVisit(last); a.Count != 2 || a.Evidence != 3 || b.Count != 0 {
		t.Errorf("the visit is for %+v, then for %+v", a, b)
	}
	s.BeginVisit(last)
	if c, d := s.EndVisit(last), s.EndVisit(last); c.Source != "z" || c.Count != 1 || c.Evidence != 4 || d.Count != 0 {
		t.Errorf("the next visit is for %+v, then for %+v", c, d)
	}
	for i := range maxTrustingHosts + 5 {
		s.SetHost(fmt.Sprint(i), map[string]change.Trust{"liar": {False: 1000, Watched: 1}}, change.DefaultPrior)
	}
	if len(s.hosts) > maxTrustingHosts {
		t.Errorf("%d hosts are kept", len(s.hosts))
	}
	liar := s.Host(fmt.Sprint(maxTrustingHosts + 4)).Trust["liar"]
	if e := LogOdds(change.Trust{True: 1, Watched: 5}); e < math.Ln2 {
		t.Errorf("the second signal of a source that was right says %g", e)
	}
	if e := LogOdds(liar); e > .01 {
		t.Errorf("a liar's signal says %g", e)
	}
	if e := LogOdds(change.Trust{}); e < math.Ln2 {
		t.Errorf("a signal of an unknown source says %g", e)
	}
}
