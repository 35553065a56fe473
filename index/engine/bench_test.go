package engine

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/invert"
	"github.com/freshet/freshet/index/engine/search"
	"github.com/freshet/freshet/index/engine/segment"
	"github.com/freshet/freshet/index/indextest"
	"github.com/freshet/freshet/index/query"
)

func openBench(b *testing.B, c Config) *Engine {
	b.Helper()
	e, err := Open(filepath.Join(b.TempDir(), "index"), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	return e
}

// BenchmarkSynthetic measures the corpus that PostgreSQL is measured with.
func BenchmarkSynthetic(b *testing.B) { indextest.Bench(b, openBench(b, Config{})) }

// BenchmarkPages measures real pages, as a crawl indexes them and serve searches
// them.
func BenchmarkPages(b *testing.B) { indextest.BenchPages(b, openBench(b, Config{})) }

// BenchmarkQueries measures finding alone, without loading and marking results.
func BenchmarkQueries(b *testing.B) {
	p := indextest.LoadPages(b)
	e := openBench(b, Config{})
	p.Index(b, e, 200)
	if err := e.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	snap := e.set.Acquire()
	defer snap.Release()
	b.Logf("%d segments", len(snap.Parts))
	p.MeasureQueries(b, func(q query.Node) error {
		r := index.Request{Query: q, Limit: 10, Now: indextest.Now()}.Bounded()
		_, err := search.Run(context.Background(), snap.Parts, r, search.Options{Languages: e.config.Languages})
		return err
	})
}

// BenchmarkInvert measures the steps of indexing apart.
func BenchmarkInvert(b *testing.B) {
	p := indextest.LoadPages(b)
	pages := p.Documents[:min(len(p.Documents), 4000)]
	text := 0
	for i := range pages {
		text += len(pages[i].Body)
	}
	for _, isDropped := range []bool{true, false} {
		name := map[bool]string{true: "without text", false: "with text"}[isDropped]
		b.Run(name, func(b *testing.B) {
			buffer := invert.NewBuffer("en", isDropped)
			var words, flush float64
			size := int64(0)
			for range b.N {
				start := indextest.CPUTime()
				for i := range pages {
					buffer.Put(&pages[i])
				}
				middle := indextest.CPUTime()
				w, err := segment.Create(filepath.Join(b.TempDir(), "s"), buffer.Averages(), nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := buffer.Flush(w); err != nil {
					b.Fatal(err)
				}
				s, err := w.Finish()
				if err != nil {
					b.Fatal(err)
				}
				size = s.Size()
				_ = s.Close()
				buffer.Reset()
				words += (middle - start).Seconds()
				flush += (indextest.CPUTime() - middle).Seconds()
			}
			n := float64(b.N * len(pages))
			b.ReportMetric(words/n*1e6, "us-words/page")
			b.ReportMetric(flush/n*1e6, "us-flush/page")
			b.ReportMetric(float64(size)/float64(text), "index/text")
		})
	}
}

// BenchmarkWritePages writes pages and queries to $FRESHET_BENCH_WRITE for
// lab/bench/peers/fts5.
func BenchmarkWritePages(b *testing.B) {
	dir := os.Getenv("FRESHET_BENCH_WRITE")
	if dir == "" {
		b.Skip("$FRESHET_BENCH_WRITE is not set")
	}
	if err := indextest.LoadPages(b).WriteJSON(dir); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkUpdates measures 500 updates a second, visible four times a second,
// beside a search every 10 ms.
func BenchmarkUpdates(b *testing.B) {
	p := indextest.LoadPages(b)
	e := openBench(b, Config{})
	p.Index(b, e, 200)
	if err := e.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	z := rand.NewZipf(r, 1.1, 10, uint64(len(p.Documents)-1))
	queries := p.Queries("2 OR", 100)
	const seconds = 20
	var applies, searches []time.Duration
	ctx, cancel := context.WithCancel(b.Context())
	var reader sync.WaitGroup
	reader.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			start := time.Now()
			snap := e.set.Acquire()
			_, err := search.Run(ctx, snap.Parts, index.Request{Query: queries[i%len(queries)], Limit: 10, Now: indextest.Now()}.Bounded(), search.Options{Languages: e.config.Languages})
			snap.Release()
			if err == nil {
				searches = append(searches, time.Since(start))
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	before := indextest.CPUTime()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for range 4 * seconds {
		<-tick.C
		e.lastSearch.Store(time.Now().UnixNano())
		var batch index.Batch
		for range 125 {
			batch.Put = append(batch.Put, p.Documents[z.Uint64()])
		}
		start := time.Now()
		if err := e.Apply(ctx, batch); err != nil {
			b.Fatal(err)
		}
		applies = append(applies, time.Since(start))
	}
	took := indextest.CPUTime() - before
	cancel()
	reader.Wait()
	slices.Sort(applies)
	slices.Sort(searches)
	b.Logf("%d updates in %d s: %.1f CPU-s with %d searches, %d segments; Apply p50 %v p99 %v; search p50 %v p99 %v", len(applies)*125, seconds, took.Seconds(), len(searches),
		len(e.set.Segments()), applies[len(applies)/2], applies[len(applies)*99/100], searches[len(searches)/2], searches[len(searches)*99/100])
}
