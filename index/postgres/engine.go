// Package postgres is the text engine in a database that many processes share:
// whichever node is asked, it finds what all of them have indexed.
//
// Words come from index/analysis, as in the embedded engine, and are stored as a
// tsvector with their places under a GIN index; PostgreSQL's own parsers and
// dictionaries are not used, so that both engines agree on what a word is. A
// query becomes one boolean expression over that column, and ranges.
//
// The score sums over the words of the query idf x ts_rank, which saturates with
// the number of occurrences as BM25 does and counts a word of the title
// index.TitleWeight times one of the body. How many documents have a word is
// counted up to a bound and remembered. Of more than RankDepth matches only the
// most popular are ranked by their words: a ranking of all would read the vector
// of each.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/weburl"
)

// Config are the engine's options. The zero value is usable.
type Config struct {
	// Lane names whose cursor is kept: the node.
	Lane string
	// Join is the cursor of a lane that is new to an index that others have
	// filled; an empty index has none.
	Join []byte
	// Languages are tried as the language of every query word. Default en, ru, lt.
	Languages []string
	// Patience is for how long an operation is tried again while the server
	// cannot be reached. Default 30 s.
	Patience time.Duration
}

// RankDepth is how many matches are ranked by their words.
const RankDepth = 2000

// Engine is an index.Engine over PostgreSQL.
type Engine struct {
	pool   *pgxpool.Pool
	own    bool          // the pool
	search *pgxpool.Pool // for what searches ask
	config Config
	apply  sync.Mutex
	common *frequencies
}

var _ index.Engine = (*Engine)(nil)

//go:embed schema/*.sql
var schema embed.FS

// Open connects to a database and brings the schema up to date.
func Open(ctx context.Context, address string, c Config) (*Engine, error) {
	pool, err := postgres.Connect(ctx, address, 8, 0)
	if err != nil {
		return nil, err
	}
	e, err := New(ctx, pool, c)
	if err != nil {
		pool.Close()
		return nil, err
	}
	e.own = true
	return e, nil
}

// New is Open on connections of somebody else, who closes them.
func New(ctx context.Context, pool *pgxpool.Pool, c Config) (*Engine, error) {
	if len(c.Languages) == 0 {
		c.Languages = []string{"en", "ru", "lt"}
	}
	if c.Patience <= 0 {
		c.Patience = 30 * time.Second
	}
	files, err := fs.Sub(schema, "schema")
	if err != nil {
		return nil, err
	}
	if err := postgres.Migrate(ctx, pool, "freshet_index_schema", files); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	e := &Engine{pool: pool, config: c, common: newFrequencies()}
	if e.search, err = searching(ctx, pool); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return e, nil
}

// searchers is how many searches are answered at once.
const searchers = 8

// searching makes connections whose planner is told to read indexes and not the
// whole table. It thinks a table cheap to read whole, since it does not count
// the vectors that are stored beside it, and an index dear to which much was
// added lately: searches were 200 times slower for it. An engine that does not
// know the option plans by itself.
func searching(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	c := pool.Config()
	c.MaxConns = searchers
	var value string
	if err := pool.QueryRow(ctx, "show enable_seqscan").Scan(&value); err == nil {
		c.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	} else if ctx.Err() != nil {
		return nil, err
	}
	return pgxpool.NewWithConfig(ctx, c)
}

// Close implements index.Engine.
func (e *Engine) Close() error {
	e.search.Close()
	if e.own {
		e.pool.Close()
	}
	return nil
}

// keyOf is the key of a document: that of its URL.
func keyOf(id string) (host, url int64) {
	u, err := weburl.Parse(id)
	if err != nil { // no page: spread by its own hash
		h := weburl.HostKey(id)
		return postgres.Half(h[:]), postgres.Half(h[:])
	}
	k := u.Key()
	return postgres.Half(k[:8]), postgres.Half(k[8:])
}

// text makes a string one that the database takes.
func text(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", " ")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// columns of documents, by column.
type columns struct {
	hosts, urls                                                         []int64
	ids, kinds, types, hostnames, langs, titles, bodies, sames, vectors []string
	dates, sizes                                                        []int64
	popularity                                                          []float64
}

func (c *columns) add(d *index.Document, vector string) {
	host, url := keyOf(d.ID)
	c.hosts, c.urls = append(c.hosts, host), append(c.urls, url)
	c.ids, c.kinds, c.types = append(c.ids, d.ID), append(c.kinds, text(d.Kind)), append(c.types, text(d.Type))
	c.hostnames, c.langs = append(c.hostnames, text(d.Host)), append(c.langs, text(d.Lang))
	c.titles, c.bodies = append(c.titles, text(d.Title)), append(c.bodies, text(d.Body))
	c.dates, c.sizes = append(c.dates, d.Date.Unix()), append(c.sizes, d.Size)
	c.popularity, c.sames = append(c.popularity, clamp(d.Popularity)), append(c.sames, text(d.Same))
	c.vectors = append(c.vectors, vector)
}

func (c *columns) args() []any {
	return []any{c.hosts, c.urls, c.ids, c.kinds, c.types, c.hostnames, c.langs, c.titles, c.bodies, c.dates, c.sizes, c.popularity, c.sames, c.vectors}
}

func clamp(v float64) float64 {
	if !(v > 0) { // NaN, too
		return 0
	}
	return min(1, v)
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
	remove = "delete from documents d using unnest($1::bigint[], $2::bigint[]) as t (host, url) where d.host = t.host and d.url = t.url"
)

// Apply implements index.Engine.
func (e *Engine) Apply(ctx context.Context, b index.Batch) error {
	e.apply.Lock()
	defer e.apply.Unlock()
	put, err := e.unique(b.Put)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	err = postgres.Retry(ctx, e.config.Patience, func() error {
		return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error { return e.write(ctx, tx, b, put) })
	})
	if err != nil {
		return fmt.Errorf("index: write %d documents: %w", len(b.Put), err)
	}
	if len(b.Put) > 0 {
		// What was added waits in a list that every search reads from end to end, until
		// it is sorted into the index: now, at once for all of the batch. Engines
		// without such a list do not know the function.
		_, _ = e.pool.Exec(ctx, "select gin_clean_pending_list('documents_words')")
	}
	return nil
}

type key struct{ host, url int64 }

// unique checks the documents and keeps the last of each ID.
func (e *Engine) unique(put []index.Document) (map[key]*index.Document, error) {
	out := make(map[key]*index.Document, len(put))
	for i := range put {
		d := &put[i]
		if d.ID == "" {
			return nil, errors.New("a document needs an ID")
		}
		if text(d.ID) != d.ID {
			return nil, fmt.Errorf("%q is no ID: it is not UTF-8 without zeros", d.ID)
		}
		host, url := keyOf(d.ID)
		out[key{host, url}] = d
	}
	return out, nil
}

func (e *Engine) write(ctx context.Context, tx pgx.Tx, b index.Batch, put map[key]*index.Document) error {
	// Words are found between the statements, which takes longer than the half of a
	// short lease that a connection may be silent; no host waits for these rows.
	if _, err := tx.Exec(ctx, "set local idle_in_transaction_session_timeout = '10s'"); err != nil {
		return err
	}
	n := int64(0)
	if len(b.Delete) > 0 {
		var hosts, urls []int64
		for _, id := range b.Delete {
			host, url := keyOf(id)
			hosts, urls = append(hosts, host), append(urls, url)
		}
		tag, err := tx.Exec(ctx, remove, hosts, urls)
		if err != nil {
			return err
		}
		n -= tag.RowsAffected()
	}
	if len(put) > 0 {
		vectors := make(map[key]string, len(put))
		var all columns
		for k, d := range put {
			vectors[k] = e.vector(d)
			all.add(d, vectors[k])
		}
		added, err := tx.Query(ctx, insert, all.args()...)
		if err != nil {
			return err
		}
		var k key
		_, err = pgx.ForEachRow(added, []any{&k.host, &k.url}, func() error { n++; delete(vectors, k); return nil })
		if err != nil {
			return err
		}
		if len(vectors) > 0 { // those that were there before
			var known columns
			for k, v := range vectors {
				known.add(put[k], v)
			}
			if _, err := tx.Exec(ctx, replace, known.args()...); err != nil {
				return err
			}
		}
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

// Cursor implements index.Engine.
func (e *Engine) Cursor(ctx context.Context) (cursor []byte, err error) {
	err = e.query(ctx, func() error {
		var others bool
		err := e.pool.QueryRow(ctx, "select (select cursor from index_cursors where lane = $1), exists (select 1 from index_cursors)", e.config.Lane).Scan(&cursor, &others)
		if err == nil && cursor == nil && others {
			cursor = e.config.Join
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("index: cursor: %w", err)
	}
	return cursor, nil
}

// query tries again what only reads.
func (e *Engine) query(ctx context.Context, f func() error) error {
	return postgres.Retry(ctx, e.config.Patience, f)
}

const document = "id, kind, type, hostname, lang, title, body, date, size, popularity, same"

func scan(r pgx.Row) (*index.Document, error) {
	var d index.Document
	var date int64
	err := r.Scan(&d.ID, &d.Kind, &d.Type, &d.Host, &d.Lang, &d.Title, &d.Body, &date, &d.Size, &d.Popularity, &d.Same)
	d.Date = time.Unix(date, 0)
	return &d, err
}

// Document implements index.Engine.
func (e *Engine) Document(ctx context.Context, id string) (d *index.Document, err error) {
	host, url := keyOf(id)
	err = e.query(ctx, func() (err error) {
		d, err = scan(e.pool.QueryRow(ctx, "select "+document+" from documents where host = $1 and url = $2", host, url))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%s: %w", id, index.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("index: document %s: %w", id, err)
	}
	return d, nil
}

// bytesUnknown is what a document takes where the engine cannot tell: text,
// vector and index of one of 2.5 KB.
const bytesUnknown = 6000

const fold = `
with old as (delete from index_tally where id in (select id from index_tally limit 10000 for update skip locked) returning n)
insert into index_tally (id, n) select $1, coalesce(sum(n), 0)::bigint from old`

// Stats implements index.Engine.
func (e *Engine) Stats(ctx context.Context) (s index.Stats, err error) {
	err = e.query(ctx, func() error {
		var n, parts int64
		if err := e.pool.QueryRow(ctx, "select coalesce(sum(n), 0)::bigint, count(*) from index_tally").Scan(&n, &parts); err != nil {
			return err
		}
		s.Documents = uint64(max(0, n))
		if parts > 200 {
			if _, err := e.pool.Exec(ctx, fold, int64(rand.Uint64())); err != nil {
				return err
			}
		}
		var size int64
		if err := e.pool.QueryRow(ctx, "select pg_total_relation_size('documents')").Scan(&size); err != nil {
			size = n * bytesUnknown // an engine without this function
		}
		s.DiskBytes = uint64(max(0, size))
		return ctx.Err()
	})
	if err != nil {
		return s, fmt.Errorf("index: count: %w", err)
	}
	return s, nil
}
