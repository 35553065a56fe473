package render

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/freshet/freshet/fetch"
)

// BenchmarkRender tells the browser's CPU time a page in one tab: of one host,
// and of many in turn, each of which Chromium shows in a new process.
func BenchmarkRender(b *testing.B) {
	if _, err := Find(""); err != nil {
		b.Skip(err)
	}
	s := newSite(b)
	address := strings.TrimPrefix(s.URL, "http://")
	client, err := fetch.New(fetch.Config{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for _, hosts := range []int{1, 20} {
		b.Run(fmt.Sprint("hosts=", hosts), func(b *testing.B) {
			p := NewPool(Config{Tabs: 1, Client: client, NoSandbox: os.Geteuid() == 0})
			defer p.Close()
			one := func(i int) {
				page := s.page(b, "/fetch")
				page.URL = parse(b, fmt.Sprintf("http://h%d.test/fetch", i%hosts))
				if _, err := p.Render(b.Context(), page); err != nil {
					b.Fatal(err)
				}
			}
			one(0)
			before := p.Stats()
			n := 0
			for b.Loop() {
				n++
				one(n)
			}
			after := p.Stats()
			b.ReportMetric(float64((after.CPU-before.CPU).Milliseconds())/float64(n), "CPU-ms/page")
			b.ReportMetric(float64(after.Memory>>20), "MB")
		})
	}
}
