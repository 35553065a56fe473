// Package app assembles a running freshet from a configuration: store,
// archive, index, robot, indexer and console, started and ended in order.
package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/archive/bucket"
	"github.com/freshet/freshet/cluster"
	clusterpg "github.com/freshet/freshet/cluster/postgres"
	"github.com/freshet/freshet/cluster/single"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine"
	"github.com/freshet/freshet/index/feed"
	pgindex "github.com/freshet/freshet/index/postgres"
	"github.com/freshet/freshet/internal/diskspace"
	"github.com/freshet/freshet/internal/version"
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
	// IndexReset says why the index was emptied: it was damaged or of another
	// version. It is derived data, and the feed fills it.
	IndexReset error
	Space      *diskspace.Guard
	PDF        *pdftext.Pool   // reads PDF documents, for all robots of the process
	Cluster    cluster.Cluster // of the processes that work on Store

	openIndex func(context.Context, *config.Config) (index.Engine, error)
	id        *cluster.Identity // nil where the store itself locks the data directory
	bucket    *bucket.Bucket    // nil without one
}

// OpenParts opens the parts in a data directory, making what is missing. With a
// database only the archive lies in the directory.
func OpenParts(ctx context.Context, dir string, c *config.Config, withIndex bool) (*Parts, error) {
	p := &Parts{Dir: dir, ArchiveDir: c.Archive.Dir, PDF: newPDFPool(c, dir)}
	if p.ArchiveDir == "" {
		p.ArchiveDir = filepath.Join(dir, "warc")
	}
	if err := makeDataDir(dir); err != nil {
		return nil, err
	}
	p.Space = diskspace.New(dir, uint64(c.MinFree))
	if err := p.Space.Check(); err != nil {
		return nil, err
	}
	openStore := p.openStore
	if c.Database != "" {
		openStore = p.openSharedStore
	}
	prefix, err := openStore(ctx, c)
	if err != nil {
		return nil, errors.Join(explain(err), p.Close())
	}
	p.Archive, err = archive.Open(archive.Config{Dir: p.ArchiveDir, Prefix: prefix, FileSize: int64(c.Archive.FileSize), Packing: archive.Packing(c.Archive.Packing), Software: "freshet/" + version.String(), Agent: userAgent(c)})
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

// openStore opens the embedded store, and returns how names of archive files begin.
func (p *Parts) openStore(_ context.Context, c *config.Config) (prefix string, err error) {
	s, err := local.Open(filepath.Join(p.Dir, "store"), local.Config{Fatal: fatal, Hosts: c.Crawl.HostsInMemory})
	if err != nil {
		return "", err
	}
	p.Store, p.Cluster, p.openIndex = s, single.New(c.Node, s), p.openOwnIndex
	return "", nil
}

// openSharedStore is openStore for the store that many processes share.
func (p *Parts) openSharedStore(ctx context.Context, c *config.Config) (prefix string, err error) {
	if p.id, err = cluster.Identify(p.Dir, c.Node); err != nil {
		return "", err
	}
	s, err := postgres.Open(ctx, c.Database, postgres.Config{Node: p.id.Name, Connections: connections(c.Crawl.Agents), Gather: gather, Idle: idle(c.Lease)})
	if err != nil {
		return "", err
	}
	p.Store, p.Cluster = s, clusterpg.New(s, clusterpg.Config{Run: p.id.Run, PreviousRuns: append([]string{p.id.ID}, p.id.PreviousRuns...)})
	p.openIndex = func(ctx context.Context, c *config.Config) (index.Engine, error) { return p.openSharedIndex(ctx, c, s) }
	return p.id.FilePrefix(), nil
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

// openOwnIndex opens the text index of the data directory.
func (p *Parts) openOwnIndex(_ context.Context, c *config.Config) (index.Engine, error) {
	e, err := OpenIndex(p.Dir, c)
	if errors.Is(err, engine.ErrDamaged) || errors.Is(err, engine.ErrVersion) {
		p.IndexReset = fmt.Errorf("the index is built again from the store: %w", err)
		if err := engine.Reset(indexDir(p.Dir)); err != nil {
			return nil, err
		}
		e, err = OpenIndex(p.Dir, c)
	}
	return e, err
}

// openSharedIndex opens the text index in the database of the store.
func (p *Parts) openSharedIndex(ctx context.Context, c *config.Config, s *postgres.Store) (index.Engine, error) {
	// A node with bodies and without a cursor is no new one: the database was
	// restored, or the data directory comes from elsewhere. Its bodies are indexed
	// from the records.
	join := beginning
	if !archive.IsEmpty(p.ArchiveDir) {
		join = nil
	}
	e, err := pgindex.New(ctx, s.Pool(), pgindex.Config{Lane: s.Node(), Join: join, Languages: c.Index.Languages})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Body reads the body of a page back. In a database of many nodes it may be in
// another's archive: feed.ErrElsewhere.
func (p *Parts) Body(at archive.Position) (*archive.Exchange, error) {
	x, err := archive.Read(p.ArchiveDir, at)
	if err != nil && p.bucket != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		there, bucketErr := p.bucket.Read(ctx, at)
		if bucketErr == nil || archive.Passing(bucketErr) || errors.Is(err, fs.ErrNotExist) { // else the local error tells more
			x, err = there, bucketErr
		}
	}
	if errors.Is(err, fs.ErrNotExist) && p.Cluster.IsShared() && !strings.HasPrefix(at.File, p.id.FilePrefix()) {
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

func indexDir(dir string) string { return filepath.Join(dir, "index") }

// OpenIndex opens the text index of a data directory.
func OpenIndex(dir string, c *config.Config) (index.Engine, error) {
	e, err := engine.Open(indexDir(dir), engine.Config{Languages: c.Index.Languages})
	if err != nil {
		return nil, explain(err)
	}
	return e, nil
}

// ResetIndex empties the text index of a data directory.
func ResetIndex(dir string) error { return explain(engine.Reset(indexDir(dir))) }

// explain adds what to do to the errors that users meet.
func explain(err error) error {
	switch {
	case errors.Is(err, store.ErrLocked), errors.Is(err, engine.ErrLocked):
		return fmt.Errorf("%w: a freshet is running on this data directory; talk to it (freshet status), or give another --data", err)
	case errors.Is(err, engine.ErrDamaged), errors.Is(err, engine.ErrVersion):
		return fmt.Errorf("%w: freshet index rebuild makes it anew from the store, and so does the next start of serve or crawl", err)
	case errors.Is(err, store.ErrVersion):
		return fmt.Errorf("%w: run the version that wrote it, or give another --data", err)
	}
	return err
}

// userAgent is the robot's name as servers see it.
func userAgent(c *config.Config) string {
	name := c.Agent.Name + "/" + version.String()
	if c.Agent.Contact == "" {
		return name
	}
	return name + " (+" + c.Agent.Contact + ")"
}

// sendBodies uploads finished files of bodies to the bucket, if there is one, until
// ctx ends.
func (p *Parts) sendBodies(ctx context.Context) error {
	if p.bucket == nil {
		return nil
	}
	return p.bucket.Run(ctx)
}

// Changes of nodes that have been dead for adoptAfter are taken over if their bodies
// can be read here, or are not needed, maxAdopted at once; after lostAfter all are,
// and bodies that nobody has are fetched again.
const (
	adoptAfter = 5 * time.Minute
	lostAfter  = time.Hour
	maxAdopted = 2000
)

// adoptChanges lets this node index what dead nodes fetched.
func (p *Parts) adoptChanges(ctx context.Context) error {
	shared, ok := p.Store.(store.Adopter)
	if !ok {
		return nil
	}
	there := map[string]bool{}
	_, err := shared.Adopt(ctx, adoptAfter, maxAdopted, func(page *store.Page) bool {
		if !page.Held() || page.NoIndex || page.Body.IsZero() {
			return true // it only leaves the index
		}
		has, asked := there[page.Body.File]
		if !asked {
			has = archive.Has(p.ArchiveDir, page.Body.File) || p.bucket != nil && p.bucket.Has(ctx, page.Body.File)
			there[page.Body.File] = has
		}
		return has
	})
	if err == nil {
		_, err = shared.Adopt(ctx, lostAfter, maxAdopted, func(*store.Page) bool { return true })
	}
	return err
}

// sendTime is how long the end of a process waits for its last files to be sent.
const sendTime = 2 * time.Minute

// Close closes what is open; the index last, since it follows the store.
func (p *Parts) Close() error {
	errs := []error{p.PDF.Close()}
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
		errs = append(errs, p.id.Close())
	}
	return errors.Join(errs...)
}

// newPDFPool returns the reader of PDF documents, which keeps its compiled module in
// the data directory.
func newPDFPool(c *config.Config, dir string) *pdftext.Pool {
	return pdftext.NewPool(pdftext.Config{Memory: int64(c.PDF.Memory), Time: c.PDF.Time, Instances: c.PDF.Instances, CacheDir: filepath.Join(dir, "cache", "pdf")})
}

// RankingOf reads the weights of a configuration.
func RankingOf(c *config.Config) index.Ranking {
	return index.Ranking{PopularityWeight: c.Index.Popularity, FreshnessWeight: c.Index.Freshness, HalfLife: c.Index.HalfLife}
}
