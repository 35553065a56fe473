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
//
// Several nodes write one document. Its row carries the version of the page's record:
// an older version neither replaces nor removes a newer one, and a removed document
// leaves a row with its version for removedKept.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
	pool      *pgxpool.Pool
	own       bool          // the pool
	search    *pgxpool.Pool // for what searches ask
	config    Config
	apply     sync.Mutex
	forgotten time.Time // when removed documents were forgotten; with apply
	tidy      tidy
	common    *frequencies
	pack      bool // the server is PostgreSQL with LZ4
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
	e := &Engine{pool: pool, config: c, common: newFrequencies()}
	// A server that restarts at this moment is waited for.
	err = postgres.Retry(ctx, c.Patience, func() error { return postgres.Migrate(ctx, pool, "freshet_index_schema", files) })
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	// An engine that has no such setting packs in its own way.
	const packs = "select exists (select 1 from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals))"
	if err := postgres.Retry(ctx, c.Patience, func() error { return pool.QueryRow(ctx, packs).Scan(&e.pack) }); err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	if e.pack {
		e.storeTextsApart(ctx)
	}
	if e.search, err = searchPool(ctx, pool, c.Patience); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return e, nil
}

// storeTextsApart has texts and vectors stored beside the table's rows and not in them, as
// far as PostgreSQL can be told: a search reads the rows of all that matches, and
// finds some twenty in the space of two. Rows written before stay as they are.
func (e *Engine) storeTextsApart(ctx context.Context) {
	const told = "select exists (select 1 from pg_class where oid = 'documents'::regclass and 'toast_tuple_target=256' = any(reloptions))"
	var done bool
	if err := e.pool.QueryRow(ctx, told).Scan(&done); err != nil || done {
		return
	}
	_, _ = e.pool.Exec(ctx, "alter table documents set (toast_tuple_target = 256)") // slower without
}

// searchers is how many searches are answered at once.
const searchers = 8

// searchTime is how long the server works on one statement of a search. The
// server ends it even if this process is gone.
const searchTime = 10 * time.Second

// searchPool makes connections whose planner is told to read indexes and not the
// whole table. It thinks a table cheap to read whole, since it does not count
// the vectors that are stored beside it, and an index dear to which much was
// added lately: searches were 200 times slower for it. An engine that does not
// know the option plans by itself.
func searchPool(ctx context.Context, pool *pgxpool.Pool, patience time.Duration) (*pgxpool.Pool, error) {
	c := pool.Config()
	c.MaxConns = searchers
	c.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(searchTime.Milliseconds(), 10)
	var value string
	var answer *pgconn.PgError
	err := postgres.Retry(ctx, patience, func() error { return pool.QueryRow(ctx, "show enable_seqscan").Scan(&value) })
	if err == nil {
		c.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	} else if !errors.As(err, &answer) {
		return nil, err
	}
	return pgxpool.NewWithConfig(ctx, c)
}

// Close implements index.Engine.
func (e *Engine) Close() error {
	e.stopTidying()
	e.search.Close()
	if e.own {
		e.pool.Close()
	}
	return nil
}

// keyOf returns the key of a document, which is its URL's key.
func keyOf(id string) (host, url int64) {
	u, err := weburl.Parse(id)
	if err != nil { // no page: spread by its own hash
		h := weburl.HostKey(id)
		return postgres.Half(h[:]), postgres.Half(h[:])
	}
	k := u.Key()
	return postgres.Half(k[:8]), postgres.Half(k[8:])
}

// Cursor implements index.Engine.
func (e *Engine) Cursor(ctx context.Context) (cursor []byte, err error) {
	err = e.retryQuery(ctx, func() error {
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

// retryQuery tries again what only reads.
func (e *Engine) retryQuery(ctx context.Context, f func() error) error {
	return postgres.Retry(ctx, e.config.Patience, f)
}

const document = "id, kind, type, hostname, lang, title, body, date, size, popularity, same"

func scanDocument(r pgx.Row) (*index.Document, error) {
	var d index.Document
	var date int64
	err := r.Scan(&d.ID, &d.Kind, &d.Type, &d.Host, &d.Lang, &d.Title, &d.Body, &date, &d.Size, &d.Popularity, &d.Same)
	d.Date = time.Unix(date, 0)
	return &d, err
}

// Document implements index.Engine.
func (e *Engine) Document(ctx context.Context, id string) (d *index.Document, err error) {
	host, url := keyOf(id)
	err = e.retryQuery(ctx, func() (err error) {
		d, err = scanDocument(e.pool.QueryRow(ctx, "select "+document+" from documents where host = $1 and url = $2 and removed = 0", host, url))
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

// idSlice is how many IDs are read at once.
const idSlice = 5000

// IDs implements index.Engine.
func (e *Engine) IDs(ctx context.Context, f func(id string) error) error {
	host, url := int64(math.MinInt64), int64(math.MinInt64)
	for {
		var ids []string
		h, u := host, url
		err := e.retryQuery(ctx, func() error {
			rows, err := e.pool.Query(ctx, "select host, url, id from documents where (host, url) > ($1, $2) and removed = 0 order by host, url limit $3", host, url, idSlice)
			if err != nil {
				return err
			}
			ids = ids[:0]
			var id string
			_, err = pgx.ForEachRow(rows, []any{&h, &u, &id}, func() error { ids = append(ids, id); return nil })
			return err
		})
		if err != nil {
			return fmt.Errorf("index: list documents: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		host, url = h, u
		for _, id := range ids {
			if err := f(id); err != nil {
				return err
			}
		}
	}
}

// bytesUnknown is what a document takes where the engine cannot tell: text,
// vector and index of one of 2.5 KB.
const bytesUnknown = 6000

const fold = `
with old as (delete from index_tally where id in (select id from index_tally limit 10000 for update skip locked) returning n)
insert into index_tally (id, n) select $1, coalesce(sum(n), 0)::bigint from old`

// Stats implements index.Engine.
func (e *Engine) Stats(ctx context.Context) (s index.Stats, err error) {
	err = e.retryQuery(ctx, func() error {
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
