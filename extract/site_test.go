package extract_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/extract"
	bench "github.com/freshet/freshet/lab/bench/crawl"
	"github.com/freshet/freshet/weburl"
)

// The pages on which `freshet bench crawl` compares robots, as the robot reads
// them: many, so that neither their words nor their bytes are in the processor's
// caches already. Then what the robot needs of each link.
func BenchmarkTrack(b *testing.B) {
	const pages = 256
	site := bench.NewSite(20_000, 16, 32, 12_000)
	site.Port = 8080
	bodies, addresses := make([][]byte, pages), make([]weburl.URL, pages)
	size := 0
	for i := range pages {
		u, err := url.Parse(site.URL(i * 7))
		if err != nil {
			b.Fatal(err)
		}
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequest("GET", u.RequestURI(), nil))
		bodies[i] = w.Body.Bytes()
		size += len(bodies[i])
		if addresses[i], err = weburl.Parse(u.String()); err != nil {
			b.Fatal(err)
		}
	}
	var links []extract.Link
	b.Run("page", func(b *testing.B) {
		b.SetBytes(int64(size / pages))
		b.ReportAllocs()
		defer cpu(b)()
		for i := range b.N {
			p := extract.Document(context.Background(), bodies[i%pages], "text/html; charset=utf-8", addresses[i%pages], extract.Options{Token: "freshet", Brief: true})
			links = p.Links
		}
	})
	b.Run(fmt.Sprintf("%d links", len(links)), func(b *testing.B) {
		b.ReportAllocs()
		defer cpu(b)()
		for range b.N {
			for j := range links {
				u, _ := weburl.DefaultCanon.Apply(links[j].URL)
				u.Key()
			}
		}
	})
}

// cpu reports the time that the process had a processor, which on a machine with
// other work is the time to trust.
func cpu(b *testing.B) func() {
	now := func() time.Duration {
		var r syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	start := now()
	return func() { b.ReportMetric(float64(now()-start)/float64(b.N), "cpu-ns/op") }
}
