// Package node assembles a running freshet from a configuration: store,
// archive, index, robot, indexer and console, started and ended in order.
package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/archive/bucket"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/embedded"
	"github.com/freshet/freshet/index/feed"
	pgindex "github.com/freshet/freshet/index/postgres"
	"github.com/freshet/freshet/space"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/store/postgres"
)

// Parts are what keeps data: the store, the archive and the text index.
type Parts struct {
	Dir        string
	Store      store.Store
	Archive    *archive.Writer
	ArchiveDir string
	Engine     index.Engine // nil without an index
	Space      *space.Guard
	Shared     *postgres.Store // the Store, where it is a database of many processes

	id     *Identity      // with Shared
	bucket *bucket.Bucket // nil without one
}

// Open opens the parts in a data directory, making what is missing. With a
// database only the archive lies in the directory.
func Open(ctx context.Context, dir string, c *config.Config, withIndex bool, version string) (*Parts, error) {
	p := &Parts{Dir: dir, ArchiveDir: c.Archive.Dir}
	if p.ArchiveDir == "" {
		p.ArchiveDir = filepath.Join(dir, "warc")
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	p.Space = space.New(dir, uint64(c.MinFree))
	if err := p.Space.Check(); err != nil {
		return nil, err
	}
	prefix, err := p.openStore(ctx, c)
	if err != nil {
		return nil, errors.Join(explain(err), p.Close())
	}
	p.Archive, err = archive.Open(archive.Config{Dir: p.ArchiveDir, Prefix: prefix, FileSize: int64(c.Archive.FileSize), Packing: archive.Packing(c.Archive.Packing), Software: "freshet/" + version, Agent: UserAgent(c)})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if c.Archive.Bucket != "" {
		if p.bucket, err = bucket.Open(ctx, bucket.Config{Address: c.Archive.Bucket, Dir: p.ArchiveDir, Keep: c.Archive.KeepLocal}); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	if withIndex {
		if p.Engine, err = p.openIndex(ctx, c); err != nil {
			return nil, errors.Join(explain(err), p.Close())
		}
	}
	return p, nil
}

// openStore opens the embedded store or the shared one, and returns how names
// of archive files begin.
func (p *Parts) openStore(ctx context.Context, c *config.Config) (prefix string, err error) {
	if c.Database == "" {
		s, err := local.Open(filepath.Join(p.Dir, "store"), local.Config{Fatal: fatal, Hosts: c.Crawl.HostsInMemory})
		if err == nil {
			p.Store = s
		}
		return "", err
	}
	if p.id, err = identify(p.Dir, c.Node); err != nil {
		return "", err
	}
	p.Shared, err = postgres.Open(ctx, c.Database, postgres.Config{Node: p.id.Name, Connections: connections(c.Crawl.Agents), Gather: gather, Idle: idle(c.Lease)})
	if err != nil {
		return "", err
	}
	p.Store = p.Shared
	return p.id.filePrefix(), nil
}

// gather is for how long writes of agents are gathered: short beside the rest of
// a host, long enough for several of them.
const gather = 40 * time.Millisecond

// idle is for how long the database waits for a node in the middle of a
// transaction: the hosts that a node held when it was cut off are taken over
// soon after their leases.
func idle(lease time.Duration) time.Duration {
	return min(max(lease/2, time.Second), 10*time.Second)
}

// connections are enough for the agents to commit without waiting long: they
// spend most of their time waiting for servers.
func connections(agents int) int { return min(6+agents/4, 40) }

// beginning is the cursor in front of the first change.
var beginning = make([]byte, 8)

func (p *Parts) openIndex(ctx context.Context, c *config.Config) (index.Engine, error) {
	if p.Shared == nil {
		return OpenIndex(p.Dir, c)
	}
	e, err := pgindex.New(ctx, p.Shared.Pool(), pgindex.Config{Lane: p.id.Name, Join: beginning, Languages: c.Index.Languages})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Name is what the process is called in the store: name, where the store is its
// own, else its name among those that share it.
func (p *Parts) Name(name string) string {
	if p.id != nil {
		return p.id.Name
	}
	return name
}

// Body reads the body of a page back. In a database of many nodes it may be in
// another's archive: feed.ErrElsewhere.
func (p *Parts) Body(at archive.Position) (*archive.Exchange, error) {
	x, err := archive.Read(p.ArchiveDir, at)
	if errors.Is(err, fs.ErrNotExist) && p.bucket != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		x, err = p.bucket.Read(ctx, at)
	}
	if errors.Is(err, fs.ErrNotExist) && p.Shared != nil {
		return nil, fmt.Errorf("%w: %w", feed.ErrElsewhere, err)
	}
	return x, err
}

// fatal ends the process when the store cannot go on, such as on a disk that
// fails: what was committed stays, what was not is done again.
func fatal(message string) {
	fmt.Fprintln(os.Stderr, "freshet: the store cannot go on:", message)
	os.Exit(1)
}

// OpenIndex opens the text index of a data directory.
func OpenIndex(dir string, c *config.Config) (index.Engine, error) {
	e, err := embedded.Open(filepath.Join(dir, "index"), embedded.Config{Languages: c.Index.Languages})
	if err != nil {
		return nil, explain(err)
	}
	return e, nil
}

// explain adds what to do to the errors that users meet.
func explain(err error) error {
	switch {
	case errors.Is(err, store.ErrLocked), errors.Is(err, embedded.ErrLocked):
		return fmt.Errorf("%w: a freshet is running on this data directory; talk to it (freshet status), or give another --data", err)
	case errors.Is(err, store.ErrVersion):
		return fmt.Errorf("%w: run the version that wrote it, or give another --data", err)
	}
	return err
}

// UserAgent is the robot's name as servers see it.
func UserAgent(c *config.Config) string {
	if c.Agent.Contact == "" {
		return c.Agent.Name + "/1.0"
	}
	return c.Agent.Name + "/1.0 (+" + c.Agent.Contact + ")"
}

// Send uploads finished files of bodies to the bucket, if there is one, until
// ctx ends.
func (p *Parts) Send(ctx context.Context) error {
	if p.bucket == nil {
		return nil
	}
	return p.bucket.Run(ctx)
}

// Changes of nodes that have been dead for so long are taken over, so many at
// once.
const (
	adoptAfter = 5 * time.Minute
	adoptMost  = 2000
)

// Adopt lets this node index what dead nodes fetched and left in the bucket.
func (p *Parts) Adopt(ctx context.Context) error {
	if p.Shared == nil || p.bucket == nil {
		return nil
	}
	there := map[string]bool{}
	_, err := p.Shared.Adopt(ctx, adoptAfter, adoptMost, func(page *store.Page) bool {
		if page.State != store.OK || page.Body.IsZero() {
			return true // it only leaves the index
		}
		has, asked := there[page.Body.File]
		if !asked {
			has = p.bucket.Has(ctx, page.Body.File)
			there[page.Body.File] = has
		}
		return has
	})
	return err
}

// sendTime is how long the end of a process waits for its last files to be sent.
const sendTime = 2 * time.Minute

// Close closes what is open; the index last, since it follows the store.
func (p *Parts) Close() error {
	var errs []error
	if p.Archive != nil {
		errs = append(errs, p.Archive.Close())
	}
	if p.bucket != nil {
		ctx, cancel := context.WithTimeout(context.Background(), sendTime)
		defer cancel()
		errs = append(errs, p.bucket.Upload(ctx))
	}
	if p.Store != nil {
		errs = append(errs, p.Store.Close())
	}
	if p.Engine != nil {
		errs = append(errs, p.Engine.Close())
	}
	if p.id != nil {
		errs = append(errs, p.id.lock.Close())
	}
	return errors.Join(errs...)
}

// RankingOf reads the weights of a configuration.
func RankingOf(c *config.Config) index.Ranking {
	return index.Ranking{PopularityWeight: c.Index.Popularity, FreshnessWeight: c.Index.Freshness, HalfLife: c.Index.HalfLife}
}
