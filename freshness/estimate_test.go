package freshness

import (
	"fmt"
	"testing"

	"github.com/freshet/freshet/store"
)

// The largest hosts are listed, and those that wait for a robots.txt, however
// small, up to a bound.
func TestLargestHosts(t *testing.T) {
	t.Parallel()
	var hosts []HostReport
	for i := range 3 * topHosts {
		hosts = append(hosts, HostReport{Host: store.Host{Name: fmt.Sprint("large", i)}, Pages: int64(1000 - i)})
	}
	for i := range 2 * topHosts {
		hosts = append(hosts, HostReport{Host: store.Host{Name: fmt.Sprint("waits", i)}, Queue: int64(100 - i), RobotsWaits: map[string]int64{"http": 1}})
	}
	hosts = largestHosts(hosts)
	if len(hosts) != 2*topHosts {
		t.Fatalf("%d hosts, want %d", len(hosts), 2*topHosts)
	}
	for i, h := range hosts {
		want := fmt.Sprint("large", i)
		if i >= topHosts {
			want = fmt.Sprint("waits", i-topHosts)
		}
		if h.Host.Name != want {
			t.Errorf("%s at %d, want %s", h.Host.Name, i, want)
		}
	}
}
