package indextest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/query"
)

// BenchSize is the number of documents of the benchmarks: $FRESHET_BENCH_DOCS
// or 10,000.
func BenchSize() int {
	if n, err := strconv.Atoi(os.Getenv("FRESHET_BENCH_DOCS")); err == nil && n > 0 {
		return n
	}
	return 10_000
}

// Corpus makes documents of about 2.5 KB with Zipf-distributed words; the same
// number gives the same document.
type Corpus struct {
	words []string
}

// NewCorpus makes a vocabulary of 50,000 words.
func NewCorpus() *Corpus {
	r := rand.New(rand.NewPCG(1, 1))
	c := &Corpus{}
	syllables := strings.Fields("ba ko ri ta ne lu sa mi do ve pa gi ter lan ost ing er ant")
	for range 50_000 {
		var w string
		for range 2 + r.IntN(3) {
			w += syllables[r.IntN(len(syllables))]
		}
		c.words = append(c.words, w)
	}
	return c
}

// Document returns document i.
func (c *Corpus) Document(i int) index.Document {
	r := rand.New(rand.NewPCG(7, uint64(i)))
	z := rand.NewZipf(r, 1.1, 4, uint64(len(c.words)-1))
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(c.words[z.Uint64()])
			b.WriteByte(' ')
		}
		return b.String()
	}
	host := fmt.Sprintf("host%d.example", r.IntN(200))
	return index.Document{
		ID: fmt.Sprintf("http://%s/page/%d.html", host, i), Host: host, Kind: "web", Type: "html", Lang: "en",
		Title: text(6), Body: text(350), Date: now.AddDate(0, 0, -r.IntN(700)), Size: 2500, Popularity: r.Float64(),
	}
}

// Queries returns n queries of kind: "and", "or", "phrase", "prefix", "filter".
// Their words are log-uniform over the ranks 20 to 20,000: people ask for
// words of every frequency, but seldom for "the". Phrases stand in a document.
func (c *Corpus) Queries(kind string, n int) []query.Node {
	r := rand.New(rand.NewPCG(3, 3))
	word := func() string { return c.words[int(20*math.Pow(1000, r.Float64()))] }
	out := make([]query.Node, n)
	for i := range out {
		a, b := word(), word()
		if kind == "phrase" {
			body := strings.Fields(c.Document(r.IntN(1000)).Body)
			at := r.IntN(len(body) - 1)
			a, b = body[at], body[at+1]
		}
		s := a + " " + b
		switch kind {
		case "or":
			s = a + " OR " + b
		case "phrase":
			s = `"` + s + `"`
		case "prefix":
			s = a + "*"
		case "filter":
			s = a + fmt.Sprintf(" host:host%d.example", r.IntN(200))
		}
		out[i] = query.Parse(s, now)
	}
	return out
}

// Bench measures indexing in batches of 500 and queries of every kind over
// BenchSize documents, with the quantiles that a user feels.
func Bench(b *testing.B, e index.Engine) {
	c, n := NewCorpus(), BenchSize()
	start := time.Now()
	for i := 0; i < n; i += 500 {
		var batch index.Batch
		for j := i; j < min(n, i+500); j++ {
			batch.Put = append(batch.Put, c.Document(j))
		}
		if err := e.Apply(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(start)
	if s, err := e.Stats(context.Background()); err == nil {
		b.Logf("indexed %d documents: %.0f/s, %d bytes a document", n, float64(n)/took.Seconds(), s.DiskBytes/uint64(n))
	}
	for _, kind := range []string{"and", "or", "phrase", "prefix", "filter"} {
		queries := c.Queries(kind, 500)
		b.Run(kind, func(b *testing.B) {
			var times []time.Duration
			for i := range b.N {
				start := time.Now()
				if _, err := e.Search(context.Background(), index.Request{Query: queries[i%len(queries)], Limit: 10, Now: now, Facets: true}); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
