// Package feed keeps a text index in step with the store: it follows the
// store's feed of changes, takes the text of each changed page from the robot
// (Handover) or extracts it from the body in the archive, and puts it into the
// engine.
//
// The feed is the bounded queue between robots and indexer: it lies on disk,
// so that indexing, which costs more than a fetch, never slows or loses one.
// The engine stores the feed's cursor in the same commit as the documents;
// after a crash the indexer goes on where the engine is, and store and index
// agree when it has caught up. The cursor names the store: an index of another
// store, or of this one at a later time than its present state, is filled anew.
//
// A body that cannot be read back (archive.Damage) excludes its page and nothing
// else: it is logged and counted, and the page is due again so that its body is
// fetched once more. The document of a body that is missing is removed; that of
// one that is damaged or unreadable stays as it was. What ends a step is an error
// of store, engine or disk, and what passes (archive.Passing).
package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Config are the parts of an Indexer.
type Config struct {
	Store store.Store
	// Read returns the body of a page; fs.ErrNotExist means that there is none
	// any more, ErrElsewhere that another node has it and indexes the page.
	Read func(archive.Position) (*archive.Exchange, error)
	// Handover, if not nil, has the documents that a robot of this process extracted.
	Handover *Handover
	PDF      *pdftext.Pool // reads PDF documents; nil leaves them out
	Flush    func() error  // makes written records readable; may be nil
	Engine   index.Engine
	Log      *slog.Logger
	Batch    int // documents a commit; default 200
	// Space, if not nil, says why nothing may be written now (a full disk).
	Space func() error
	// Keep is how long visits are kept in the store's log; default 90 days.
	Keep time.Duration
	// Services, if not nil, logs how long pages took.
	Services *Services
	// OneDatabase says that store and engine are parts of one database and always of
	// the same moment: cursors without a store's name are taken as its own, and the
	// feed, from which other nodes may take changes, is not compared with the cursor.
	OneDatabase bool
}

// ErrElsewhere is the error of a body that another node keeps.
var ErrElsewhere = errors.New("the body is kept by another node")

// errIncomplete is the error of a page whose reading the end of the process cut
// off. The feed goes on there after the next start.
var errIncomplete = errors.New("reading was cut off")

// errFlush is the error of our own archive, which is no page's fault.
var errFlush = errors.New("written records cannot be made readable")

// Indexer follows the feed.
type Indexer struct {
	config   Config
	links    *Popularity
	cursor   atomic.Pointer[cursor]
	indexed  atomic.Int64
	excluded exclusions
	problem  atomic.Pointer[string]
	trimmed  time.Time
	flushed  bool // the archive has no written record left that cannot be read
	// otherStore says that the index is being filled in place of another store's.
	otherStore bool
}

// New returns an indexer that goes on where the engine is. An engine that is new,
// or has followed another store, is filled from all pages first.
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
	x.cursor.Store(&cursor{})
	why, err := x.resumeCursor(ctx)
	if err != nil {
		return nil, fmt.Errorf("indexer: %w", err)
	}
	if why == "" {
		return x, nil
	}
	c.Log.Info("indexer: fill the index from the store", "reason", why)
	if err := x.replayStore(ctx); err != nil {
		return nil, fmt.Errorf("indexer: fill the index from the store: %w", err)
	}
	x.otherStore = false
	return x, nil
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
			if err := x.links.refreshCounts(ctx, x); err != nil && ctx.Err() == nil {
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
			return x.links.refreshCounts(ctx, x)
		}
		if ctx.Err() != nil { // what remains is indexed another time
			return ctx.Err()
		}
	}
}

// Step indexes one batch of changes and returns how many there were.
func (x *Indexer) Step(ctx context.Context) (int, error) {
	at := x.cursor.Load()
	changes, err := x.config.Store.Changes(ctx, at.Seq, x.config.Batch)
	if err != nil || len(changes) == 0 {
		return 0, err
	}
	if x.config.Space != nil {
		if err := x.config.Space(); err != nil {
			return 0, err
		}
	}
	x.flushed = false
	var b batch
	seen := map[string]bool{}
	var served []Service
	for _, c := range changes {
		if seen[c.URL] {
			continue
		}
		seen[c.URL] = true
		begin := time.Now()
		err := x.addPage(ctx, &b, c.Page)
		if errors.Is(err, ErrElsewhere) {
			err = x.skipElsewhere(ctx, &b, c.Page)
		}
		if err != nil {
			return 0, err
		}
		served = append(served, Service{Seconds: time.Since(begin).Seconds(), Bytes: c.Page.Bytes, URL: c.URL, Arrived: c.Time})
	}
	last := &changes[len(changes)-1]
	next := &cursor{Store: at.Store, Seq: last.Seq, URL: last.URL, Time: last.Time.UnixMilli()}
	begin := time.Now()
	if err := x.applyBatch(ctx, &b, next); err != nil {
		return 0, err
	}
	x.cursor.Store(next)
	x.logServices(served, begin)
	x.indexed.Add(int64(len(b.Put)))
	if now := time.Now(); now.Sub(x.trimmed) > time.Minute {
		x.trimmed = now
		return len(changes), x.trimFeed(ctx, now.Add(-x.config.Keep))
	}
	return len(changes), nil
}

// trimFeed lets the store forget the changes that the engine would not need again
// after a crash: those up to its durable cursor, which may be behind what is
// found. The last of them stays: at the next start it tells whether the feed is
// the one that the index has followed.
func (x *Indexer) trimFeed(ctx context.Context, before time.Time) error {
	b, err := x.config.Engine.Cursor(ctx)
	if err != nil {
		return err
	}
	var durable cursor
	if json.Unmarshal(b, &durable) != nil || durable.Store != x.config.Store.ID() || durable.Seq <= 1 {
		return nil // nothing of this store is durable yet
	}
	return x.config.Store.Trim(ctx, durable.Seq-1, before)
}

// batch is what a step writes: documents, and pages whose bodies are to be
// fetched again.
type batch struct {
	index.Batch
	refetch []store.Found
}

// batchSize is how much memory the batch may take, in documents.
func (b *batch) batchSize() int { return len(b.Put) + (len(b.Delete)+len(b.refetch))/10 }

// applyBatch writes a batch. Pages are made due before the cursor passes their changes.
func (x *Indexer) applyBatch(ctx context.Context, b *batch, next *cursor) error {
	if len(b.refetch) > 0 {
		if _, err := x.config.Store.Add(ctx, b.refetch); err != nil {
			return err
		}
	}
	if next != nil {
		b.Cursor = next.encodeCursor()
	}
	return x.config.Engine.Apply(ctx, b.Batch)
}

// logServices writes the services of a batch whose commit began at begin.
func (x *Indexer) logServices(served []Service, begin time.Time) {
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

// isHidden reports whether a page has no place in the index, whatever its body: a
// canonical link to a page that is not kept, failed, or names another one itself
// hides nothing.
func (x *Indexer) isHidden(ctx context.Context, p *store.Page) (bool, error) {
	if !p.Held() || p.NoIndex || p.Body.IsZero() || extract.Problem(p.Reason).Final() {
		return true, nil
	}
	target, ok := p.AliasOf()
	if !ok {
		return false, nil
	}
	canonical, err := x.config.Store.Records(ctx, []weburl.Key{target})
	if err != nil {
		return false, fmt.Errorf("indexer: canonical page of %s: %w", p.URL, err)
	}
	return len(canonical) == 1 && canonical[0].Represents(), nil
}

// addPage puts a page into the batch, or takes it out of the index if it is gone,
// not to be indexed, or names another page as canonical that stands for it. The
// error is one that passes, or ErrElsewhere: a page whose body cannot be had is
// excluded.
func (x *Indexer) addPage(ctx context.Context, b *batch, p *store.Page) error {
	x.noteVersion(b, p)
	hidden, err := x.isHidden(ctx, p)
	if err != nil {
		return err
	}
	if hidden {
		b.Delete = append(b.Delete, p.URL)
		return nil
	}
	d, err := x.documentOf(ctx, p)
	switch {
	case errors.Is(err, ErrElsewhere):
		return ErrElsewhere
	case err != nil && (archive.Passing(err) || errors.Is(err, errIncomplete) || errors.Is(err, errFlush)):
		return fmt.Errorf("indexer: %s: %w", p.URL, err)
	case err != nil:
		x.excludePage(b, p, err)
	case d == nil:
		b.Delete = append(b.Delete, p.URL)
	default:
		b.Put = append(b.Put, *d)
	}
	return nil
}

// noteVersion notes of which version of a page the batch is. A store that took the place
// of the one that the index has followed counts anew.
func (x *Indexer) noteVersion(b *batch, p *store.Page) {
	if p.Version == 0 || x.otherStore {
		return
	}
	if b.Versions == nil {
		b.Versions = map[string]int64{}
	}
	b.Versions[p.URL] = p.Version
}

// documentOf makes the index's document of a page; nil for one without text.
func (x *Indexer) documentOf(ctx context.Context, p *store.Page) (*index.Document, error) {
	u, err := weburl.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	c, ok := x.config.Handover.takeContent(p.Body, p.URL)
	if !ok {
		if c, err = x.archivedContent(ctx, p, u); err != nil {
			return nil, err
		}
	}
	if c.text == "" && c.title == "" {
		return nil, nil
	}
	return &index.Document{
		ID: p.URL, Kind: "web", Type: extract.Type(p.Type), Host: u.Host(), Lang: p.Lang, Title: c.title, Body: c.text,
		Date: p.History.Changed, Size: p.Bytes, Popularity: x.links.popularityOf(u.Key(), p.Depth), Same: sameOf(p),
	}, nil
}

// content is what the index shows of a body. It depends on nothing else than the body
// and its address: extract.Options other than MaxText have no part in it.
type content struct{ title, text string }

// maxText is how many bytes of a document are searched.
const maxText = 256 << 10

// contentOfPage returns the content of a page that was extracted with the default MaxText.
func contentOfPage(page *extract.Page) content {
	if page.Sitemap {
		return content{}
	}
	text := page.Text
	if len(text) > maxText { // a copy, so that the rest is freed
		text = strings.Clone(wholeWords(text, maxText))
	}
	if page.Description != "" && (text != "" || page.Title != "") {
		text = page.Description + "\n" + text
	}
	return content{title: page.Title, text: text}
}

// isUnread reports whether a page's content was not read: what is shown of it stays.
func isUnread(page *extract.Page) bool {
	return page.Problem.Final() || page.Problem == extract.UnreadPDF
}

// wholeWords returns the front of a text up to a space, at most limit bytes; of one
// long word as much as there is room for.
func wholeWords(text string, limit int) string {
	if i := strings.LastIndexByte(text[:limit+1], ' '); i > 0 {
		return text[:i]
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// archivedContent reads the body of a page back from the archive and extracts its content.
func (x *Indexer) archivedContent(ctx context.Context, p *store.Page, u weburl.URL) (c content, err error) {
	if x.config.Flush != nil && !x.flushed {
		if err := x.config.Flush(); err != nil {
			return c, fmt.Errorf("%w: %w", errFlush, err)
		}
		x.flushed = true
	}
	body, err := x.config.Read(p.Body)
	if err != nil {
		return c, err
	}
	if of, err := weburl.Parse(body.URL); body.URL != p.URL && (err != nil || of != u) {
		return c, fmt.Errorf("archive %s at %d: %w: it is of %.200q", p.Body.File, p.Body.Offset, errOtherPage, body.URL)
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errExtract, v)
		}
	}()
	page := extract.Document(ctx, body.Body, body.Header.Get("Content-Type"), u, extract.Options{PDF: x.config.PDF})
	if page.Incomplete {
		return c, errors.Join(errIncomplete, ctx.Err())
	}
	if isUnread(page) {
		return c, fmt.Errorf("%w: %s", errExtract, page.Problem)
	}
	return contentOfPage(page), nil
}

// sameOf is the digest by which copies are told; a page that is to be fetched again
// has none.
func sameOf(p *store.Page) string {
	if p.Digest == [16]byte{} {
		return ""
	}
	return fmt.Sprintf("%x", p.Digest)
}

// Lag is how many changes wait for the indexer.
func (x *Indexer) Lag(ctx context.Context) (int64, error) {
	st, err := x.config.Store.Stats(ctx)
	if err != nil {
		return 0, err
	}
	if at := x.cursor.Load().Seq; st.Feed > at {
		return int64(st.Feed - at), nil
	}
	return 0, nil
}

// Popularity is the share of links that point to a page, in [0,1] on a
// logarithmic scale.
func (x *Indexer) Popularity(u weburl.URL, depth int) float64 {
	return x.links.popularityOf(u.Key(), depth)
}

// Indexed is how many documents were written since the start.
func (x *Indexer) Indexed() int64 { return x.indexed.Load() }

// Problem is what keeps the indexer from working, or "".
func (x *Indexer) Problem() string {
	if p := x.problem.Load(); p != nil {
		return *p
	}
	return ""
}
