package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store/postgres"
)

// text makes a string one that the database takes.
func text(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", " ")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func clamp(v float64) float64 {
	if !(v > 0) { // NaN, too
		return 0
	}
	return min(1, v)
}

type key struct{ host, url int64 }

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.host, o.host), cmp.Compare(k.url, o.url))
}

// entry is a document to be written.
type entry struct {
	key
	*index.Document
	words string
}

// entries checks the documents, keeps the last of each ID and finds its words.
// They are sorted by key, so that transactions lock in one order.
func (e *Engine) entries(put []index.Document) ([]entry, error) {
	last := make(map[key]*index.Document, len(put))
	for i := range put {
		d := &put[i]
		if d.ID == "" {
			return nil, errors.New("a document needs an ID")
		}
		if text(d.ID) != d.ID {
			return nil, fmt.Errorf("%q is no ID: it is not UTF-8 without zeros", d.ID)
		}
		host, url := keyOf(d.ID)
		last[key{host, url}] = d
	}
	out := make([]entry, 0, len(last))
	for k, d := range last {
		out = append(out, entry{k, d, e.vector(d)})
	}
	slices.SortFunc(out, func(a, b entry) int { return a.compare(b.key) })
	return out, nil
}

// columns are entries as the statements take them.
func columns(all []entry) []any {
	return []any{
		column(all, func(e *entry) int64 { return e.host }), column(all, func(e *entry) int64 { return e.url }), column(all, func(e *entry) string { return e.ID }),
		column(all, func(e *entry) string { return text(e.Kind) }), column(all, func(e *entry) string { return text(e.Type) }),
		column(all, func(e *entry) string { return text(e.Host) }), column(all, func(e *entry) string { return text(e.Lang) }),
		column(all, func(e *entry) string { return text(e.Title) }), column(all, func(e *entry) string { return text(e.Body) }),
		column(all, func(e *entry) int64 { return e.Date.Unix() }), column(all, func(e *entry) int64 { return e.Size }),
		column(all, func(e *entry) float64 { return clamp(e.Popularity) }), column(all, func(e *entry) string { return text(e.Same) }),
		column(all, func(e *entry) string { return e.words }),
	}
}

// column makes an array of one field of some entries.
func column[R, V any](rows []R, f func(*R) V) []V {
	out := make([]V, len(rows))
	for i := range rows {
		out[i] = f(&rows[i])
	}
	return out
}

const (
	rows = `unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[],
	$12::double precision[], $13::text[], $14::text[]) as t (host, url, id, kind, type, hostname, lang, title, body, date, size, popularity, same, words)`
	insert = `
insert into documents (host, url, id, kind, type, hostname, lang, title, body, date, size, popularity, same, words)
select host, url, id, kind, type, hostname, lang, title, body, date, size, popularity, same, words::tsvector from ` + rows + `
on conflict (host, url) do nothing returning host, url`
	replace = `
update documents d set id = t.id, kind = t.kind, type = t.type, hostname = t.hostname, lang = t.lang, title = t.title, body = t.body, date = t.date, size = t.size,
	popularity = t.popularity, same = t.same, words = t.words::tsvector from ` + rows + ` where d.host = t.host and d.url = t.url`
	remove   = "delete from documents d using unnest($1::bigint[], $2::bigint[]) as t (host, url) where d.host = t.host and d.url = t.url"
	lockThem = `
select d.host, d.url from documents d join unnest($1::bigint[], $2::bigint[]) as t (host, url) on d.host = t.host and d.url = t.url
order by d.host, d.url for update of d`
	rerank = `
update documents d set popularity = t.popularity from unnest($1::bigint[], $2::bigint[], $3::double precision[]) as t (host, url, popularity)
where d.host = t.host and d.url = t.url and abs(d.popularity - t.popularity) >= $4`
)

// Apply implements index.Engine.
func (e *Engine) Apply(ctx context.Context, b index.Batch) error {
	e.apply.Lock()
	defer e.apply.Unlock()
	put, err := e.entries(b.Put)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	err = postgres.Retry(ctx, e.config.Patience, func() error {
		return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error { return e.write(ctx, tx, b, put) })
	})
	if err != nil {
		return fmt.Errorf("index: write %d documents: %w", len(b.Put), err)
	}
	e.added(ctx, len(put))
	return nil
}

// write is one transaction for the whole batch: what is to be removed goes, what
// is there already is replaced, the rest is inserted.
func (e *Engine) write(ctx context.Context, tx pgx.Tx, b index.Batch, put []entry) error {
	n := int64(0)
	var gone []key
	for _, id := range b.Delete {
		host, url := keyOf(id)
		gone = append(gone, key{host, url})
	}
	there, err := e.lock(ctx, tx, gone, put)
	if err != nil {
		return err
	}
	if gone = slices.DeleteFunc(gone, func(k key) bool { return !there[k] }); len(gone) > 0 {
		tag, err := tx.Exec(ctx, remove, column(gone, func(k *key) int64 { return k.host }), column(gone, func(k *key) int64 { return k.url }))
		if err != nil {
			return err
		}
		n -= tag.RowsAffected()
		for _, k := range gone {
			delete(there, k)
		}
	}
	if len(put) > 0 {
		added, err := e.put(ctx, tx, put, there)
		if err != nil {
			return err
		}
		n += added
	}
	var q pgx.Batch
	if n != 0 {
		q.Queue("insert into index_tally (id, n) values ($1, $2)", int64(rand.Uint64()), n)
	}
	if len(b.Cursor) > 0 {
		q.Queue("insert into index_cursors (lane, cursor) values ($1, $2) on conflict (lane) do update set cursor = excluded.cursor", e.config.Lane, b.Cursor)
	}
	return tx.SendBatch(ctx, &q).Close()
}

// lock locks what is there of a batch, in the order of keys, and tells what that
// is: a document is sent once, and batches of several nodes wait for each other
// instead of failing together.
func (e *Engine) lock(ctx context.Context, tx pgx.Tx, gone []key, put []entry) (map[key]bool, error) {
	all := slices.Clone(gone)
	for i := range put {
		all = append(all, put[i].key)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return keys(tx.Query(ctx, lockThem, column(all, func(k *key) int64 { return k.host }), column(all, func(k *key) int64 { return k.url })))
}

// put writes documents, of which some are there, and returns how many are new.
func (e *Engine) put(ctx context.Context, tx pgx.Tx, put []entry, there map[key]bool) (added int64, err error) {
	if e.pack { // LZ4 costs the server less than its own way; tidy sorts words in
		var q pgx.Batch
		q.Queue("set local default_toast_compression = 'lz4'")
		q.Queue("set local gin_pending_list_limit = '64MB'")
		if err := tx.SendBatch(ctx, &q).Close(); err != nil {
			return 0, err
		}
	}
	fresh, old := divide(put, there)
	if len(fresh) > 0 {
		inserted, err := keys(tx.Query(ctx, insert, columns(fresh)...))
		if err != nil {
			return 0, err
		}
		added = int64(len(inserted))
		theirs, _ := divide(fresh, inserted) // another node was faster
		old = append(old, theirs...)
	}
	if len(old) > 0 {
		_, err = tx.Exec(ctx, replace, columns(old)...)
	}
	return added, err
}

func keys(rows pgx.Rows, err error) (map[key]bool, error) {
	if err != nil {
		return nil, err
	}
	out := map[key]bool{}
	var k key
	_, err = pgx.ForEachRow(rows, []any{&k.host, &k.url}, func() error { out[k] = true; return nil })
	return out, err
}

// divide tells entries whose keys are in a set from the others.
func divide(all []entry, set map[key]bool) (out, in []entry) {
	for _, e := range all {
		if set[e.key] {
			in = append(in, e)
		} else {
			out = append(out, e)
		}
	}
	return out, in
}

// Rerank changes the popularity of those documents that are there and differ by
// least or more. Neither texts nor words are read or written for it.
func (e *Engine) Rerank(ctx context.Context, pages []index.Popular, least float64) error {
	type line struct {
		key
		popularity float64
	}
	lines := make([]line, len(pages))
	for i, p := range pages {
		lines[i].host, lines[i].url = keyOf(p.ID)
		lines[i].popularity = clamp(p.Popularity)
	}
	slices.SortFunc(lines, func(a, b line) int { return a.compare(b.key) })
	hosts, urls := column(lines, func(l *line) int64 { return l.host }), column(lines, func(l *line) int64 { return l.url })
	err := e.query(ctx, func() error {
		_, err := e.pool.Exec(ctx, rerank, hosts, urls, column(lines, func(l *line) float64 { return l.popularity }), least)
		return err
	})
	if err != nil {
		return fmt.Errorf("index: popularity of %d documents: %w", len(pages), err)
	}
	return nil
}
