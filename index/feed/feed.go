// Package feed keeps a text index in step with the store: it follows the
// store's feed of changes, reads each changed page's body back from the
// archive, extracts its text and puts it into the engine.
//
// The feed is the bounded queue between robots and indexer: it lies on disk,
// so that indexing, which costs ten times a fetch, never slows or loses one.
// The engine stores the feed's cursor in the same commit as the documents;
// after a crash the indexer goes on where the engine is, and store and index
// agree when it has caught up.
package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Config are the parts of an Indexer.
type Config struct {
	Store store.Store
	// Read returns the body of a page; fs.ErrNotExist means that there is none
	// any more, ErrElsewhere that another node has it and indexes the page.
	Read   func(archive.Position) (*archive.Exchange, error)
	Flush  func() error // makes written records readable; may be nil
	Engine index.Engine
	Log    *slog.Logger
	Batch  int // documents a commit; default 200
	// Space, if not nil, says why nothing may be written now (a full disk).
	Space func() error
	// Keep is how long visits are kept in the store's log; default 90 days.
	Keep time.Duration
	// Services, if not nil, logs how long pages took.
	Services *Services
}

// ErrElsewhere is the error of a body that another node keeps.
var ErrElsewhere = errors.New("the body is kept by another node")

// Indexer follows the feed.
type Indexer struct {
	config  Config
	links   *Popularity
	cursor  atomic.Uint64
	indexed atomic.Int64
	problem atomic.Pointer[string]
	trimmed time.Time
}

// New returns an indexer that goes on where the engine is.
func New(ctx context.Context, c Config) (*Indexer, error) {
	if c.Batch <= 0 {
		c.Batch = 200
	}
	if c.Keep <= 0 {
		c.Keep = 90 * 24 * time.Hour
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	x := &Indexer{config: c, links: &Popularity{}}
	cur, err := c.Engine.Cursor(ctx)
	if err != nil {
		return nil, fmt.Errorf("indexer: %w", err)
	}
	if len(cur) == 8 {
		x.cursor.Store(binary.BigEndian.Uint64(cur))
		return x, nil
	}
	return x, x.replay(ctx)
}

// replay fills an empty index from all pages of the store: the feed may have
// been trimmed.
func (x *Indexer) replay(ctx context.Context) error {
	st, err := x.config.Store.Stats(ctx)
	if err != nil {
		return fmt.Errorf("indexer: %w", err)
	}
	var b index.Batch
	flush := func() error {
		err := x.config.Engine.Apply(ctx, b)
		b = index.Batch{}
		return err
	}
	err = x.config.Store.Pages(ctx, func(p *store.Page) error {
		if !p.Held() {
			return nil
		}
		if err := x.add(&b, p); err != nil {
			return err
		}
		if len(b.Put) < x.config.Batch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return fmt.Errorf("indexer: fill a new index: %w", err)
	}
	b.Cursor = binary.BigEndian.AppendUint64(nil, st.Feed)
	if err := flush(); err != nil {
		return fmt.Errorf("indexer: fill a new index: %w", err)
	}
	x.cursor.Store(st.Feed)
	return nil
}

// poll is how often an indexer that has caught up looks again.
const poll = 250 * time.Millisecond

// Run indexes until ctx ends. A failing engine is tried again; what is wrong
// stands in Problem meanwhile.
func (x *Indexer) Run(ctx context.Context) error {
	if l := x.config.Services; l != nil {
		defer func() { _ = l.Close() }()
	}
	wait := poll
	for {
		n, err := x.Step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			text := err.Error()
			x.problem.Store(&text)
			x.config.Log.Error("indexer", "err", err)
			wait = min(2*wait, 30*time.Second)
		default:
			x.problem.Store(nil)
			wait = poll
			if n > 0 {
				continue
			}
			if err := x.links.refresh(ctx, x); err != nil && ctx.Err() == nil {
				x.config.Log.Error("link popularity", "err", err)
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// Finish indexes until nothing is left, then brings popularity up to date.
func (x *Indexer) Finish(ctx context.Context) error {
	if l := x.config.Services; l != nil {
		defer func() { _ = l.Close() }()
	}
	for {
		n, err := x.Step(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			x.links.last = time.Time{}
			return x.links.refresh(ctx, x)
		}
		if ctx.Err() != nil { // what remains is indexed another time
			return ctx.Err()
		}
	}
}

// Step indexes one batch of changes and returns how many there were.
func (x *Indexer) Step(ctx context.Context) (int, error) {
	after := x.cursor.Load()
	changes, err := x.config.Store.Changes(ctx, after, x.config.Batch)
	if err != nil || len(changes) == 0 {
		return 0, err
	}
	if x.config.Space != nil {
		if err := x.config.Space(); err != nil {
			return 0, err
		}
	}
	if x.config.Flush != nil {
		if err := x.config.Flush(); err != nil {
			return 0, err
		}
	}
	var b index.Batch
	seen := map[string]bool{}
	var served []Service
	for _, c := range changes {
		if seen[c.URL] {
			continue
		}
		seen[c.URL] = true
		begin := time.Now()
		if err := x.add(&b, c.Page); err != nil {
			return 0, err
		}
		served = append(served, Service{Seconds: time.Since(begin).Seconds(), Bytes: c.Page.Bytes, URL: c.URL, Arrived: c.Time})
	}
	last := changes[len(changes)-1].Seq
	b.Cursor = binary.BigEndian.AppendUint64(nil, last)
	begin := time.Now()
	if err := x.config.Engine.Apply(ctx, b); err != nil {
		return 0, err
	}
	x.cursor.Store(last)
	x.log(served, begin)
	x.indexed.Add(int64(len(b.Put)))
	if now := time.Now(); now.Sub(x.trimmed) > time.Minute {
		x.trimmed = now
		if err := x.config.Store.Trim(ctx, last, now.Add(-x.config.Keep)); err != nil {
			return len(changes), err
		}
	}
	return len(changes), nil
}

// log writes the services of a batch whose commit began at begin.
func (x *Indexer) log(served []Service, begin time.Time) {
	if x.config.Services == nil {
		return
	}
	now := time.Now()
	share := now.Sub(begin).Seconds() / float64(max(1, len(served)))
	for i := range served {
		served[i].Time = now
		served[i].Seconds += share
	}
	if err := x.config.Services.Add(served); err != nil {
		x.config.Log.Warn("indexer", "err", err)
	}
}

// add puts a page into the batch, or takes it out of the index if it is gone,
// not to be indexed, or says that another page is the right one.
func (x *Indexer) add(b *index.Batch, p *store.Page) error {
	if !p.Held() || p.NoIndex || p.Canonical != "" || p.Body.IsZero() {
		b.Delete = append(b.Delete, p.URL)
		return nil
	}
	d, err := x.document(p)
	if errors.Is(err, ErrElsewhere) {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		b.Delete = append(b.Delete, p.URL) // the archive was thinned out
		return nil
	}
	if err != nil {
		return fmt.Errorf("indexer: %s: %w", p.URL, err)
	}
	if d == nil {
		b.Delete = append(b.Delete, p.URL)
		return nil
	}
	b.Put = append(b.Put, *d)
	return nil
}

// document makes the index's document of a page; nil for one without text.
func (x *Indexer) document(p *store.Page) (*index.Document, error) {
	u, err := weburl.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	body, err := x.config.Read(p.Body)
	if err != nil {
		return nil, err
	}
	page := extract.Document(body.Body, body.Header.Get("Content-Type"), u, extract.Options{MaxText: 256 << 10})
	if page.Sitemap || (page.Text == "" && page.Title == "") {
		return nil, nil
	}
	text := page.Text
	if page.Description != "" {
		text = page.Description + "\n" + text
	}
	return &index.Document{
		ID: p.URL, Kind: "web", Type: extract.Type(p.Type), Host: u.Host(), Lang: p.Lang, Title: page.Title, Body: text,
		Date: p.History.Changed, Size: p.Bytes, Popularity: x.links.of(u.Key(), p.Depth), Same: fmt.Sprintf("%x", p.Digest),
	}, nil
}

// Lag is how many changes wait for the indexer.
func (x *Indexer) Lag(ctx context.Context) (int64, error) {
	st, err := x.config.Store.Stats(ctx)
	if err != nil {
		return 0, err
	}
	return int64(st.Feed - x.cursor.Load()), nil
}

// Popularity is the share of links that point to a page, in [0,1] on a
// logarithmic scale.
func (x *Indexer) Popularity(u weburl.URL, depth int) float64 { return x.links.of(u.Key(), depth) }

// Indexed is how many documents were written since the start.
func (x *Indexer) Indexed() int64 { return x.indexed.Load() }

// Problem is what keeps the indexer from working, or "".
func (x *Indexer) Problem() string {
	if p := x.problem.Load(); p != nil {
		return *p
	}
	return ""
}
