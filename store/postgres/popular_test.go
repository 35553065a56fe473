package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
)

// The agent of a host on which many processes find URLs all the time commits as soon
// as any other: whoever queues pages keeps no lock that a commit waits for.
func TestCommitsOfPopularHost(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Now()
	address := cluster.Database(t)
	own := open(t, address, Config{Node: "own"})
	var urls []string
	for i := range 60 {
		urls = append(urls, fmt.Sprintf("http://popular/%d", i))
	}
	add(t, own, urls...)
	l := claim(t, own, now)
	pages, err := own.Take(ctx, l, 60, now)
	if err != nil {
		t.Fatal(err)
	}
	const writers = 24
	var others sync.WaitGroup
	run, stop := context.WithCancel(ctx)
	started := make(chan struct{}, writers)
	for n := range 3 {
		s := open(t, address, Config{Node: fmt.Sprint("n", n), Connections: writers / 3})
		for w := range writers / 3 {
			others.Go(func() {
				for i := 0; run.Err() == nil; i++ {
					var found []store.Found
					for k := range 30 {
						found = append(found, store.Found{URL: parse(t, fmt.Sprintf("http://popular/%d/%d/%d/%d", n, w, i, k)), Order: 9})
					}
					if _, err := s.Add(run, found); err != nil && run.Err() == nil {
						t.Error(err)
					}
					if i == 0 {
						started <- struct{}{}
					}
				}
			})
		}
	}
	for range writers {
		<-started
	}
	var took []time.Duration
	for i := range pages {
		begin := time.Now()
		if _, err := own.Commit(ctx, l, &store.Batch{Host: l.Host, Visits: []store.Visit{visit(pages[i], time.Now())}}); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		took = append(took, time.Since(begin))
		if time.Since(now) > time.Minute {
			break
		}
	}
	stop()
	others.Wait()
	slices.Sort(took)
	t.Logf("%d commits beside %d writers: median %v, longest %v", len(took), writers, took[len(took)/2].Round(100*time.Microsecond), took[len(took)-1].Round(100*time.Microsecond))
	if len(took) < len(pages) {
		t.Errorf("%d of %d commits in a minute", len(took), len(pages))
	}
}
