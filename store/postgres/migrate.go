package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/freshet/freshet/store"
)

//go:embed schema/*.sql
var schema embed.FS

// Migrate applies the files of a folder named 0001_*.sql and on that a
// database has not seen, each in a transaction of its own. Which were applied
// stands in a table; any number of processes may try at once: who inserts the
// version's row first applies it, the others wait for that row and go on.
func Migrate(ctx context.Context, pool *pgxpool.Pool, table string, files fs.FS) error {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	table = pgx.Identifier{table}.Sanitize()
	err = Retry(ctx, time.Minute, func() error {
		_, err := pool.Exec(ctx, "create table if not exists "+table+" (version integer primary key, name text not null, applied timestamptz not null default now())")
		if isDuplicate(err) { // two made it at once
			return errAgain
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	for version := 0; ; {
		if err := pool.QueryRow(ctx, "select coalesce(max(version), 0) from "+table).Scan(&version); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
		if version > len(names) {
			return fmt.Errorf("%w: its schema has version %d, this program knows %d", store.ErrVersion, version, len(names))
		}
		if version == len(names) {
			return nil
		}
		if err := applyMigration(ctx, pool, files, table, names[version], version+1); err != nil {
			return fmt.Errorf("schema: %s: %w", names[version], err)
		}
	}
}

// applyMigration runs one file, unless another process has done so meanwhile.
func applyMigration(ctx context.Context, pool *pgxpool.Pool, files fs.FS, table, name string, version int) error {
	script, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into "+table+" (version, name) values ($1, $2)", version, name); err != nil {
			return err
		}
		_, err := tx.Conn().PgConn().Exec(ctx, string(script)).ReadAll()
		return err
	})
	if isDuplicate(err) {
		return nil
	}
	return err
}

// isDuplicate reports a violated unique key: of a table, of its name (42P07), or
// of the type that each table has (42710), which of two who create it at once
// one may meet first.
func isDuplicate(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "23505" || pg.Code == "42P07" || pg.Code == "42710")
}

func migrateSchema(ctx context.Context, pool *pgxpool.Pool) error {
	files, err := fs.Sub(schema, "schema")
	if err != nil {
		return err
	}
	return Migrate(ctx, pool, "freshet_store_schema", files)
}
