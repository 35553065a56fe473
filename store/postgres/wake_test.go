package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
)

// A signal that another node gets while a page is being visited is kept: the answer
// may have been made before the change. One that came before the page was taken is
// answered by its visit.
func TestSignalDuringVisit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, tt := range []struct {
		name          string
		visited       bool // before
		during        bool // the signal comes after Take
		due           time.Duration
		kept, release bool
	}{
		{"revisit, after it was taken", true, true, 500 * time.Millisecond, true, true},
		{"revisit, asked for at the time of taking", true, true, 0, true, false},
		{"revisit, for later", true, true, 10 * time.Minute, true, true},
		{"revisit, before it was taken", true, false, 0, false, true},
		{"first visit, after it was taken", false, true, 500 * time.Millisecond, true, true},
		{"first visit, before it was taken", false, false, 0, false, true},
	} {
		for _, gather := range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprintf("%s, gathered for %v", tt.name, gather), func(t *testing.T) {
				t.Parallel()
				address, now := cluster.Database(t), time.Now()
				one, two := open(t, address, Config{Node: "one", Gather: gather}), open(t, address, Config{Node: "two"})
				add(t, one, "http://h/1")
				if tt.visited {
					l := claim(t, one, now)
					pages, err := one.Take(ctx, l, 9, now)
					if err == nil {
						_, err = one.Finish(ctx, l, &store.Batch{Host: l.Host, Visits: []store.Visit{visit(pages[0], now)}})
					}
					if err != nil {
						t.Fatal(err)
					}
					now = now.Add(time.Hour + time.Second)
				}
				l := claim(t, one, now)
				signal := func() {
					t.Helper()
					for range 2 { // sensors repeat themselves
						if _, err := two.Add(ctx, []store.Found{{URL: parse(t, "http://h/1"), Due: now.Add(tt.due)}}); err != nil {
							t.Fatal(err)
						}
					}
				}
				if !tt.during && gather == 0 { // else pages are read with the claim
					signal()
				}
				pages, err := one.Take(ctx, l, 9, now)
				if err != nil || len(pages) != 1 {
					t.Fatalf("took %d pages, %v", len(pages), err)
				}
				if tt.during {
					signal()
				}
				b := &store.Batch{Host: l.Host, Visits: []store.Visit{visit(pages[0], now)}}
				if tt.release {
					_, err = one.Finish(ctx, l, b)
				} else {
					_, err = one.Commit(ctx, l, b)
				}
				if err != nil {
					t.Fatal(err)
				}
				p, err := two.Page(ctx, parse(t, "http://h/1"))
				if err != nil {
					t.Fatal(err)
				}
				if kept := !p.Slot.Due.After(now.Add(tt.due + time.Second)); kept != tt.kept {
					t.Errorf("due %v after the signal, want it kept: %v", p.Slot.Due.Sub(now.Add(tt.due)), tt.kept)
				}
				if tt.kept && tt.release {
					if l := claim(t, two, now.Add(tt.due+10*time.Second)); l == nil {
						t.Error("the host sleeps through the signal")
					}
				}
			})
		}
	}
}

// asleep lists the hosts that nobody will claim although they have new pages.
func asleep(t *testing.T, s *Store) (names []string) {
	t.Helper()
	rows, err := s.pool.Query(context.Background(), "select name from hosts h where leased = 0 and not fresh and exists (select 1 from pages p where p.host = h.host and p.ord > 0)")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// Whatever the order in which hosts are given back and pages queued on them, no
// host sleeps that has new pages.
func TestNoHostOversleeps(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	const hosts, rounds = 3, 60
	queueing := open(t, address, Config{Node: "queueing"})
	working := open(t, address, Config{Node: "working"})
	for h := range hosts {
		add(t, queueing, fmt.Sprintf("http://h%d/first", h))
	}
	var agents sync.WaitGroup
	run, stop := context.WithCancel(ctx)
	for range hosts {
		agents.Go(func() {
			for run.Err() == nil {
				// Not with run: a claim cut off after its transaction would
				// hold its host, and a page, until the lease ends.
				l, _, err := working.Claim(ctx, "working", time.Now(), ttl)
				if err != nil || l == nil {
					continue
				}
				pages, err := working.Take(ctx, l, 9, time.Now())
				b := &store.Batch{Host: l.Host}
				for _, p := range pages {
					b.Visits = append(b.Visits, visit(p, time.Now()))
				}
				if err == nil {
					_, err = working.Finish(ctx, l, b)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	var writers sync.WaitGroup
	for h := range hosts {
		writers.Go(func() {
			for i := range rounds {
				if _, err := queueing.Add(ctx, []store.Found{{URL: parse(t, fmt.Sprintf("http://h%d/%d", h, i)), Order: 1}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	stop()
	agents.Wait()
	if got := asleep(t, working); len(got) > 0 {
		t.Errorf("asleep with new pages: %v", got)
	}
	now := time.Now()
	for {
		l := claim(t, working, now)
		if l == nil {
			break
		}
		pages, err := working.Take(ctx, l, 1000, now)
		b := &store.Batch{Host: l.Host}
		for _, p := range pages {
			b.Visits = append(b.Visits, visit(p, now))
		}
		if err == nil {
			_, err = working.Finish(ctx, l, b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if st, err := working.Stats(ctx); err != nil || st.New != 0 || st.URLs != hosts*(rounds+1) {
		t.Errorf("%+v, %v, want %d pages and none unvisited", st, err, hosts*(rounds+1))
	}
}

// Hosts of a process that died between its transaction and its look at them are
// woken by another.
func TestWakesOfDeadProcess(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := cluster.Database(t)
	s := open(t, address, Config{Node: "one"})
	add(t, s, "http://h/1", "http://k/1")
	// As a crash leaves it: the page is queued, the host sleeps, the row stands.
	host := hostKey("h")
	for _, sql := range []string{"update hosts set fresh = false, ready = 9223372036854775807 where host = $1", "insert into wakes (id, at, hosts) values (1, 1, array[$1::bigint])"} {
		if _, err := s.pool.Exec(ctx, sql, host); err != nil {
			t.Fatal(err)
		}
	}
	if got := asleep(t, s); len(got) != 1 {
		t.Fatalf("asleep: %v, want h", got)
	}
	next := open(t, address, Config{Node: "two"})
	if got := asleep(t, next); len(got) != 0 {
		t.Errorf("asleep after another process has started: %v", got)
	}
	var left int
	if err := s.pool.QueryRow(ctx, "select count(*) from wakes where id = 1").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows left, %v", left, err)
	}
}

// Changes that cannot be read here keep nobody from those behind them, however many
// they are.
func TestAdoptBehindUnreadable(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Now()
	for _, lost := range []int{0, 19, 20, 60, 900} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			address := cluster.Database(t)
			dead, heir := open(t, address, Config{Node: "dead"}), open(t, address, Config{Node: "heir"})
			var urls []string
			for i := range lost {
				urls = append(urls, fmt.Sprintf("http://dead/%d/lost", i))
			}
			for i := range 30 {
				urls = append(urls, fmt.Sprintf("http://dead/%d/gone", i))
			}
			add(t, dead, urls...)
			l := claim(t, dead, now)
			pages, err := dead.Take(ctx, l, len(urls), now)
			if err != nil {
				t.Fatal(err)
			}
			b := &store.Batch{Host: l.Host}
			for _, p := range pages {
				b.Visits = append(b.Visits, visit(p, now))
			}
			if _, err := dead.Commit(ctx, l, b); err != nil {
				t.Fatal(err)
			}
			total := 0
			for range 8 {
				n, err := heir.Adopt(ctx, time.Minute, 20, func(p *store.Page) bool { return !strings.HasSuffix(p.URL, "lost") })
				if err != nil {
					t.Fatal(err)
				}
				total += n
			}
			if total != 30 {
				t.Errorf("adopted %d, want the 30 that can be read", total)
			}
		})
	}
}
