package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/query"
)

// maxTerms bounds how many words of a query count for the score.
const maxTerms = 16

// Search implements index.Engine.
func (e *Engine) Search(ctx context.Context, r index.Request) (*index.Results, error) {
	start := time.Now()
	r = r.Bounded()
	if err := query.CheckBounds(r.Query); err != nil {
		return nil, err
	}
	c := &condition{languages: e.config.Languages}
	where := c.whereClause(r.Query)
	out := &index.Results{}
	var hits []index.Scored
	err := e.retryQuery(ctx, func() (err error) {
		out.Total, hits, out.Facets, err = e.rankMatches(ctx, r, where, c)
		return err
	})
	var docs map[string]*index.Document
	if err == nil {
		err = e.retryQuery(ctx, func() (err error) {
			docs, err = e.loadDocuments(ctx, hits[:min(len(hits), index.Spare(r.Offset+r.Limit))])
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

// rankMatches returns how many documents match, the best of them and, where they are
// asked for and the matches not too many, the facets. It is one statement, so that
// matches are looked for once and all is of one moment.
func (e *Engine) rankMatches(ctx context.Context, r index.Request, where string, c *condition) (total int, hits []index.Scored, facets map[string][]index.Count, err error) {
	score := "1.0"
	args := c.args
	if terms := c.terms[:min(len(c.terms), maxTerms)]; len(terms) > 0 && !r.ByDate {
		weights, err := e.inverseFrequencies(ctx, terms)
		if err != nil {
			return 0, nil, nil, err
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
	best := fmt.Sprintf("select id, 0::double precision as score, date from m order by date desc, id limit %d", depth)
	if !r.ByDate {
		w := r.Ranking
		args = append(args, w.PopularityWeight, w.FreshnessWeight, w.HalfLife.Seconds(), float64(r.Now.Unix()))
		n := len(args)
		boost := fmt.Sprintf("(1 + $%d::double precision * popularity) * (1 - $%d::double precision * (1 - power(2::double precision, -least(1000, greatest(0, $%d::double precision - date) / $%d::double precision))))", n-3, n-2, n, n-1)
		best = fmt.Sprintf(`select d.id, %s * %s as score, 0::bigint as date from (select host, url from m order by popularity desc, date desc, host, url limit %d) b
	join documents d on d.host = b.host and d.url = b.url order by score desc, d.id limit %d`, score, boost, max(RankDepth, depth), max(depth, index.RerankDepth))
	}
	statement := fmt.Sprintf(`
with m as materialized (
	select host, url, id, popularity, date, hostname, type, lang, kind from documents where removed = 0 and (%s)
), size as materialized (
	select count(*) as total from m
), best as (
	%s
)
select size.total, '' as field, best.id, best.score, row_number() over (order by best.score desc, best.date desc, best.id) as n from best, size`, where, best)
	if r.Facets {
		for _, f := range [][2]string{{"host", "hostname"}, {"type", "type"}, {"lang", "lang"}, {"kind", "kind"}} {
			statement += fmt.Sprintf(`
union all (select 0, '%s', %s, 0, count(*) from m, size where %s <> '' and size.total <= %d group by %s order by count(*) desc, %s limit %d)`,
				f[0], f[1], f[1], index.MaxFaceted, f[1], f[1], index.FacetSize)
		}
	}
	return e.collectRanking(ctx, statement, args)
}

// titleUnit is the weight of a word outside the title relative to one in it.
const titleUnit = 1. / index.TitleWeight

// collectRanking reads the lines of a ranking: those of documents have no field, and the
// number of their place.
func (e *Engine) collectRanking(ctx context.Context, statement string, args []any) (total int, hits []index.Scored, facets map[string][]index.Count, err error) {
	rows, err := e.search.Query(ctx, statement, args...)
	if err != nil {
		return 0, nil, nil, err
	}
	var all, n int
	var field string
	var h index.Scored
	type placed struct {
		index.Scored
		n int
	}
	var found []placed
	_, err = pgx.ForEachRow(rows, []any{&all, &field, &h.ID, &h.Score, &n}, func() error {
		if field == "" {
			total, found = all, append(found, placed{h, n})
			return nil
		}
		if facets == nil {
			facets = map[string][]index.Count{}
		}
		facets[field] = append(facets[field], index.Count{Value: h.ID, Count: n})
		return nil
	})
	for _, counts := range facets {
		slices.SortFunc(counts, func(a, b index.Count) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Value, b.Value)) })
	}
	slices.SortFunc(found, func(a, b placed) int { return a.n - b.n })
	for _, f := range found {
		hits = append(hits, f.Scored)
	}
	return total, hits, facets, err
}

// loadDocuments fetches documents at once.
func (e *Engine) loadDocuments(ctx context.Context, hits []index.Scored) (map[string]*index.Document, error) {
	var hosts, urls []int64
	for _, h := range hits {
		host, url := keyOf(h.ID)
		hosts, urls = append(hosts, host), append(urls, url)
	}
	rows, err := e.search.Query(ctx, "select "+document+" from documents d join unnest($1::bigint[], $2::bigint[]) as t (h, u) on d.host = t.h and d.url = t.u and d.removed = 0", hosts, urls)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*index.Document, len(hits))
	docs, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (*index.Document, error) { return scanDocument(r) })
	for _, d := range docs {
		out[d.ID] = d
	}
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

// inverseFrequencies weighs words by their rarity, as BM25 does: ln(1 + (N - n + 1/2)/(n + 1/2)).
func (e *Engine) inverseFrequencies(ctx context.Context, terms []string) ([]float64, error) {
	out := make([]float64, len(terms))
	if len(terms) == 1 { // it changes no order
		out[0] = 1
		return out, nil
	}
	s, err := e.documentCount(ctx)
	if err != nil {
		return nil, err
	}
	for i, t := range terms {
		n, err := e.cachedFrequency(ctx, t)
		if err != nil {
			return nil, err
		}
		n = min(n, s)
		out[i] = math.Log1p((float64(s-n) + .5) / (float64(n) + .5))
	}
	return out, nil
}

func (e *Engine) documentCount(ctx context.Context) (n int64, err error) {
	return n, e.search.QueryRow(ctx, "select coalesce(sum(n), 0)::bigint from index_tally").Scan(&n)
}

// countWord counts up to a bound. The bound stands outside of what is planned:
// seeing it, the planner would read the table instead of the index, and with it
// the vector of every document.
var countWord = fmt.Sprintf("with m as materialized (select 1 from documents where words @@ $1::tsquery) select count(*) from (select 1 from m limit %d) t", maxCounted)

func (e *Engine) cachedFrequency(ctx context.Context, term string) (int64, error) {
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
