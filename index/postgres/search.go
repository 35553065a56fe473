package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/index"
)

// maxTerms bounds how many words of a query count for the score.
const maxTerms = 16

// Search implements index.Engine.
func (e *Engine) Search(ctx context.Context, r index.Request) (*index.Results, error) {
	start := time.Now()
	r = r.Bounded()
	c := &condition{languages: e.config.Languages}
	where := c.where(r.Query)
	out := &index.Results{}
	var hits []index.Scored
	err := e.query(ctx, func() (err error) {
		out.Total, hits, err = e.rank(ctx, r, where, c)
		return err
	})
	if err == nil && r.Facets && out.Total <= index.MaxFaceted {
		err = e.query(ctx, func() (err error) { out.Facets, err = e.facets(ctx, where, c.args); return err })
	}
	var docs map[string]*index.Document
	if err == nil {
		err = e.query(ctx, func() (err error) {
			docs, err = e.load(ctx, hits[:min(len(hits), index.Spare(r.Offset+r.Limit))])
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("search %q: %w", r.Query, err)
	}
	out.Hits = index.Fold(hits, r, e.config.Languages, func(m index.Scored) (*index.Document, error) {
		if d := docs[m.ID]; d != nil {
			return d, nil
		}
		return e.Document(ctx, m.ID)
	})
	out.Elapsed = time.Since(start)
	return out, ctx.Err()
}

// rank returns how many documents match and the best of them. The reading
// transaction keeps the count and the ranking of one moment.
func (e *Engine) rank(ctx context.Context, r index.Request, where string, c *condition) (total int, hits []index.Scored, err error) {
	score := "1.0"
	args := c.args
	if terms := c.terms[:min(len(c.terms), maxTerms)]; len(terms) > 0 && !r.ByDate {
		weights, err := e.idf(ctx, terms)
		if err != nil {
			return 0, nil, err
		}
		parts := make([]string, len(terms))
		for i, t := range terms {
			args = append(args, t, weights[i])
			// Weights of D, C, B, A; 1 divides by 1 + log(length).
			parts[i] = fmt.Sprintf("$%d::double precision * ts_rank('{%g, %g, %g, 1}', words, $%d::tsquery, 1)", len(args), titleUnit, titleUnit, titleUnit, len(args)-1)
		}
		score = "(" + strings.Join(parts, " + ") + ")"
	}
	depth := index.Spare(r.Offset + r.Limit)
	if r.ByDate {
		return e.collect(ctx, fmt.Sprintf("with m as (select id, date from documents where %s) select (select count(*) from m), id, 0::double precision from m order by date desc, id limit %d", where, depth), args)
	}
	w := r.Ranking
	args = append(args, w.PopularityWeight, w.FreshnessWeight, w.HalfLife.Seconds(), float64(r.Now.Unix()))
	n := len(args)
	boost := fmt.Sprintf("(1 + $%d::double precision * popularity) * (1 - $%d::double precision * (1 - power(2::double precision, -least(1000, greatest(0, $%d::double precision - date) / $%d::double precision))))", n-3, n-2, n, n-1)
	return e.collect(ctx, fmt.Sprintf(`
with m as materialized (
	select host, url, popularity, date from documents where %s
), best as (
	select host, url from m order by popularity desc, date desc, host, url limit %d
)
select (select count(*) from m), d.id, %s * %s as score
from best join documents d on d.host = best.host and d.url = best.url order by score desc, d.id limit %d`,
		where, max(RankDepth, depth), score, boost, max(depth, index.RerankDepth)), args)
}

// titleUnit is what a word outside the title counts beside one in it.
const titleUnit = 1. / index.TitleWeight

func (e *Engine) collect(ctx context.Context, statement string, args []any) (total int, hits []index.Scored, err error) {
	rows, err := e.search.Query(ctx, statement, args...)
	if err != nil {
		return 0, nil, err
	}
	var h index.Scored
	_, err = pgx.ForEachRow(rows, []any{&total, &h.ID, &h.Score}, func() error { hits = append(hits, h); return nil })
	return total, hits, err
}

// load fetches documents at once.
func (e *Engine) load(ctx context.Context, hits []index.Scored) (map[string]*index.Document, error) {
	var hosts, urls []int64
	for _, h := range hits {
		host, url := keyOf(h.ID)
		hosts, urls = append(hosts, host), append(urls, url)
	}
	rows, err := e.search.Query(ctx, "select "+document+" from documents d join unnest($1::bigint[], $2::bigint[]) as t (h, u) on d.host = t.h and d.url = t.u", hosts, urls)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*index.Document, len(hits))
	docs, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (*index.Document, error) { return scan(r) })
	for _, d := range docs {
		out[d.ID] = d
	}
	return out, err
}

// facets counts the values of all matches.
func (e *Engine) facets(ctx context.Context, where string, args []any) (map[string][]index.Count, error) {
	statement := "with m as materialized (select hostname, type, lang, kind from documents where " + where + ")"
	for i, f := range [][2]string{{"host", "hostname"}, {"type", "type"}, {"lang", "lang"}, {"kind", "kind"}} {
		if i > 0 {
			statement += " union all"
		}
		statement += fmt.Sprintf(" (select '%s', %s, count(*) from m where %s <> '' group by %s order by count(*) desc, %s limit %d)", f[0], f[1], f[1], f[1], f[1], index.FacetSize)
	}
	rows, err := e.search.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	out := map[string][]index.Count{}
	var name string
	var c index.Count
	_, err = pgx.ForEachRow(rows, []any{&name, &c.Value, &c.Count}, func() error { out[name] = append(out[name], c); return nil })
	return out, err
}

// frequencies remembers in how many documents words stand.
type frequencies struct {
	mu    sync.Mutex
	words map[string]frequency
}

type frequency struct {
	n    int64
	till time.Time
}

const (
	// maxCounted bounds the counting: of words more frequent than that, all
	// count as little.
	maxCounted = 5000
	maxWords   = 10_000
	wordsValid = 10 * time.Minute
)

func newFrequencies() *frequencies { return &frequencies{words: map[string]frequency{}} }

// idf weighs words by their rarity, as BM25 does: ln(1 + (N - n + 1/2)/(n + 1/2)).
func (e *Engine) idf(ctx context.Context, terms []string) ([]float64, error) {
	out := make([]float64, len(terms))
	if len(terms) == 1 { // it changes no order
		out[0] = 1
		return out, nil
	}
	s, err := e.documents(ctx)
	if err != nil {
		return nil, err
	}
	for i, t := range terms {
		n, err := e.count(ctx, t)
		if err != nil {
			return nil, err
		}
		n = min(n, s)
		out[i] = math.Log1p((float64(s-n) + .5) / (float64(n) + .5))
	}
	return out, nil
}

func (e *Engine) documents(ctx context.Context) (n int64, err error) {
	return n, e.search.QueryRow(ctx, "select coalesce(sum(n), 0)::bigint from index_tally").Scan(&n)
}

// countWord counts up to a bound. The bound stands outside of what is planned:
// seeing it, the planner would read the table instead of the index, and with it
// the vector of every document.
var countWord = fmt.Sprintf("with m as materialized (select 1 from documents where words @@ $1::tsquery) select count(*) from (select 1 from m limit %d) t", maxCounted)

func (e *Engine) count(ctx context.Context, term string) (int64, error) {
	f := e.common
	now := time.Now()
	f.mu.Lock()
	known, ok := f.words[term]
	f.mu.Unlock()
	if ok && now.Before(known.till) {
		return known.n, nil
	}
	var n int64
	err := e.search.QueryRow(ctx, countWord, term).Scan(&n)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.words) >= maxWords {
		clear(f.words)
	}
	f.words[term] = frequency{n, now.Add(wordsValid)}
	return n, nil
}
