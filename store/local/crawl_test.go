package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// crawlSite is the site of "freshet bench crawl", as a store meets it.
type crawlSite struct {
	pages []crawlPage
	hosts int
}

type crawlPage struct {
	url   weburl.URL
	text  string
	key   weburl.Key
	links []int32
	keys  []weburl.Key
}

func newCrawlSite(b testing.TB, pages, hosts, links int) *crawlSite {
	s := &crawlSite{pages: make([]crawlPage, pages), hosts: hosts}
	for n := range s.pages {
		p := &s.pages[n]
		p.text = fmt.Sprintf("http://127.0.0.%d:34567/section-%d/page-%d.html", 1+n%hosts, n%13, n)
		var err error
		if p.url, err = weburl.Parse(p.text); err != nil {
			b.Fatal(err)
		}
		p.key = p.url.Key()
	}
	for n := range s.pages {
		p := &s.pages[n]
		for _, k := range []int{2*n + hosts, 2*n + hosts + 1} {
			if k < pages {
				p.links = append(p.links, int32(k))
			}
		}
		for x := uint64(n); len(p.links) < links; {
			x = rng.Mix(x, uint64(len(p.links)))
			p.links = append(p.links, int32(x%uint64(pages)))
		}
		for _, k := range p.links {
			p.keys = append(p.keys, s.pages[k].key)
		}
	}
	return s
}

// crawl visits all pages of the site with an agent for each host, as the robot
// does: pages that memory knows are not queued again, commits are of 24 pages.
func (c *crawlSite) crawl(s *Store, batch int) error {
	ctx := context.Background()
	byURL := make(map[string]int32, len(c.pages))
	var seeds []store.Found
	for n := range c.pages {
		byURL[c.pages[n].text] = int32(n)
		if n < c.hosts {
			seeds = append(seeds, store.Found{URL: c.pages[n].url})
		}
	}
	if _, err := s.Add(ctx, seeds); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, c.hosts)
	for i := range c.hosts {
		wg.Go(func() { errs[i] = c.agent(ctx, s, byURL, batch) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	st, err := s.Stats(ctx)
	if err == nil && st.States[store.OK] != int64(len(c.pages)) {
		err = fmt.Errorf("%d pages visited of %d", st.States[store.OK], len(c.pages))
	}
	return err
}

func (c *crawlSite) agent(ctx context.Context, s *Store, byURL map[string]int32, size int) error {
	for idle := 0; idle < 300; {
		now := time.Now()
		l, _, err := s.Claim(ctx, "bench", now, time.Minute)
		if err != nil {
			return err
		}
		if l == nil {
			st, err := s.Stats(ctx)
			if err != nil || st.States[store.OK] == int64(len(c.pages)) {
				return err
			}
			idle++
			time.Sleep(10 * time.Millisecond)
			continue
		}
		idle = 0
		var batch store.Batch
		for {
			pages, err := s.Take(ctx, l, 64, now)
			if err != nil {
				return err
			}
			if len(pages) == 0 && len(batch.Visits) == 0 {
				break
			}
			for i := range pages {
				c.visit(s, &pages[i], byURL[pages[i].URL], &batch)
				if len(batch.Visits) < size {
					continue
				}
				if err := c.commit(ctx, s, l, &batch); err != nil {
					return err
				}
			}
			if len(pages) < 64 && len(batch.Visits) > 0 {
				if err := c.commit(ctx, s, l, &batch); err != nil {
					return err
				}
			}
		}
		if err := s.Release(ctx, l); err != nil {
			return err
		}
	}
	return fmt.Errorf("no more work")
}

func (c *crawlSite) commit(ctx context.Context, s *Store, l *store.Lease, b *store.Batch) error {
	b.Host = l.Host
	_, err := s.Commit(ctx, l, b)
	b.Visits, b.Found = b.Visits[:0], b.Found[:0]
	return err
}

func (c *crawlSite) visit(s *Store, p *store.Page, n int32, b *store.Batch) {
	now := time.Now()
	x := rng.Mix(uint64(n), 11)
	p.State, p.Status, p.Type, p.Title, p.Lang, p.Bytes = store.OK, 200, "text/html; charset=utf-8", fmt.Sprintf("Page %d of the track", n), "en", 12_345
	p.Simhash = x
	for i := range p.Digest {
		p.Digest[i] = byte(x >> (i % 8 * 8))
	}
	p.Body = archive.Position{File: "20261121170000-00001.warc.gz", Offset: int64(n) * 4000}
	p.History = change.History{Visits: 1, Last: now, Changed: now}
	p.Slot = store.Slot{Due: now.Add(24*time.Hour + time.Duration(x%1e6)*time.Millisecond)}
	v := store.Visit{Page: *p, Changed: true, Arrived: now, Took: 1234 * time.Microsecond, Links: c.pages[n].keys}
	b.Visits = append(b.Visits, v)
	known := make([]bool, len(c.pages[n].keys))
	s.Known(c.pages[n].keys, known)
	for i, is := range known {
		if !is {
			b.Found = append(b.Found, store.Found{URL: c.pages[c.pages[n].links[i]].url, Depth: p.Depth + 1, From: p.URL, Order: uint64(p.Depth + 2)})
		}
	}
}

// BenchmarkCrawl is what "freshet bench crawl" asks of the store: CPU time, of
// background work too, for each page.
func BenchmarkCrawl(b *testing.B) {
	site := newCrawlSite(b, 20_000, 16, 32)
	for i := 0; b.Loop(); i++ {
		dir := b.TempDir()
		before := cpuTime()
		s, err := Open(filepath.Join(dir, "store"), Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err = site.crawl(s, 24); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/1e3/float64(len(site.pages)), "us/page")
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
}

func cpuTime() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
