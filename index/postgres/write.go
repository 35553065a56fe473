package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store/postgres"
)

// databaseText makes a string one that the database takes.
func databaseText(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", " ")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func clampUnit(v float64) float64 {
	if !(v > 0) { // NaN, too
		return 0
	}
	return min(1, v)
}

type key struct{ host, url int64 }

func (k key) compareKeys(o key) int {
	return cmp.Or(cmp.Compare(k.host, o.host), cmp.Compare(k.url, o.url))
}

// entry is a document to be written, or one to be removed.
type entry struct {
	key
	*index.Document
	words   string
	version int64 // of the page, 0 if it is not known
	removed int64 // since when, in milliseconds since 1970; 0 for a document to be written
}

// batchEntries checks the documents of a batch, keeps the last of each ID and finds its
// words. They are sorted by key, so that transactions lock in one order.
func (e *Engine) batchEntries(b index.Batch, now time.Time) ([]entry, error) {
	last := make(map[key]entry, len(b.Put)+len(b.Delete))
	for _, id := range b.Delete {
		host, url := keyOf(id)
		k := key{host, url}
		last[k] = entry{key: k, Document: &index.Document{ID: databaseText(id), Date: time.Unix(0, 0)}, version: b.Versions[id], removed: now.UnixMilli()}
	}
	for i := range b.Put {
		d := &b.Put[i]
		if d.ID == "" {
			return nil, errors.New("a document needs an ID")
		}
		if databaseText(d.ID) != d.ID {
			return nil, fmt.Errorf("%q is no ID: it is not UTF-8 without zeros", d.ID)
		}
		host, url := keyOf(d.ID)
		k := key{host, url}
		last[k] = entry{key: k, Document: d, version: b.Versions[d.ID]}
	}
	out := make([]entry, 0, len(last))
	for _, x := range last {
		if x.removed == 0 {
			x.words = e.documentVector(x.Document)
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b entry) int { return a.compareKeys(b.key) })
	return out, nil
}

// entryColumns are entries as the statements take them.
func entryColumns(all []entry) []any {
	return []any{
		entryColumn(all, func(e *entry) int64 { return e.host }), entryColumn(all, func(e *entry) int64 { return e.url }), entryColumn(all, func(e *entry) string { return e.ID }),
		entryColumn(all, func(e *entry) string { return databaseText(e.Kind) }), entryColumn(all, func(e *entry) string { return databaseText(e.Type) }),
		entryColumn(all, func(e *entry) string { return databaseText(e.Host) }), entryColumn(all, func(e *entry) string { return databaseText(e.Lang) }),
		entryColumn(all, func(e *entry) string { return databaseText(e.Title) }), entryColumn(all, func(e *entry) string { return databaseText(e.Body) }),
		entryColumn(all, func(e *entry) int64 { return e.Date.Unix() }), entryColumn(all, func(e *entry) int64 { return e.Size }),
		entryColumn(all, func(e *entry) float64 { return clampUnit(e.Popularity) }), entryColumn(all, func(e *entry) string { return databaseText(e.Same) }),
		entryColumn(all, func(e *entry) string { return e.words }), entryColumn(all, func(e *entry) int64 { return e.version }), entryColumn(all, func(e *entry) int64 { return e.removed }),
	}
}

// entryColumn makes an array of one field of some entries.
func entryColumn[R, V any](rows []R, f func(*R) V) []V {
	out := make([]V, len(rows))
	for i := range rows {
		out[i] = f(&rows[i])
	}
	return out
}

const (
	rows = `unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[],
	$12::double precision[], $13::text[], $14::text[], $15::bigint[], $16::bigint[])
	as t (host, url, id, kind, type, hostname, lang, title, body, date, size, popularity, same, words, version, removed)`
	insert = `
insert into documents (host, url, id, kind, type, hostname, lang, title, body, date, size, popularity, same, words, version, removed)
select host, url, id, kind, type, hostname, lang, title, body, date, size, popularity, same, words::tsvector, version, removed from ` + rows + `
on conflict (host, url) do nothing returning host, url`
	replace = `
update documents d set id = t.id, kind = t.kind, type = t.type, hostname = t.hostname, lang = t.lang, title = t.title, body = t.body, date = t.date, size = t.size,
	popularity = t.popularity, same = t.same, words = t.words::tsvector, version = t.version, removed = t.removed from ` + rows + ` where d.host = t.host and d.url = t.url`
	remove   = "delete from documents d using unnest($1::bigint[], $2::bigint[]) as t (host, url) where d.host = t.host and d.url = t.url"
	lockThem = `
select d.host, d.url, d.version, d.removed from documents d join unnest($1::bigint[], $2::bigint[]) as t (host, url) on d.host = t.host and d.url = t.url
order by d.host, d.url for update of d`
	forgetRemoved = "delete from documents where (host, url) in (select host, url from documents where removed > 0 and removed < $1 order by removed limit 1000 for update skip locked)"
	rerank        = `
update documents d set popularity = t.popularity from unnest($1::bigint[], $2::bigint[], $3::double precision[]) as t (host, url, popularity)
where d.host = t.host and d.url = t.url and d.removed = 0 and abs(d.popularity - t.popularity) >= $4`
)

// Apply implements index.Engine. Of several nodes that write one document, the one
// with the latest version of the page wins, in whatever order they come.
func (e *Engine) Apply(ctx context.Context, b index.Batch) error {
	e.apply.Lock()
	defer e.apply.Unlock()
	now := time.Now()
	all, err := e.batchEntries(b, now)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	err = postgres.Retry(ctx, e.config.Patience, func() error {
		return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error { return e.writeEntries(ctx, tx, all, b.Cursor) })
	})
	if err != nil {
		return fmt.Errorf("index: write %d documents: %w", len(b.Put), err)
	}
	e.noteAdded(ctx, len(b.Put))
	if now.Sub(e.forgotten) > forgetEvery {
		e.forgotten = now
		return e.forgetRemoved(ctx, now.Add(-removedKept))
	}
	return nil
}

const (
	// removedKept is how long the version of a removed document is known: far longer
	// than a node takes from reading a page's record to writing its document.
	removedKept = 7 * 24 * time.Hour
	forgetEvery = time.Hour
)

// forgetRemoved deletes what is left of documents that were removed before a time.
func (e *Engine) forgetRemoved(ctx context.Context, before time.Time) error {
	for {
		var n int64
		err := e.retryQuery(ctx, func() error {
			tag, err := e.pool.Exec(ctx, forgetRemoved, before.UnixMilli())
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return fmt.Errorf("index: forget removed documents: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
}

// writeEntries is one transaction for the whole batch. A row that another node inserted
// meanwhile is met in a further round.
func (e *Engine) writeEntries(ctx context.Context, tx pgx.Tx, all []entry, cursor []byte) error {
	if e.pack && len(all) > 0 { // LZ4 costs the server less than its own way; tidy sorts words in
		var q pgx.Batch
		q.Queue("set local default_toast_compression = 'lz4'")
		q.Queue("set local gin_pending_list_limit = '64MB'")
		if err := tx.SendBatch(ctx, &q).Close(); err != nil {
			return err
		}
	}
	n := int64(0)
	for len(all) > 0 {
		met, added, err := e.writeRound(ctx, tx, all)
		if err != nil {
			return err
		}
		all, n = met, n+added
	}
	var q pgx.Batch
	if n != 0 {
		q.Queue("insert into index_tally (id, n) values ($1, $2)", int64(rand.Uint64()), n)
	}
	if len(cursor) > 0 {
		q.Queue("insert into index_cursors (lane, cursor) values ($1, $2) on conflict (lane) do update set cursor = excluded.cursor", e.config.Lane, cursor)
	}
	return tx.SendBatch(ctx, &q).Close()
}

// writeRound inserts what is not there, and replaces or removes what is there and
// not of a later version. It returns the entries whose rows another node inserted at
// the same moment, and how many documents there are more.
func (e *Engine) writeRound(ctx context.Context, tx pgx.Tx, all []entry) (met []entry, added int64, err error) {
	there, err := lockRows(ctx, tx, all)
	if err != nil {
		return nil, 0, err
	}
	var inserts, replaces, removals []entry
	for _, x := range all {
		old, known := there[x.key]
		switch {
		case !known && x.removed > 0 && x.version <= 1: // no node can have read an earlier record
		case !known:
			inserts = append(inserts, x)
		case x.version > 0 && x.version < old.version:
		case x.removed > 0 && x.version == 0 && old.removed > 0:
		case x.removed > 0 && x.version == 0:
			removals = append(removals, x)
			added--
		default:
			replaces = append(replaces, x)
			added += old.liveCount(-1) + x.liveCount(1)
		}
	}
	if len(removals) > 0 {
		if _, err := tx.Exec(ctx, remove, entryColumn(removals, func(x *entry) int64 { return x.host }), entryColumn(removals, func(x *entry) int64 { return x.url })); err != nil {
			return nil, 0, err
		}
	}
	if len(replaces) > 0 {
		if _, err := tx.Exec(ctx, replace, entryColumns(replaces)...); err != nil {
			return nil, 0, err
		}
	}
	if len(inserts) == 0 {
		return nil, added, nil
	}
	inserted, err := scanKeys(tx.Query(ctx, insert, entryColumns(inserts)...))
	for _, x := range inserts {
		if inserted[x.key] {
			added += x.liveCount(1)
		} else {
			met = append(met, x)
		}
	}
	return met, added, err
}

// liveCount is n for a document, 0 for what is left of a removed one.
func (x entry) liveCount(n int64) int64 {
	if x.removed > 0 {
		return 0
	}
	return n
}

// lockRows locks the rows of entries that are there, in the order of keys, and
// returns their versions: batches of several nodes wait for each other instead of
// failing together.
func lockRows(ctx context.Context, tx pgx.Tx, all []entry) (map[key]entry, error) {
	rows, err := tx.Query(ctx, lockThem, entryColumn(all, func(x *entry) int64 { return x.host }), entryColumn(all, func(x *entry) int64 { return x.url }))
	if err != nil {
		return nil, err
	}
	there := make(map[key]entry, len(all))
	var x entry
	_, err = pgx.ForEachRow(rows, []any{&x.host, &x.url, &x.version, &x.removed}, func() error { there[x.key] = x; return nil })
	return there, err
}

func scanKeys(rows pgx.Rows, err error) (map[key]bool, error) {
	if err != nil {
		return nil, err
	}
	out := map[key]bool{}
	var k key
	_, err = pgx.ForEachRow(rows, []any{&k.host, &k.url}, func() error { out[k] = true; return nil })
	return out, err
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
		lines[i].popularity = clampUnit(p.Popularity)
	}
	slices.SortFunc(lines, func(a, b line) int { return a.compareKeys(b.key) })
	hosts, urls := entryColumn(lines, func(l *line) int64 { return l.host }), entryColumn(lines, func(l *line) int64 { return l.url })
	err := e.retryQuery(ctx, func() error {
		_, err := e.pool.Exec(ctx, rerank, hosts, urls, entryColumn(lines, func(l *line) float64 { return l.popularity }), least)
		return err
	})
	if err != nil {
		return fmt.Errorf("index: popularity of %d documents: %w", len(pages), err)
	}
	return nil
}
