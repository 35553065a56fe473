package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/indextest"
	"github.com/freshet/freshet/internal/pgload"
)

func BenchmarkEngine(b *testing.B) {
	indextest.Bench(b, open(b, cluster.Database(b), Config{Lane: "n"}))
}

// BenchmarkApply writes b.N documents in batches of 200, as the indexer does,
// and reports what each costs this process and the server.
func BenchmarkApply(b *testing.B) {
	ctx := context.Background()
	address := cluster.Database(b)
	e := open(b, address, Config{Lane: "n"})
	corpus := indextest.NewCorpus()
	before, err := pgload.Read(ctx, address)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	var own float64
	for i := 0; i < b.N; i += 200 {
		b.StopTimer()
		batch := index.Batch{Cursor: []byte("12345678")}
		for j := i; j < min(b.N, i+200); j++ {
			batch.Put = append(batch.Put, corpus.Document(j))
		}
		b.StartTimer()
		start := pgload.Own()
		if err := e.Apply(ctx, batch); err != nil {
			b.Fatal(err)
		}
		own += pgload.Own() - start
	}
	b.StopTimer()
	n, took := float64(b.N), b.Elapsed().Seconds()
	after, err := pgload.Read(ctx, address)
	if err != nil {
		b.Fatal(err)
	}
	did := after.Since(before)
	b.ReportMetric(n/took, "documents/s")
	b.ReportMetric(1e6*own/n, "client-µs/document")
	b.ReportMetric(1e6*did.CPU/n, "server-µs/document")
	b.ReportMetric(float64(did.Statements)/n, "statements/document")
	b.ReportMetric(float64(did.Log)/n, "WAL-bytes/document")
	if s, err := e.Stats(ctx); err == nil {
		b.ReportMetric(float64(s.DiskBytes)/n, "bytes/document")
	}
	if b.N > 1 {
		if err := pgload.Profile(ctx, os.Stderr, address, n); err != nil {
			b.Fatal(err)
		}
	}
}
