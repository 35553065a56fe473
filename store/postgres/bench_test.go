package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/internal/pgload"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// BenchmarkCrawl does what agents do, without fetching: claim, take, commit 64
// pages with 640 links of which a fifth are new, release. It reports what a
// visited page and a known URL cost the database: rows, log, bytes.
func BenchmarkCrawl(b *testing.B) {
	for _, agents := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) { benchCrawl(b, agents) })
	}
}

func benchCrawl(b *testing.B, agents int) {
	const hosts = 500
	ctx := context.Background()
	address := cluster.Database(b)
	s, err := Open(ctx, address, Config{Node: "n", Connections: 20})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	link := func(i int) store.Found {
		u, err := weburl.Parse(fmt.Sprintf("http://www.host%d.example.org/section/page-%d.html", i%hosts, i))
		if err != nil {
			b.Fatal(err)
		}
		return store.Found{URL: u, Order: uint64(1 + i%5), Depth: 3, From: "http://www.host7.example.org/section/page-1234567.html"}
	}
	var mu sync.Mutex
	next, visited := 0, 0
	var seeds []store.Found
	for ; next < 20*hosts; next++ {
		seeds = append(seeds, link(next))
	}
	if _, err := s.Add(ctx, seeds); err != nil {
		b.Fatal(err)
	}
	size := func(tables ...string) (n float64) {
		for _, t := range tables {
			var size int64
			if err := s.pool.QueryRow(ctx, "select pg_total_relation_size($1::regclass)", t).Scan(&size); err != nil {
				b.Fatal(err)
			}
			n += float64(size)
		}
		return n
	}
	queued := size("pages") / float64(next)
	before, err := pgload.Read(ctx, address)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	start, own := time.Now(), pgload.Own()
	var wg sync.WaitGroup
	for range agents {
		wg.Go(func() {
			for {
				mu.Lock()
				done := visited >= b.N
				mu.Unlock()
				if done {
					return
				}
				l, _, err := s.Claim(ctx, "", time.Now(), time.Minute)
				if err != nil {
					b.Error(err)
					return
				}
				if l == nil {
					time.Sleep(time.Millisecond)
					continue
				}
				pages, err := s.Take(ctx, l, 64, time.Now())
				if err != nil {
					b.Error(err)
					return
				}
				batch := &store.Batch{Host: l.Host}
				for _, p := range pages {
					v := visit(p, time.Now())
					v.Page.Title, v.Page.Type, v.Page.ETag = "A page of some title", "text/html; charset=utf-8", `"0123456789abcdef"`
					v.Page.Digest, v.Page.Simhash = [16]byte{1, 2, 3, 4, 5, 6, 7, 8}, 0x123456789abcdef
					v.Page.History.Observe(time.Now(), true, change.DefaultPrior)
					mu.Lock()
					for k := range 10 {
						i := next * (k + 1) / 11 // known already
						if k < 2 {
							i = next
							next++
						}
						f := link(i)
						batch.Found = append(batch.Found, f)
						v.Links = append(v.Links, f.URL.Key())
					}
					visited++
					mu.Unlock()
					batch.Visits = append(batch.Visits, v)
				}
				if _, err := s.Commit(ctx, l, batch); err != nil {
					b.Error(err)
					return
				}
				if err := s.Release(ctx, l); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	v, took := float64(visited), time.Since(start).Seconds()
	own = pgload.Own() - own
	after, err := pgload.Read(ctx, address)
	if err != nil {
		b.Fatal(err)
	}
	did := after.Since(before)
	b.ReportMetric(v/took, "pages/s")
	b.ReportMetric(1e6*own/v, "client-µs/page")
	b.ReportMetric(1e6*did.CPU/v, "server-µs/page")
	b.ReportMetric(float64(did.Commits)/v, "commits/page")
	b.ReportMetric(float64(did.Statements)/v, "statements/page")
	b.ReportMetric(float64(did.Log)/v, "WAL-bytes/page")
	if b.N > 1 {
		if err := pgload.Profile(ctx, os.Stderr, address, v); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.Stats(ctx); err != nil { // moves the inbox to the feed
		b.Fatal(err)
	}
	for _, t := range []string{"pages", "links", "visits"} {
		n := v
		if t == "pages" {
			n = float64(next)
		}
		b.ReportMetric(size(t)/n, strings.TrimSuffix(t, "s")+"-bytes")
	}
	b.ReportMetric(queued, "queued-URL-bytes")
	b.ReportMetric(v/float64(next), "visited/known")
}
