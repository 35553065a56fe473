package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Bench measures what a robot asks of a store most; open returns an empty one,
// which Bench closes. An operation is one page.
func Bench(b *testing.B, open func(b *testing.B) store.Store) {
	b.Run("Add", func(b *testing.B) { benchAdd(b, open(b)) })
	b.Run("Known", func(b *testing.B) { benchKnown(b, open(b)) })
	b.Run("Visit", func(b *testing.B) { benchVisit(b, open(b)) })
}

const (
	benchBatch = 1000
	benchHosts = 100
	benchLinks = 30
)

// benchPages makes n new URLs, from number at on, on a hundred hosts.
func benchPages(b *testing.B, at, n int) []store.Found {
	b.Helper()
	out := make([]store.Found, n)
	for i := range out {
		u, err := weburl.Parse(fmt.Sprintf("http://www%d.example.org/section/page-%d.html", (at+i)%benchHosts, at+i))
		if err != nil {
			b.Fatal(err)
		}
		out[i] = store.Found{URL: u, Depth: 3, From: "http://www1.example.org/", Order: 4}
	}
	return out
}

// benchAdd adds new URLs, in batches of a thousand.
func benchAdd(b *testing.B, s store.Store) {
	defer s.Close()
	for n := 0; n < b.N; n += benchBatch {
		b.StopTimer()
		f := benchPages(b, n, min(benchBatch, b.N-n))
		b.StartTimer()
		if _, err := s.Add(context.Background(), f); err != nil {
			b.Fatal(err)
		}
	}
}

// benchKnown adds URLs that are known, as most links are.
func benchKnown(b *testing.B, s store.Store) {
	defer s.Close()
	f := benchPages(b, 0, benchBatch)
	if _, err := s.Add(context.Background(), f); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for n := 0; n < b.N; n += benchBatch {
		if _, err := s.Add(context.Background(), f[:min(benchBatch, b.N-n)]); err != nil {
			b.Fatal(err)
		}
	}
}

// benchVisit claims hosts, takes 64 pages at a time and commits them with 30
// links each, nine of ten known.
func benchVisit(b *testing.B, s store.Store) {
	defer s.Close()
	ctx := context.Background()
	known := benchPages(b, 0, 20_000)
	for i := 0; i < len(known); i += benchBatch {
		if _, err := s.Add(ctx, known[i:i+benchBatch]); err != nil {
			b.Fatal(err)
		}
	}
	next, now := len(known), start
	b.ResetTimer()
	for n := 0; n < b.N; {
		l, _, err := s.Claim(ctx, "bench", now, ttl)
		if err != nil || l == nil {
			b.Fatal(l, err)
		}
		pages, err := s.Take(ctx, l, 64, now)
		if err != nil {
			b.Fatal(err)
		}
		batch := &store.Batch{Host: l.Host}
		for _, p := range pages {
			p.State, p.Title, p.Type, p.Bytes, p.Slot = store.OK, "A page of the bench", "text/html", 12_000, store.Slot{Due: now.Add(time.Hour)}
			batch.Visits = append(batch.Visits, store.Visit{Page: p, Changed: true, Arrived: now, Took: time.Millisecond})
			for i := range benchLinks - 3 {
				batch.Found = append(batch.Found, known[(n+i*7)%len(known)])
			}
			b.StopTimer()
			batch.Found = append(batch.Found, benchPages(b, next, 3)...)
			next += 3
			b.StartTimer()
			n++
		}
		if _, err := s.Commit(ctx, l, batch); err != nil {
			b.Fatal(err)
		}
		if err := s.Release(ctx, l); err != nil {
			b.Fatal(err)
		}
		now = now.Add(time.Second)
	}
}
