package indextest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/analysis"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/weburl"

	"golang.org/x/sys/unix"
)

// PagesDir is the folder of real pages for benchmarks, $FRESHET_BENCH_PAGES:
// each folder or link in it is a site of HTML files. Benchmarks are skipped
// without it.
const PagesDir = "FRESHET_BENCH_PAGES"

// Pages are real pages for benchmarks, in random order.
type Pages struct {
	Documents []index.Document
	TextBytes int
	words     map[string]int // documents that have a word
}

// bodyLimit is up to how many bytes of a page's text are taken: $FRESHET_BENCH_BODY or
// 256 KiB.
func bodyLimit() int {
	if n, err := strconv.Atoi(os.Getenv("FRESHET_BENCH_BODY")); err == nil && n > 0 {
		return n
	}
	return 256 << 10
}

// LoadPages reads the pages of $FRESHET_BENCH_PAGES, at most $FRESHET_BENCH_DOCS.
func LoadPages(b *testing.B) *Pages {
	b.Helper()
	dir := os.Getenv(PagesDir)
	if dir == "" {
		b.Skipf("$%s is not set", PagesDir)
	}
	p := &Pages{words: map[string]int{}}
	sites, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range sites {
		root, err := filepath.EvalSymlinks(filepath.Join(dir, s.Name()))
		if err != nil || len(s.Name()) > 3 {
			continue
		}
		if err := p.addSite("site"+s.Name()+".example", root); err != nil {
			b.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	r.Shuffle(len(p.Documents), func(i, j int) { p.Documents[i], p.Documents[j] = p.Documents[j], p.Documents[i] })
	if os.Getenv("FRESHET_BENCH_DOCS") != "" {
		p.Documents = p.Documents[:min(len(p.Documents), BenchSize())]
	}
	for i := range p.Documents {
		p.TextBytes += len(p.Documents[i].Body)
		seen := map[string]bool{}
		for _, t := range (analysis.Analyzer{}).Tokens(nil, p.Documents[i].Body) {
			if !seen[t.Word] {
				seen[t.Word] = true
				p.words[t.Word]++
			}
		}
	}
	return p
}

// addSite extracts the HTML files below root; folders may be links.
func (p *Pages) addSite(host, root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			if to, err := filepath.EvalSymlinks(path); err == nil && path != root {
				if st, err := os.Stat(to); err == nil && st.IsDir() {
					return p.addSite(host+"."+d.Name(), to)
				}
			}
			return nil
		}
		if d.IsDir() || filepath.Ext(path) != ".html" && filepath.Ext(path) != ".htm" {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		u, err := weburl.Parse("http://" + host + "/" + filepath.ToSlash(rel))
		if err != nil {
			return nil //nolint:nilerr // a name that no URL has
		}
		page := extract.Document(context.Background(), body, "text/html", u, extract.Options{MaxText: bodyLimit()})
		if page.Text == "" {
			return nil
		}
		r := rand.New(rand.NewPCG(9, uint64(len(p.Documents))))
		p.Documents = append(p.Documents, index.Document{
			ID: u.String(), Host: host, Kind: "web", Type: "html", Lang: page.Lang, Title: page.Title, Body: page.Text, Same: fmt.Sprint(len(p.Documents)),
			Date: now.AddDate(0, 0, -r.IntN(700)), Size: int64(len(body)), Popularity: r.Float64() * r.Float64(),
		})
		return nil
	})
}

// QueryKinds are the kinds of queries that are measured.
var QueryKinds = []string{"common word", "rare word", "2 AND", "2 OR", "4 OR", "phrase, common", "phrase, rare", "prefix"}

// Queries returns n queries of a kind with words of the pages themselves, so
// that all have results.
func (p *Pages) Queries(kind string, n int) []query.Node {
	r := rand.New(rand.NewPCG(5, uint64(len(kind))))
	docs := len(p.Documents)
	out := make([]query.Node, 0, n)
	for len(out) < n {
		body := (analysis.Analyzer{}).Tokens(nil, p.Documents[r.IntN(docs)].Body)
		if len(body) < 8 {
			continue
		}
		at := func() int { return r.IntN(len(body) - 1) }
		word := func(low, high int) string {
			for range 200 {
				if w := body[at()].Word; len(w) > 2 && p.words[w] >= low && p.words[w] <= high {
					return w
				}
			}
			return ""
		}
		var words []string
		sep := " "
		switch kind {
		case "common word":
			words = []string{word(docs/20, docs)}
		case "rare word":
			words = []string{word(2, 30)}
		case "2 AND":
			words = []string{word(20, docs), word(20, docs)}
		case "2 OR":
			words, sep = []string{word(20, docs), word(20, docs)}, " OR "
		case "4 OR":
			words, sep = []string{word(20, docs), word(20, docs), word(20, docs), word(20, docs)}, " OR "
		case "phrase, common", "phrase, rare":
			i := at()
			a, b := p.words[body[i].Word], p.words[body[i+1].Word]
			if isCommon := min(a, b) > docs/30; isCommon == (kind == "phrase, common") && body[i+1].Start == body[i].End+1 {
				words = []string{`"` + body[i].Word + " " + body[i+1].Word + `"`}
			}
		case "prefix":
			if w := word(5, docs); len(w) > 4 && w[3] < 0x80 && w[2] < 0x80 && w[1] < 0x80 && w[0] < 0x80 {
				words = []string{w[:4] + "*"}
			}
		}
		if text := strings.Join(words, sep); len(words) > 0 && !slices.Contains(words, "") && strings.Trim(text, `" *`) != "" {
			out = append(out, query.Parse(text, now))
		}
	}
	return out
}

// Now is the time of every search of the benchmarks.
func Now() time.Time { return now }

// Index applies all pages in batches and returns the CPU time that the process
// took, merges included.
func (p *Pages) Index(b *testing.B, e index.Engine, batch int) time.Duration {
	b.Helper()
	before := CPUTime()
	for i := 0; i < len(p.Documents); i += batch {
		if err := e.Apply(context.Background(), index.Batch{Put: p.Documents[i:min(i+batch, len(p.Documents))]}); err != nil {
			b.Fatal(err)
		}
	}
	return CPUTime() - before
}

// CPUTime is what the process has used, in all threads.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ThreadTime is the CPU time of this thread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// MeasureQueries runs every kind of query and logs the quantiles of the CPU time,
// which other work on the machine does not prolong. search stays in its goroutine.
// The time of a query is the least of some rounds.
func (p *Pages) MeasureQueries(b *testing.B, search func(query.Node) error) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const rounds = 5
	for _, kind := range QueryKinds {
		all := p.Queries(kind, queryCount)
		times := make([]time.Duration, len(all))
		for round := range rounds {
			for i, q := range all {
				start := ThreadTime()
				if err := search(q); err != nil {
					b.Fatal(err)
				}
				if took := ThreadTime() - start; round == 0 || took < times[i] {
					times[i] = took
				}
			}
		}
		slices.Sort(times)
		b.Logf("%-15s p50 %8.1f us  p99 %8.1f us", kind, float64(times[len(times)/2].Nanoseconds())/1000, float64(times[len(times)*99/100].Nanoseconds())/1000)
	}
}

// BenchPages measures indexing of real pages and whole searches with snippets.
func BenchPages(b *testing.B, e index.Engine) {
	p := LoadPages(b)
	took := p.Index(b, e, 200)
	s, err := e.Stats(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d pages, %.1f MB of text: %.0f us of CPU a page, %.1f MB/s, index / text %.2f", len(p.Documents), float64(p.TextBytes)/1e6,
		float64(took.Microseconds())/float64(len(p.Documents)), float64(p.TextBytes)/1e6/took.Seconds(), float64(s.DiskBytes)/float64(p.TextBytes))
	p.MeasureQueries(b, func(q query.Node) error {
		_, err := e.Search(context.Background(), index.Request{Query: q, Limit: 10, Now: now})
		return err
	})
}

// WriteJSON writes pages and queries for engines of other languages, see
// lab/bench/peers/fts5: DIR/pages.jsonl has url, title and body, DIR/queries.jsonl
// kind and query. n is the number of pages.
func (p *Pages) WriteJSON(dir string, n int) error {
	f, err := os.Create(filepath.Join(dir, "pages.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	pages := bufio.NewWriter(f)
	out := json.NewEncoder(pages)
	for i := range n {
		d := p.Variant(i)
		if err := out.Encode(map[string]string{"url": d.ID, "title": d.Title, "body": d.Body}); err != nil {
			return err
		}
	}
	var queries bytes.Buffer
	out = json.NewEncoder(&queries)
	for _, kind := range QueryKinds {
		for _, q := range p.Queries(kind, queryCount) {
			if err := out.Encode(map[string]string{"kind": kind, "query": q.String()}); err != nil {
				return err
			}
		}
	}
	return errors.Join(pages.Flush(), f.Close(), os.WriteFile(filepath.Join(dir, "queries.jsonl"), queries.Bytes(), 0o600))
}

// queryCount is how many queries of a kind are measured.
const queryCount = 125
