package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
)

// The changes of a dead node are taken over by one who can read its pages, once
// each, whether they had got their numbers or not; a living node keeps its own.
func TestAdopt(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Now()
	address := cluster.Database(t)
	dead, heir, alive := open(t, address, Config{Node: "dead"}), open(t, address, Config{Node: "heir"}), open(t, address, Config{Node: "alive"})
	work := func(s *Store, urls ...string) {
		t.Helper()
		add(t, s, urls...)
		l := claim(t, s, now)
		pages, err := s.Take(ctx, l, 10, now)
		if err != nil {
			t.Fatal(err)
		}
		b := &store.Batch{Host: l.Host}
		for _, p := range pages {
			b.Visits = append(b.Visits, visit(p, now))
		}
		if _, err := s.Commit(ctx, l, b); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := alive.pool.Exec(ctx, "insert into nodes (name, instance, since, until, wanted, working, agents) values ('alive', '', 0, $1, 1, 0, '[]')", now.Add(time.Hour).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	work(alive, "http://alive/1")
	work(dead, "http://dead/1", "http://dead/2")
	if c, err := dead.Changes(ctx, 0, 9); err != nil || len(c) != 2 { // they have numbers now
		t.Fatal(c, err)
	}
	work(dead, "http://other/1", "http://other/lost")
	readable := func(p *store.Page) bool { return !strings.HasSuffix(p.URL, "lost") }
	n, err := heir.Adopt(ctx, time.Minute, 100, readable)
	if err != nil || n != 3 {
		t.Fatalf("adopted %d, %v", n, err)
	}
	if n, err := heir.Adopt(ctx, time.Minute, 100, readable); err != nil || n != 0 {
		t.Errorf("again %d, %v", n, err)
	}
	for s, want := range map[*Store]int{heir: 3, alive: 1, dead: 1} {
		after := uint64(0)
		if c, err := s.Changes(ctx, after, 9); err != nil || len(c) != want {
			t.Errorf("%s: %d changes, want %d, %v: %v", s.Node(), len(c), want, err, c)
		}
	}
}
