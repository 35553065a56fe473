package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/dump"
)

// packLines makes a file of lines as package dump does.
func packLines(t *testing.T, lines []string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.WriteString(w, strings.Join(lines, "\n")+"\n"); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// dumpLines saves a store and returns the lines of the file.
func dumpLines(t *testing.T, s store.Source) []string {
	t.Helper()
	var file bytes.Buffer
	w, err := dump.NewWriter(&file, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Copy(context.Background(), s, w, nil); err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// ending ends a context before a part of a copy is written, or before its end.
type ending struct {
	*Store
	loads  int // parts that are written
	cancel context.CancelFunc
}

func (e *ending) Load(ctx context.Context, p *store.Part) error {
	if e.loads--; e.loads < 0 {
		e.cancel()
	}
	return e.Store.Load(ctx, p)
}

func (e *ending) Loaded(ctx context.Context) error {
	e.cancel()
	return e.Store.Loaded(ctx)
}

// A copy that was cut off, wherever that was, leaves a database that nobody can open,
// with the remedy in the error, or an empty one into which the copy can be made again.
func TestCutCopy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	first := openLocal(t)
	grown(t, first, time.Now().Add(-2*time.Hour).UTC().Truncate(time.Millisecond))
	want := image(t, first)
	lines := dumpLines(t, first)
	if len(lines) < 1500 {
		t.Fatalf("%d lines: the copy is of one part and the test tests little", len(lines))
	}
	restoreLines := func(lines []string) func(*testing.T, *Store) error {
		return func(t *testing.T, s *Store) error {
			_, err := dump.Restore(ctx, bytes.NewReader(packLines(t, lines)), s, nil)
			return err
		}
	}
	migrateUntil := func(loads int) func(*testing.T, *Store) error {
		return func(_ *testing.T, s *Store) error {
			ended, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := store.Copy(ended, first, &ending{s, loads, cancel}, nil)
			return err
		}
	}
	packed := packLines(t, lines)
	for _, tt := range []struct {
		name  string
		empty bool // nothing was written
		cut   func(*testing.T, *Store) error
	}{
		{"file of its first line", true, restoreLines(lines[:1])},
		{"file within the first part", true, restoreLines(lines[:900])},
		{"file within the second part", false, restoreLines(lines[:1100])},
		{"file within a line", false, restoreLines(append(slices.Clone(lines[:1200]), lines[1200][:len(lines[1200])/2]))},
		{"file without its end", false, restoreLines(lines[:len(lines)-1])},
		{"file that counts other records", false, restoreLines(append(slices.Clone(lines[:len(lines)-2]), lines[len(lines)-1]))},
		{"file with a line of something else", false, restoreLines(slices.Concat(lines[:1200], []string{`{"nothing":1}`}, lines[1200:]))},
		{"file with a page twice", false, restoreLines(slices.Concat(lines[:1200], []string{lines[slices.IndexFunc(lines, isPage)]}, lines[1200:]))},
		{"packed file cut", true, func(_ *testing.T, s *Store) error {
			_, err := dump.Restore(ctx, bytes.NewReader(packed[:100]), s, nil)
			return err
		}},
		{"before the first part", true, migrateUntil(0)},
		{"before the second part", false, migrateUntil(1)},
		{"before the last part", false, migrateUntil(4)},
		{"before hosts are woken", false, migrateUntil(100)},
		{"while a host waits to be woken", false, func(t *testing.T, s *Store) error {
			ended, cancel := context.WithCancel(ctx)
			defer cancel()
			loaded := &blocked{Store: s, t: t, cancel: cancel}
			_, err := store.Copy(ended, first, loaded, nil)
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := cluster.Database(t)
			to := open(t, address, Config{Node: "copy"})
			if err := tt.cut(t, to); err == nil {
				t.Fatal("the copy was not cut off")
			}
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			s, err := Open(ctx, address, Config{Node: "n"})
			if !tt.empty {
				if err == nil {
					_ = s.Close()
				}
				if !errors.Is(err, store.ErrPartial) || !strings.Contains(err.Error(), "make the database anew") {
					t.Errorf("opened with %v, want %v and a remedy", err, store.ErrPartial)
				}
				return
			}
			if err != nil {
				t.Fatalf("nothing was written, and it does not open: %v", err)
			}
			defer s.Close()
			if st, err := s.Stats(ctx); err != nil || st.URLs != 0 || st.Hosts != 0 {
				t.Errorf("it holds %+v (%v), want nothing", st, err)
			}
			if _, err := dump.Restore(ctx, bytes.NewReader(packed), s, nil); err != nil {
				t.Fatalf("another try: %v", err)
			}
			if got := image(t, s); !slices.Equal(got, want) {
				t.Errorf("another try: %d records, want %d", len(got), len(want))
			}
			if l, _, err := s.Claim(ctx, "n", time.Now(), ttl); l == nil || err != nil {
				t.Errorf("another try: no host is awake (%v)", err)
			}
		})
	}
}

// isPage reports whether a line of a dump is a page.
func isPage(line string) bool {
	var l struct{ Page json.RawMessage }
	return json.Unmarshal([]byte(line), &l) == nil && l.Page != nil
}

// blocked holds a host while the copy wakes it, and ends the copy then.
type blocked struct {
	*Store
	t      *testing.T
	cancel context.CancelFunc
}

func (b *blocked) Loaded(ctx context.Context) error {
	tx, err := b.pool.Begin(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(context.Background(), "select host from hosts order by host desc limit 1 for update"); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- b.Store.Loaded(ctx) }()
	for {
		var waiting bool
		const locked = "select exists (select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
		if err := b.pool.QueryRow(context.Background(), locked).Scan(&waiting); err != nil {
			b.t.Error(err)
			waiting = true
		}
		select {
		case err := <-done:
			return err
		default:
		}
		if waiting {
			b.cancel()
			return <-done
		}
	}
}
