package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/freshet/freshet/internal/pgtest"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

const ttl = time.Minute

func parse(t *testing.T, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func add(t *testing.T, s *Store, urls ...string) {
	t.Helper()
	var found []store.Found
	for i, u := range urls {
		found = append(found, store.Found{URL: parse(t, u), Order: uint64(i + 1)})
	}
	if _, err := s.Add(context.Background(), found); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, s *Store, now time.Time) *store.Lease {
	t.Helper()
	l, _, err := s.Claim(context.Background(), "", now, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func visit(p store.Page, now time.Time) store.Visit {
	p.State, p.Status, p.Slot = store.OK, 200, store.Slot{Due: now.Add(time.Hour)}
	return store.Visit{Page: p, Changed: true, Arrived: now}
}

// A node whose lease ran out and was taken over by another node can neither
// write pages, nor queue any, nor renew, nor release.
func TestFencing(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Now()
	address := cluster.Database(t)
	a, b := open(t, address, Config{Node: "a"}), open(t, address, Config{Node: "b"})
	add(t, a, "http://h/1", "http://h/2")
	lost := claim(t, a, now)
	pages, err := a.Take(ctx, lost, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	if l := claim(t, b, now.Add(30*time.Second)); l != nil {
		t.Fatalf("a leased host was claimed: %+v", l)
	}
	late := now.Add(2 * ttl)
	l := claim(t, b, late)
	if l == nil || l.Token <= lost.Token || l.Node != "b" || !l.Orphan || lost.Orphan {
		t.Fatalf("taken over: %+v after %+v", l, lost)
	}
	batch := &store.Batch{Host: lost.Host, Visits: []store.Visit{visit(pages[0], late)}, Found: []store.Found{{URL: parse(t, "http://new/")}}}
	if _, err := a.Commit(ctx, lost, batch); !errors.Is(err, store.ErrLease) {
		t.Errorf("commit: %v", err)
	}
	if err := a.Renew(ctx, lost, late, ttl); !errors.Is(err, store.ErrLease) {
		t.Errorf("renew: %v", err)
	}
	if err := a.Release(ctx, lost); !errors.Is(err, store.ErrLease) {
		t.Errorf("release: %v", err)
	}
	if st, err := b.Stats(ctx); err != nil || st.URLs != 2 || st.New != 2 || st.Leases != 1 || st.Hosts != 1 {
		t.Errorf("stats %+v, %v", st, err)
	}
	if got, err := b.Take(ctx, l, 9, late); err != nil || len(got) != 2 {
		t.Errorf("the successor takes %d pages, %v", len(got), err)
	}
}

// A commit whose answer is lost is tried again and counts once.
func TestCommitOnce(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Now()
	s := open(t, cluster.Database(t), Config{Node: "n"})
	add(t, s, "http://h/1", "http://h/2")
	l := claim(t, s, now)
	pages, err := s.Take(ctx, l, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	h, work, err := s.heldLease(l)
	if err != nil {
		t.Fatal(err)
	}
	b := &store.Batch{Host: l.Host, Visits: []store.Visit{visit(pages[0], now)}, Found: []store.Found{{URL: parse(t, "http://other/")}}}
	out := work.taken[parse(t, pages[0].URL).Key()]
	if n, err := s.Commit(ctx, l, b); err != nil || n != 1 {
		t.Fatalf("added %d, %v", n, err)
	}
	// As if the answer had not come: the batch is out again under its number.
	work.batch, s.known = 0, newKnown(8)
	work.taken[parse(t, pages[0].URL).Key()] = out
	if n, err := s.Commit(ctx, l, b); err != nil || n != 1 {
		t.Errorf("the second attempt added %d, %v", n, err)
	}
	if c, err := s.Changes(ctx, 0, 10); err != nil || len(c) != 1 {
		t.Errorf("%d changes, %v", len(c), err)
	}
	if st, err := s.Stats(ctx); err != nil || st.URLs != 3 || st.New != 2 || st.States[store.OK] != 1 {
		t.Errorf("stats %+v, %v", st, err)
	}
	var batches int64
	if err := s.pool.QueryRow(ctx, "select batch from hosts where host = $1", h.host).Scan(&batches); err != nil || batches != 1 {
		t.Errorf("%d batches, %v", batches, err)
	}
}

// Several nodes whose hosts all link to each other: no deadlock that is not
// resolved, nothing lost, nothing twice, counters exact.
func TestNodesTogether(t *testing.T) {
	t.Parallel()
	const nodes, hosts, pages = 3, 12, 900
	ctx := context.Background()
	address := cluster.Database(t)
	var mu sync.Mutex
	fetched, busy := map[string]int{}, map[string]string{}
	link := func(n int) string { return fmt.Sprintf("http://h%d/%d", n*7%hosts, n) }
	var wg sync.WaitGroup
	for n := range nodes {
		name := fmt.Sprint("node", n)
		s := open(t, address, Config{Node: name, Known: 1 + 1000*n})
		if n == 0 {
			add(t, s, link(0))
		}
		for range 3 {
			wg.Go(func() {
				for idle := 0; idle < 150; {
					l, _, err := s.Claim(ctx, "", time.Now(), ttl)
					if err != nil {
						t.Error(err)
						return
					}
					if l == nil {
						idle++
						time.Sleep(5 * time.Millisecond)
						continue
					}
					idle = 0
					mu.Lock()
					if other := busy[l.Host.Name]; other != "" {
						t.Errorf("%s is worked by %s and %s", l.Host.Name, other, name)
					}
					busy[l.Host.Name] = name
					mu.Unlock()
					got, err := s.Take(ctx, l, 5, time.Now())
					if err != nil {
						t.Error(err)
						return
					}
					b := &store.Batch{Host: l.Host}
					for _, p := range got {
						mu.Lock()
						fetched[p.URL]++
						mu.Unlock()
						b.Visits = append(b.Visits, visit(p, time.Now()))
						var i int
						_, _ = fmt.Sscanf(p.URL[strings.LastIndexByte(p.URL, '/')+1:], "%d", &i)
						for k := 1; k <= 8; k++ {
							if m := 3*i + k; m < pages {
								b.Found = append(b.Found, store.Found{URL: parse(t, link(m)), Order: uint64(m)})
							}
						}
					}
					if _, err := s.Commit(ctx, l, b); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					busy[l.Host.Name] = ""
					mu.Unlock()
					if err := s.Release(ctx, l); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if len(fetched) != pages {
		t.Errorf("%d of %d pages were fetched", len(fetched), pages)
	}
	for u, n := range fetched {
		if n != 1 {
			t.Errorf("%s was fetched %d times", u, n)
		}
	}
	s := open(t, address, Config{Node: "reader"})
	if st, err := s.Stats(ctx); err != nil || st.URLs != pages || st.New != 0 || st.Hosts != hosts || st.States[store.OK] != pages || st.Leases != 0 || st.Due != 0 {
		t.Errorf("stats %+v, %v", st, err)
	}
	changes := 0
	for n := range nodes {
		c, err := open(t, address, Config{Node: fmt.Sprint("node", n)}).Changes(ctx, 0, 2*pages)
		if err != nil {
			t.Error(err)
		}
		changes += len(c)
	}
	if changes != pages {
		t.Errorf("the feeds of the nodes have %d changes, want %d", changes, pages)
	}
}

// A page queued on a host at the moment at which its agent finds nothing more
// is not forgotten.
func TestQueuedWhileReleased(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	agent, other := open(t, address, Config{Node: "agent"}), open(t, address, Config{Node: "other"})
	add(t, agent, "http://h/first")
	for round := range 40 {
		l := claim(t, agent, time.Now())
		if l == nil {
			t.Fatalf("round %d: the page queued last is not to be had", round)
		}
		now := time.Now()
		pages, err := agent.Take(ctx, l, 9, now)
		if err != nil || len(pages) != 1 {
			t.Fatalf("round %d: %d pages, %v", round, len(pages), err)
		}
		if _, err := agent.Commit(ctx, l, &store.Batch{Host: l.Host, Visits: []store.Visit{visit(pages[0], now)}}); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			time.Sleep(time.Duration(round%8) * 200 * time.Microsecond)
			if err := agent.Release(ctx, l); err != nil {
				t.Error(err)
			}
		})
		add(t, other, fmt.Sprint("http://h/", round))
		both.Wait()
	}
}

// Any number of processes may bring an empty database up to date at once; a
// database of a newer program is refused.
func TestMigrations(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			s, err := Open(ctx, address, Config{Node: fmt.Sprint(n), Connections: 2})
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	wg.Wait()
	s := open(t, address, Config{})
	if _, err := s.pool.Exec(ctx, "insert into freshet_store_schema (version, name) values (9999, 'of the future')"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, address, Config{}); !errors.Is(err, store.ErrVersion) {
		t.Errorf("a newer schema: %v", err)
	}
}

// A server that crashes and comes back is waited for, and what was committed is
// there.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t)
	ctx := context.Background()
	s := open(t, c.Database(t), Config{Node: "n", Connections: 4})
	add(t, s, "http://h/1", "http://h/2")
	l := claim(t, s, time.Now())
	pages, err := s.Take(ctx, l, 2, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Down(true); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := s.Commit(ctx, l, &store.Batch{Host: l.Host, Visits: []store.Visit{visit(pages[0], time.Now())}})
		done <- err
	}()
	time.Sleep(300 * time.Millisecond)
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal("the commit that met the crash:", err)
	}
	if st, err := s.Stats(ctx); err != nil || st.URLs != 2 || st.New != 1 || st.States[store.OK] != 1 {
		t.Errorf("stats %+v, %v", st, err)
	}
}

// What passes is tried again, what lasts is not.
func TestPassing(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"40001": true, "40P01": true, "57P01": true, "57P03": true, "08006": true, "23505": false, "42601": false, "28P01": false, "3D000": false} {
		if got := isTransient(fmt.Errorf("x: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("code %s: %v", code, got)
		}
	}
	for _, err := range []error{store.ErrLease, pgx.ErrNoRows, context.Canceled, errInput, errRows} {
		if isTransient(err) {
			t.Errorf("%v is tried again", err)
		}
	}
	if _, err := Open(context.Background(), "postgres://127.0.0.1:1/none?connect_timeout=1", Config{}); err == nil || strings.Contains(err.Error(), "password") {
		t.Errorf("no server: %v", err)
	}
}

// Keys keep their order and come back from their columns.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, k := range []weburl.Key{{}, {0x7f, 0xff}, {0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, parse(t, "http://h/x").Key()} {
		if got := joinKey(splitKey(k)); got != k {
			t.Errorf("%x became %x", k, got)
		}
	}
	if low, high := Half([]byte{0x7f, 0, 0, 0, 0, 0, 0, 0}), Half([]byte{0x80, 0, 0, 0, 0, 0, 0, 0}); low >= high {
		t.Errorf("order of %d and %d", low, high)
	}
}
