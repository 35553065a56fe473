package engine

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
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

// BenchmarkScale measures an index of $FRESHET_BENCH_DOCS pages, variants of the real
// ones: what it costs to build, how large it is, how long opening and finding take.
// Finding leaves out loading and marking of results.
func BenchmarkScale(b *testing.B) {
	n := indextest.BenchSize()
	p := indextest.LoadPages(b)
	dir := filepath.Join(b.TempDir(), "index")
	e, err := Open(dir, Config{})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	memory := watchMemory()
	runtime.LockOSThread() // for the time that making variants takes
	var making time.Duration
	var applies []time.Duration
	text := 0
	before := indextest.CPUTime()
	for i := 0; i < n; i += 200 {
		start := indextest.ThreadTime()
		var batch index.Batch
		for j := i; j < min(n, i+200); j++ {
			d := p.Variant(j)
			text += len(d.Body)
			batch.Put = append(batch.Put, d)
		}
		making += indextest.ThreadTime() - start
		applying := time.Now()
		if err := e.Apply(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		applies = append(applies, time.Since(applying))
	}
	if err := e.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
	took := indextest.CPUTime() - before - making
	grown := memory()
	runtime.UnlockOSThread()
	s, err := e.Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(applies)
	b.Logf("%d pages, %.1f MB of text, %d segments: %.0f us of CPU a page, %.1f MB/s, index / text %.2f, memory beside the pages %d MB; Apply of 200 p50 %v p99 %v max %v",
		s.Documents, float64(text)/1e6, len(e.set.Segments()), float64(took.Microseconds())/float64(n), float64(text)/1e6/took.Seconds(), float64(s.DiskBytes)/float64(text), grown>>20,
		applies[len(applies)/2], applies[len(applies)*99/100], applies[len(applies)-1])
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	start, before := time.Now(), indextest.CPUTime()
	if e, err = Open(dir, Config{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	b.Logf("opened in %v, %v of CPU", time.Since(start), indextest.CPUTime()-before)
	snap := e.set.Acquire()
	defer snap.Release()
	p.MeasureQueries(b, func(q query.Node) error {
		r := index.Request{Query: q, Limit: 10, Now: indextest.Now()}.Bounded()
		_, err := search.Run(context.Background(), snap.Parts, r, search.Options{Languages: e.config.Languages})
		return err
	})
}

// watchMemory returns a function that tells by how many bytes the process's own
// memory has grown at most.
func watchMemory() func() int64 {
	own := func() int64 {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return 0
		}
		_, rest, _ := strings.Cut(string(status), "RssAnon:")
		kilobytes, _ := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]), 10, 64)
		return kilobytes << 10
	}
	first, most, done := own(), int64(0), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			most = max(most, own())
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return func() int64 {
		close(done)
		watching.Wait()
		return most - first
	}
}

// BenchmarkInvert measures the steps of indexing apart.
func BenchmarkInvert(b *testing.B) {
	p := indextest.LoadPages(b)
	pages := p.Documents[:min(len(p.Documents), 4000)]
	text := 0
	for i := range pages {
		text += len(pages[i].Body)
	}
	buffer := invert.NewBuffer("en")
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
}

// BenchmarkWritePages writes pages and queries to $FRESHET_BENCH_WRITE for
// lab/bench/peers/fts5.
func BenchmarkWritePages(b *testing.B) {
	dir := os.Getenv("FRESHET_BENCH_WRITE")
	if dir == "" {
		b.Skip("$FRESHET_BENCH_WRITE is not set")
	}
	if err := indextest.LoadPages(b).WriteJSON(dir, indextest.BenchSize()); err != nil {
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
	var applies, applyCPU, searches []time.Duration
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
	runtime.LockOSThread()
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
		start, startCPU := time.Now(), indextest.ThreadTime()
		if err := e.Apply(ctx, batch); err != nil {
			b.Fatal(err)
		}
		applies, applyCPU = append(applies, time.Since(start)), append(applyCPU, indextest.ThreadTime()-startCPU)
	}
	took := indextest.CPUTime() - before
	runtime.UnlockOSThread()
	cancel()
	reader.Wait()
	slices.Sort(applies)
	slices.Sort(applyCPU)
	slices.Sort(searches)
	b.Logf("%d updates in %d s: %.1f CPU-s with %d searches, %d segments; Apply p50 %v p99 %v, of CPU p50 %v p99 %v; search p50 %v p99 %v", len(applies)*125, seconds, took.Seconds(), len(searches),
		len(e.set.Segments()), applies[len(applies)/2], applies[len(applies)*99/100], applyCPU[len(applyCPU)/2], applyCPU[len(applyCPU)*99/100], searches[len(searches)/2], searches[len(searches)*99/100])
}
