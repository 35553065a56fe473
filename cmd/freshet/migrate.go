package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/progress"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/dump"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/store/postgres"
)

// migrateCmd copies a store from one engine to another.
type migrateCmd struct {
	From string `arg:"" help:"Data directory, or postgres://... address."`
	To   string `arg:"" help:"Data directory, or postgres://... address; it must hold no pages."`
}

// Help says what is not copied.
func (migrateCmd) Help() string {
	return "Copies all records: hosts with their politeness, pages with their history and place in the queue, links, log of visits, settings. Bodies stay where they are: keep the folder warc of the data directory. The text index is built anew from both at the next start. Nothing may work on either side meanwhile."
}

// anyStore is a store of either engine.
type anyStore interface {
	store.Store
	store.Source
	store.Target
}

func isDatabase(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// openAny opens the store at an address or in a data directory, which a source
// must have already.
func openAny(ctx context.Context, where string, source bool) (anyStore, error) {
	if isDatabase(where) {
		s, err := postgres.Open(ctx, where, postgres.Config{Connections: 4})
		if err != nil {
			return nil, err
		}
		if err := s.Idle(ctx, time.Now().UnixMilli()); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	dir := filepath.Join(where, "store")
	if _, err := os.Stat(dir); source && err != nil {
		return nil, command.Usagef("%s is neither a postgres:// address nor a data directory with a store: %w", where, err)
	}
	s, err := local.Open(dir, local.Config{})
	if errors.Is(err, store.ErrLocked) {
		err = fmt.Errorf("%w: stop it first (freshet stop)", err)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Run copies.
func (c *migrateCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	keepFilesPrivate()
	if c.From == c.To {
		return command.Usagef("migrate: both are %s", c.From)
	}
	from, err := openAny(ctx, c.From, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openAny(ctx, c.To, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	start := time.Now()
	n, err := copyStore(ctx, g, from, to)
	if errors.Is(err, store.ErrNotEmpty) {
		return fmt.Errorf("%s: %w: give another, or remove what is there", withoutPassword(c.To), err)
	}
	if err != nil {
		return err
	}
	return reportCopy(g, "copied", n, nil, start)
}

// withoutPassword is an address without its password.
func withoutPassword(where string) string {
	if i, j := strings.Index(where, "://"), strings.LastIndexByte(where, '@'); isDatabase(where) && j > i {
		return where[:i+3] + where[j+1:]
	}
	return where
}

func copyStore(ctx context.Context, g *command.Globals, from store.Source, to store.Target) (store.Copied, error) {
	line := progressLine(g)
	defer line.Done("")
	return store.Copy(ctx, from, to, copyProgress(line))
}

func copyProgress(line *progress.Line) func(store.Copied) {
	return func(n store.Copied) {
		line.Update(n.Pages, 0, fmt.Sprintf("%d hosts  %d pages  %d with links  %d visits", n.Hosts, n.Pages, n.Links, n.Visits))
	}
}

// line is the progress line of a command.
func progressLine(g *command.Globals) *progress.Line {
	if g.Quiet {
		return progress.New(nil)
	}
	return progress.New(g.Stderr)
}

// reportCopy ends a copy.
func reportCopy(g *command.Globals, what string, n store.Copied, files *filesCopied, start time.Time) error {
	seconds := time.Since(start).Seconds()
	if g.JSON {
		out := map[string]any{"hosts": n.Hosts, "pages": n.Pages, "linking_pages": n.Links, "visits": n.Visits, "settings": n.Settings, "seconds": seconds}
		if files != nil {
			out["files"], out["files_copied"], out["bytes_copied"] = files.all, files.copied, files.bytes
		}
		return g.PrintJSON(out)
	}
	fmt.Fprintf(g.Stdout, "%s: %d hosts, %d pages, links of %d pages, %d visits in %.1f s\n", what, n.Hosts, n.Pages, n.Links, n.Visits, seconds)
	if n.LeftOut > 0 {
		fmt.Fprintf(g.Stdout, "%d pages and visits were left out: their URLs are not in standard form\n", n.LeftOut)
	}
	if files != nil {
		fmt.Fprintf(g.Stdout, "bodies: %d of %d files were new, %d bytes\n", files.copied, files.all, files.bytes)
	}
	return nil
}

// Names in a backup.
const (
	backupStore = "store.jsonl.zst"
	backupWARC  = "warc"
)

// backupCmd saves store and bodies in a folder.
type backupCmd struct {
	To       string `arg:"" help:"Folder of the backup; a second backup into it copies only new bodies." type:"path"`
	Database string `help:"postgres://... of the nodes, which may go on working; else the data directory, whose process must be stopped." placeholder:"URL" env:"FRESHET_DATABASE"`
	Warc     string `help:"Folder of the WARC files (default: in the data directory)." placeholder:"DIR"`
}

// Run saves.
func (c *backupCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	keepFilesPrivate()
	dir, err := g.DataDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.To, 0o750); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	start := time.Now()
	from, end, err := c.backupSource(ctx, dir)
	if err != nil {
		return err
	}
	n, err := saveDump(ctx, g, from, filepath.Join(c.To, backupStore), start)
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	warc := c.Warc
	if warc == "" {
		warc = filepath.Join(dir, "warc")
	}
	files, err := copyFiles(ctx, warc, filepath.Join(c.To, backupWARC)) // after the records: none is without its body
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return reportCopy(g, "saved", n, files, start)
}

// backupSource is what is saved: of a database its state at this moment.
func (c *backupCmd) backupSource(ctx context.Context, dir string) (store.Source, func() error, error) {
	if c.Database == "" {
		s, err := openAny(ctx, dir, true)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	s, err := postgres.Open(ctx, c.Database, postgres.Config{Connections: 2})
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := s.Snapshot(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return snapshot, func() error { return errors.Join(snapshot.Close(context.WithoutCancel(ctx)), s.Close()) }, nil
}

// saveDump writes the records to a file that takes its name when it is whole.
func saveDump(ctx context.Context, g *command.Globals, from store.Source, path string, now time.Time) (n store.Copied, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".store-*")
	if err != nil {
		return n, fmt.Errorf("backup: %w", err)
	}
	defer os.Remove(f.Name())
	w, err := dump.NewWriter(f, now)
	if err == nil {
		n, err = copyStore(ctx, g, from, w)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return n, fmt.Errorf("backup: %w", err)
	}
	return n, os.Rename(f.Name(), path)
}

// restoreCmd is the way back.
type restoreCmd struct {
	From     string `arg:"" help:"Folder of the backup." type:"existingdir"`
	Database string `help:"postgres://... to restore the records into instead of the data directory." placeholder:"URL" env:"FRESHET_DATABASE"`
	Warc     string `help:"Folder of the WARC files (default: in the data directory)." placeholder:"DIR"`
}

// Run restores.
func (c *restoreCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	keepFilesPrivate()
	dir, err := g.DataDir()
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(c.From, backupStore))
	if err != nil {
		return command.Usagef("%s is no backup: %w", c.From, err)
	}
	defer f.Close()
	where := c.Database
	if where == "" {
		where = dir
	}
	to, err := openAny(ctx, where, false)
	if err != nil {
		return err
	}
	start := time.Now()
	line := progressLine(g)
	n, err := dump.Restore(ctx, f, to, copyProgress(line))
	line.Done("")
	err = errors.Join(err, to.Close())
	if errors.Is(err, store.ErrNotEmpty) {
		return fmt.Errorf("%s: %w: give another, or remove what is there", withoutPassword(where), err)
	}
	if err != nil {
		return fmt.Errorf("restore: %w (nothing starts on what was restored so far: remove it before the next try)", err)
	}
	warc := c.Warc
	if warc == "" {
		warc = filepath.Join(dir, "warc")
	}
	files, err := copyFiles(ctx, filepath.Join(c.From, backupWARC), warc)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return reportCopy(g, "restored", n, files, start)
}

// filesCopied counts bodies' files.
type filesCopied struct {
	all, copied int
	bytes       int64
}

// copyFiles brings WARC files of one folder to another. A finished file never
// changes; one that is being written is copied as far as it has got, and gives
// way to the finished one later.
func copyFiles(ctx context.Context, from, to string) (*filesCopied, error) {
	n := &filesCopied{}
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	if err := os.MkdirAll(to, 0o750); err != nil {
		return n, err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		name, open := strings.CutSuffix(e.Name(), ".open")
		if !e.Type().IsRegular() || !archive.IsFile(name) {
			continue
		}
		n.all++
		if _, err := os.Stat(filepath.Join(to, name)); err == nil && !open {
			continue
		}
		size, err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		if errors.Is(err, fs.ErrNotExist) && open { // finished meanwhile
			size, err = copyFile(filepath.Join(from, name), filepath.Join(to, name))
		}
		if err != nil {
			return n, err
		}
		if !open {
			if err := os.Remove(filepath.Join(to, name+".open")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return n, err
			}
		}
		n.copied++
		n.bytes += size
	}
	return n, nil
}

// copyFile copies a file under a temporary name, then gives it its own.
func copyFile(from, to string) (size int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(out.Name())
	size, err = io.Copy(out, in)
	if err := errors.Join(err, out.Chmod(0o640), out.Sync(), out.Close()); err != nil {
		return 0, err
	}
	return size, os.Rename(out.Name(), to)
}
