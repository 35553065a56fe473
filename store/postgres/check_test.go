package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Pages under a key that their URL does not name are taken out of a database of an earlier
// program, once, and what is left can be worked on.
func TestCheckPages(t *testing.T) {
	t.Parallel()
	address := cluster.Database(t)
	s := open(t, address, Config{Node: "n"})
	ctx := t.Context()
	good, err := weburl.Parse("http://a/good")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(ctx, []store.Found{{URL: good}}); err != nil {
		t.Fatal(err)
	}
	host, url := splitKey(good.Key())
	for i, bad := range []string{"http://a/a/../b", "http://a/x/./y", "http://xn--i~-rub.a/", "no URL"} {
		if _, err := s.pool.Exec(ctx, "insert into pages (host, url, ord, address) values ($1, $2, 1, $3)", host, url+int64(i)+1, bad); err != nil {
			t.Fatal(err)
		}
		if _, err := s.pool.Exec(ctx, insertTally, randomKey(), 0, 1, 1, 0, 0, 0, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(ctx, "delete from settings where name = $1", checkedSetting); err != nil {
		t.Fatal(err)
	}
	s = open(t, address, Config{Node: "m"})
	if st, err := s.Stats(ctx); err != nil || st.URLs != 1 || st.New != 1 {
		t.Errorf("stats %+v, %v, want the 1 good page", st, err)
	}
	now := time.Now()
	l, _, err := s.Claim(ctx, "m", now, time.Minute)
	if err != nil || l == nil {
		t.Fatalf("claim: %v, %v", l, err)
	}
	if pages, err := s.Take(ctx, l, 10, now); err != nil || len(pages) != 1 || pages[0].URL != good.String() {
		t.Errorf("took %+v, %v, want %s", pages, err, good)
	}
}

// A database into which a copy was begun is opened by nobody before the copy was finished.
func TestPartialCopy(t *testing.T) {
	t.Parallel()
	for _, finish := range []bool{false, true} {
		address := cluster.Database(t)
		s := open(t, address, Config{Node: "n"})
		if err := s.Load(t.Context(), &store.Part{Hosts: []store.Host{{Name: "a"}}}); err != nil {
			t.Fatal(err)
		}
		if finish {
			if err := s.Loaded(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Open(t.Context(), address, Config{Node: "m"})
		if errors.Is(err, store.ErrPartial) == finish {
			t.Errorf("finished: %v: opening fails with %v", finish, err)
		}
		if err == nil {
			_ = again.Close()
		}
	}
}
