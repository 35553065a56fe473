package app

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/archive/bucket"
	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/internal/pgtest"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/postgres"
	"github.com/freshet/freshet/weburl"
)

// openShared opens the parts of a node on a database.
func openShared(t *testing.T, address, name string) *Parts {
	t.Helper()
	c := config.Default()
	c.Database, c.Node = address, name
	p, err := OpenParts(context.Background(), t.TempDir(), c, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// deadPages are what a node visited before it died, by path.
var deadPages = map[string]func(t *testing.T, p *Parts, page *store.Page){
	"/here":      func(t *testing.T, p *Parts, page *store.Page) { archived(t, p, page) },
	"/elsewhere": func(t *testing.T, p *Parts, page *store.Page) { archived(t, p, page) },
	"/hidden": func(t *testing.T, p *Parts, page *store.Page) {
		archived(t, p, page)
		page.NoIndex = true
	},
	"/failed and had": func(t *testing.T, p *Parts, page *store.Page) {
		archived(t, p, page)
		page.State, page.Status = store.Failed, 503
	},
	"/gone":  func(_ *testing.T, _ *Parts, page *store.Page) { page.State, page.Status = store.Gone, 404 },
	"/empty": func(*testing.T, *Parts, *store.Page) {},
}

// archived writes a body of a page, in a file of its own.
func archived(t *testing.T, p *Parts, page *store.Page) {
	t.Helper()
	u, err := weburl.Parse(page.URL)
	if err != nil {
		t.Fatal(err)
	}
	w, err := archive.Open(archive.Config{Dir: p.ArchiveDir, Prefix: filepath.Base(u.Path())})
	if err != nil {
		t.Fatal(err)
	}
	page.Body, err = w.Write(&archive.Exchange{URL: page.URL, Time: time.Now(), Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<p>heron")})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	page.Digest = [16]byte{1}
}

// visitAndDie lets a node visit deadPages.
func visitAndDie(t *testing.T, p *Parts) {
	t.Helper()
	ctx, now := context.Background(), time.Now()
	paths := map[weburl.Key]string{}
	var found []store.Found
	for path := range deadPages {
		u, err := weburl.Parse("http://h.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		paths[u.Key()] = path
		found = append(found, store.Found{URL: u, Order: 1})
	}
	if _, err := p.Store.Add(ctx, found); err != nil {
		t.Fatal(err)
	}
	l, _, err := p.Store.Claim(ctx, "dead", now, time.Minute)
	if err != nil || l == nil {
		t.Fatalf("claimed %v: %v", l, err)
	}
	pages, err := p.Store.Take(ctx, l, 100, now)
	if err != nil || len(pages) != len(deadPages) {
		t.Fatalf("took %d pages: %v", len(pages), err)
	}
	b := &store.Batch{Host: l.Host}
	for _, page := range pages {
		page.State, page.Status, page.Type, page.Slot = store.OK, 200, "text/html", store.Slot{Due: now.Add(time.Hour)}
		deadPages[paths[page.Key]](t, p, &page)
		b.Visits = append(b.Visits, store.Visit{Page: page, Changed: true, Arrived: now})
	}
	if _, err := p.Store.Commit(ctx, l, b); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Cluster.Join(ctx, cluster.Membership{TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

// setDead lets the last sign of life of a node be that long ago.
func setDead(t *testing.T, p *Parts, name string, since time.Duration) {
	t.Helper()
	tag, err := p.Store.(*postgres.Store).Pool().Exec(context.Background(), "update nodes set until = $2 where name = $1", name, time.Now().Add(-since).UnixMilli())
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d nodes changed: %v", tag.RowsAffected(), err)
	}
}

// newBucket starts an S3 server and returns how a folder is connected to its bucket.
func newBucket(t *testing.T) func(t *testing.T, dir string) *bucket.Bucket {
	t.Helper()
	memory := s3mem.New()
	if err := memory.CreateBucket("bodies"); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(gofakes3.New(memory).Server())
	t.Cleanup(s.Close)
	return func(t *testing.T, dir string) *bucket.Bucket {
		t.Helper()
		b, err := bucket.Open(context.Background(), bucket.Config{
			Address: "s3://bodies/web?insecure=true&region=us-east-1&endpoint=" + strings.TrimPrefix(s.URL, "http://"), Dir: dir, Access: "key", Secret: "secret",
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// A node indexes what a dead one fetched as soon as it can read the bodies or needs
// none, and all of it after an hour, each change once.
func TestAdoptChangesOfDeadNode(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	readable := []string{"/here", "/failed and had", "/hidden", "/gone", "/empty"}
	all := slices.Collect(maps.Keys(deadPages))
	for _, tt := range []struct {
		name  string
		since []time.Duration // the node is dead, at each look
		want  []string
		sent  bool // the dead node's bodies are in a bucket
	}{
		{"alive", []time.Duration{-time.Minute}, nil, false},
		{"dead for a moment", []time.Duration{adoptAfter - time.Minute}, nil, false},
		{"dead for a while", []time.Duration{adoptAfter + time.Minute}, readable, false},
		{"dead for a while, looked at twice", []time.Duration{adoptAfter + time.Minute, lostAfter - time.Minute}, readable, false},
		{"lost", []time.Duration{lostAfter + time.Minute}, all, false},
		{"dead for a while, then lost", []time.Duration{adoptAfter + time.Minute, lostAfter + time.Minute}, all, false},
		{"alive, with a bucket", []time.Duration{-time.Minute}, nil, true},
		{"dead for a while, with a bucket", []time.Duration{adoptAfter + time.Minute}, all, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			address := server.Database(t)
			dead, heir := openShared(t, address, "dead"), openShared(t, address, "heir")
			visitAndDie(t, dead)
			bodyBucket := newBucket(t)
			if tt.sent {
				heir.bucket = bodyBucket(t, heir.ArchiveDir)
			}
			for _, pattern := range []string{"here*", "failed*"} { // a folder that both nodes use holds them
				files, err := filepath.Glob(filepath.Join(dead.ArchiveDir, pattern))
				if err != nil || len(files) != 1 {
					t.Fatalf("%s: files %v, %v", pattern, files, err)
				}
				if err := os.Rename(files[0], filepath.Join(heir.ArchiveDir, filepath.Base(files[0]))); err != nil {
					t.Fatal(err)
				}
			}
			if tt.sent {
				if err := bodyBucket(t, dead.ArchiveDir).Upload(ctx); err != nil {
					t.Fatal(err)
				}
			}
			for _, since := range tt.since {
				setDead(t, heir, "dead", since)
				if err := heir.adoptChanges(ctx); err != nil {
					t.Fatal(err)
				}
			}
			paths := func(p *Parts) (out []string) {
				changes, err := p.Store.Changes(ctx, 0, 100)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range changes {
					u, err := weburl.Parse(c.URL)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, u.Path())
				}
				slices.Sort(out)
				return out
			}
			var want, left []string
			for path := range deadPages {
				u, err := weburl.Parse("http://h.example" + path)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(tt.want, path) {
					want = append(want, u.Path())
				} else {
					left = append(left, u.Path())
				}
			}
			slices.Sort(want)
			slices.Sort(left)
			if got := paths(heir); !slices.Equal(got, want) {
				t.Errorf("the heir indexes %v, want %v", got, want)
			}
			if got := paths(dead); !slices.Equal(got, left) {
				t.Errorf("the dead node, should it come back, indexes %v, want %v", got, left)
			}
		})
	}
}

// A store of one process has no other nodes whose changes it could take over.
func TestAdoptWithoutDatabase(t *testing.T) {
	t.Parallel()
	p, err := OpenParts(context.Background(), t.TempDir(), config.Default(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.adoptChanges(context.Background()); err != nil {
		t.Error(err)
	}
}
