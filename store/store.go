// Package store holds what the robot knows: hosts, pages, the queue of what to
// fetch, links, and the log of changes. It declares the contract; store/local
// keeps it in Pebble on one machine; store/storetest is the suite that every
// implementation passes.
//
// # Hosts, leases, batches
//
// The unit of work is the host. An agent claims one (Claim), takes pages of it
// (Take), fetches them politely, writes what it learned in one batch (Commit)
// and lets go (Release). While the lease lasts nobody else gets the host; a
// lease that runs out is gone, and a Commit under it fails with ErrLease, so
// that an agent that was thought dead cannot write over its successor. A page
// stays queued until the batch that holds its visit is committed: a crash loses
// no page, and refetches at most those taken and not committed.
//
// # Keys
//
// A page's key begins with the hash of its host (weburl.Key), so that a host's
// pages are neighbours: batches touch few blocks, and a range-sharded engine
// spreads hosts over machines.
package store

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/weburl"
)

// State is what became of a page at its last visit.
type State string

// States of a page. Queued is a page never visited.
const (
	Queued   State = "queued"
	OK       State = "ok"
	Redirect State = "redirect" // Location says whereto
	Gone     State = "gone"     // 404, 410
	Blocked  State = "blocked"  // 401, 403, robots.txt
	Failed   State = "failed"   // 5xx, unreachable: tried again
	Excluded State = "excluded" // a trap or out of scope: not tried again
)

// Page is the record of one URL.
type Page struct {
	// Key names the page. Every method that hands out a page sets it, and Commit goes by it:
	// the URL is not parsed again to find its page.
	Key   weburl.Key `json:"-"`
	URL   string     `json:"u"`
	State State      `json:"s"`
	Depth int        `json:"d,omitempty"`
	From  string     `json:"f,omitempty"` // page on which it was found first
	// Version counts the visits that the record has taken in, in a store that many
	// processes share: of two records of a page the one with the greater version is the
	// later one, whatever their clocks say. 0 is not known. It is not copied.
	Version int64 `json:"-"`
	// Slot is where the page stands in its host's queue.
	Slot Slot `json:"q"`

	Status       int      `json:"st,omitempty"`
	Type         string   `json:"ct,omitempty"` // Content-Type
	ETag         string   `json:"e,omitempty"`
	LastModified string   `json:"lm,omitempty"`
	Location     string   `json:"lo,omitempty"` // target of a redirect
	Canonical    string   `json:"ca,omitempty"` // declared, if another page
	Title        string   `json:"t,omitempty"`
	Lang         string   `json:"l,omitempty"`
	Bytes        int64    `json:"b,omitempty"`
	Digest       [16]byte `json:"dg,omitempty,omitzero"`
	Simhash      uint64   `json:"sh,omitempty"`
	// Shown is a fingerprint of what the index shows of the page and Digest does not have:
	// description, kind of content, language. 0 is not known.
	Shown        uint64           `json:"sw,omitempty"`
	NoIndex      bool             `json:"ni,omitempty"` // the index must not show it
	NoCopy       bool             `json:"nc,omitempty"` // by noarchive: no copy of it may be shown
	Expires      time.Time        `json:"ux,omitzero"`  // when it asks not to be shown any more
	Rendered     bool             `json:"r,omitempty"`
	Waits        bool             `json:"rw,omitempty"` // for a browser: taken as fetched meanwhile
	Why          string           `json:"y,omitempty"`  // why it was rendered or not
	Reason       Reason           `json:"rs,omitempty"` // why it is not OK, or why its content was not read, by a code
	Error        string           `json:"er,omitempty"` // the same, for people
	Failures     int              `json:"fl,omitempty"` // in a row
	FailingSince time.Time        `json:"fs,omitzero"`  // the first of them
	Body         archive.Position `json:"w,omitzero"`
	History      change.History   `json:"h,omitzero"`
}

// Held reports whether content of the page is in the archive and belongs into the
// index: a visit that failed took nothing away of what the one before had found.
func (p *Page) Held() bool { return p.State == OK || p.State == Failed && p.Digest != [16]byte{} }

// maxFailures is after how many failures in a row a page is no longer taken for one that
// will be there again in a moment.
const maxFailures = 3

// Represents reports whether the page stands in the index for pages that name it as their
// canonical form: it is kept and can be fetched, may be shown, and names no other page itself.
func (p *Page) Represents() bool {
	return p.Held() && (p.State == OK || p.Failures < maxFailures) && !p.NoIndex && p.Canonical == ""
}

// ShownDiffers reports whether the index shows something else of a page than it did by its
// record before. A fingerprint that is not known is no difference.
func (p *Page) ShownDiffers(before *Page) bool {
	if p.Held() != before.Held() {
		return true
	}
	return p.Held() && (p.NoIndex != before.NoIndex || p.Canonical != before.Canonical || p.Shown != before.Shown && before.Shown != 0)
}

// Slot is a place in the queue of a host: pages never visited stand by Order,
// the lowest first; visited ones wait until Due. The zero value is not queued.
type Slot struct {
	Order uint64    `json:"o,omitempty"` // 1 and up
	Due   time.Time `json:"t,omitzero"`
}

// IsZero reports whether the slot is no place in the queue.
func (s Slot) IsZero() bool { return s.Order == 0 && s.Due.IsZero() }

// Host is the record of one authority: politeness and what is remembered of
// its robots.txt.
type Host struct {
	Name     string        `json:"n"`
	Next     time.Time     `json:"x,omitzero"` // no request before
	Delay    time.Duration `json:"d,omitempty"`
	Response time.Duration `json:"r,omitempty"`  // smoothed
	Failures int           `json:"f,omitempty"`  // requests in a row without an answer, or with one that it has too much to do
	Reason   Reason        `json:"rs,omitempty"` // why requests fail, by a code
	Error    string        `json:"e,omitempty"`  // the same, for people
	Fetched  int64         `json:"c,omitempty"`  // requests answered, in all
	// Kept is how many bytes of bodies were archived of it since KeptSince, for the bound of
	// what one host may add in a day.
	Kept      int64     `json:"kb,omitempty"`
	KeptSince time.Time `json:"ks,omitzero"`
	Pages     int64     `json:"p,omitempty"` // pages in state OK, about
	Robots    []Robots  `json:"rb,omitempty"`
	// Groups are the changes of its pages by class ("" is all), Trust what its
	// sources of signals were worth.
	Groups map[string]change.Group `json:"g,omitempty"`
	Trust  map[string]change.Trust `json:"tr,omitempty"`
	// NotFound is the simhash of what the host answers, with status 200, for a
	// page that does not exist, asked at Probed; 0 for an honest host.
	NotFound uint64    `json:"nf,omitempty"`
	Probed   time.Time `json:"pb,omitzero"`
	// Ignored is how many answers in a row brought a page again that was asked for
	// on the condition that it has changed; -1 where that cannot be told.
	Ignored int `json:"ig,omitempty"`
	// Parameters are its query parameters, as far as variants of pages tell of them.
	Parameters map[string]Parameter `json:"qp,omitempty"`
}

// Robots is a robots.txt as it was fetched, of one scheme.
type Robots struct {
	Scheme  string    `json:"s"`
	Status  int       `json:"st"` // 0: unreachable
	Body    []byte    `json:"b,omitempty"`
	Fetched time.Time `json:"t"`
	Tries   int       `json:"tr,omitempty"` // in a row that gave no answer, or a server error
	Since   time.Time `json:"si,omitzero"`  // the first of them
	Why     string    `json:"w,omitempty"`  // there was no answer at the last
}

// Failed reports whether the file could not be had, so that nothing may be
// fetched (RFC 9309, section 2.3.1.4). 429 is such an answer, too: it says nothing of
// the rules.
func (r *Robots) Failed() bool { return r.Status == 0 || r.Status == 429 || r.Status >= 500 }

// Found is a URL found on a page or given as a seed.
type Found struct {
	URL   weburl.URL
	Depth int
	From  string
	Order uint64 // place among the host's new pages; 0 counts as 1
	// Promote moves a known page that was never visited forward to Order, if that
	// is before its place.
	Promote bool
	// Due asks to visit a known page again no later than this (a signal or a
	// newer lastmod); zero asks nothing.
	Due time.Time
	// Refetch, with Due, asks for the body of a known page: Page.ForgetBody, so that
	// its next visit is unconditional and changes it.
	Refetch bool
}

// ForgetBody forgets by what the page's content could be told from another: the
// next visit brings the body again and counts as a change.
func (p *Page) ForgetBody() {
	p.Digest, p.Simhash, p.ETag, p.LastModified = [16]byte{}, 0, "", ""
}

// Lease is the right to work one host.
type Lease struct {
	Host  Host
	Token uint64 // fencing token: greater with every claim
	Node  string
	Until time.Time
	New   int64 // pages waiting that were never visited, about
	// Orphan says that the lease before ran out instead of being given back: its
	// holder may have asked the host without leaving word.
	Orphan bool
}

// Mix takes from both in turn, from b first: so engines hand out new pages and
// revisits, so that pages that fail again and again do not stand together before
// those that were never tried.
func Mix[T any](a, b []T) []T {
	out := make([]T, 0, len(a)+len(b))
	for i := range max(len(a), len(b)) {
		if i < len(b) {
			out = append(out, b[i])
		}
		if i < len(a) {
			out = append(out, a[i])
		}
	}
	return out
}

// Batch is what an agent learned of its host.
type Batch struct {
	Host   Host    // replaces the host's record
	Visits []Visit // pages of the leased host
	Found  []Found // of any host; those known already change nothing but Due
}

// Visit is the new record of a page, and what came of the visit.
type Visit struct {
	Page Page
	// Changed puts the page into the feed of changes: its content is new, or it
	// is gone from the index.
	Changed bool
	// Reindex puts the page into the feed, too: its content is as it was, but the index
	// shows something else of it.
	Reindex bool
	// Alias is the key of Page.Canonical, zero without one. Retarget says that the page
	// begins or ceases to represent others (Page.Represents): those whose Alias it is are
	// put into the feed, up to MaxAliases.
	Alias    weburl.Key
	Retarget bool
	Links    []weburl.Key // outgoing links, stored when Changed
	// Arrived is when the body came, for the log of requests.
	Arrived time.Time
	Took    time.Duration
}

// MaxAliases bounds how many pages get an entry in the feed because another one represents
// them now, or does not any more.
const MaxAliases = 10_000

// AliasOf returns the key of the page that p names as its canonical form, false for none.
// Visits carry it; records of other stores do not.
func (p *Page) AliasOf() (weburl.Key, bool) {
	if p.Canonical == "" {
		return weburl.Key{}, false
	}
	u, err := weburl.Parse(p.Canonical)
	return u.Key(), err == nil
}

// Change is one entry of the feed that the indexer follows.
type Change struct {
	Seq  uint64 // rises without gaps by at least 1; order of commits
	URL  string
	Time time.Time
	Page *Page `json:"-"` // its present record
}

// VisitLog is one line of the change history, kept for calibration.
type VisitLog struct {
	URL     string        `json:"url"`
	Time    time.Time     `json:"time"`
	Changed bool          `json:"changed"`
	Status  int           `json:"status"`
	Bytes   int64         `json:"bytes"`
	Took    time.Duration `json:"took_ns,omitempty"`
}

// Stats counts what a store holds. Counts of a running store are of one moment
// each, not all of the same.
type Stats struct {
	URLs   int64 // known
	New    int64 // never visited
	Due    int64 // hosts with something due now or never visited pages
	Hosts  int64
	States map[State]int64 // visited pages by state
	Leases int
	Feed   uint64 // Seq of the last change
}

// NewID makes an ID of a store.
func NewID() string { return rand.Text() }

// Errors that callers decide by.
var (
	// ErrLease is the error of work under a lease that is lost.
	ErrLease = errors.New("the lease on the host is lost")
	// ErrNotFound is the error of asking for a page or host that is not known.
	ErrNotFound = errors.New("not in the store")
	// ErrLocked is the error of opening a store that another process has open.
	ErrLocked = errors.New("in use by another process")
	// ErrVersion is the error of opening a store of another format.
	ErrVersion = errors.New("written by another version")
)

// Finisher is a Store that writes a batch and gives the host back in one step.
type Finisher interface {
	// Finish is Commit and Release. After an error the host is given back unless
	// the lease is lost, or the error is one of the input (IsInputError).
	Finish(ctx context.Context, l *Lease, b *Batch) (added int, err error)
}

// HostReader is a Store that reads the record of one host.
type HostReader interface {
	// Host returns the record of a host as of its last commit, or ErrNotFound.
	Host(ctx context.Context, name string) (*Host, error)
}

// Postponer is a Store that puts a host off without writing.
type Postponer interface {
	// Postpone is Release of a host that was not asked: it may be claimed again at
	// next. A crash may forget that.
	Postpone(ctx context.Context, l *Lease, next time.Time) error
}

// Adopter is a Store whose feed of changes is divided among the processes that share it.
type Adopter interface {
	// Adopt takes up to n changes of processes that have been dead for the grace over into
	// this process's feed, those for which readable reports that the page can be read here,
	// and returns how many. A process that comes back finds the others.
	Adopt(ctx context.Context, grace time.Duration, n int, readable func(*Page) bool) (adopted int, err error)
}

// Knower is a Store that can tell of many URLs from memory that they are known.
type Knower interface {
	// Known tells of each key whether its URL is known for certain; known is as
	// long as keys. False says nothing: it is new, or memory does not hold it.
	Known(keys []weburl.Key, known []bool)
}

// Store is the whole contract. All methods may be called from any goroutine.
type Store interface {
	// Add queues the URLs that are not known yet and returns how many those
	// were. It is atomic and durable when it returns.
	Add(ctx context.Context, found []Found) (added int, err error)

	// Claim leases a host that may be visited at now and has something to visit,
	// the one that has waited longest. Without any it returns nil and the time
	// at which there may be one (zero: nothing is queued at all).
	Claim(ctx context.Context, node string, now time.Time, ttl time.Duration) (l *Lease, next time.Time, err error)
	// Take returns up to n pages of the leased host that are due at now, new ones
	// and revisits mixed, each only once per lease.
	Take(ctx context.Context, l *Lease, n int, now time.Time) ([]Page, error)
	// Commit writes a batch: all of it or nothing, durable when it returns. A batch that
	// cannot be written because of what one page or the host's record holds fails with a
	// PageError or a HostError and leaves the lease as it is. Each
	// visited page leaves the slot it was taken from and stands where its new
	// record's Slot says. added counts the URLs that were new.
	Commit(ctx context.Context, l *Lease, b *Batch) (added int, err error)
	// Renew prolongs a lease to now + ttl, or fails with ErrLease.
	Renew(ctx context.Context, l *Lease, now time.Time, ttl time.Duration) error
	// Release gives the host back; pages taken and not committed stay queued.
	Release(ctx context.Context, l *Lease) error

	// Page returns the record of a URL, or ErrNotFound.
	Page(ctx context.Context, u weburl.URL) (*Page, error)
	// Pages calls f for every page in key order, so host by host, until f
	// fails. Pages written meanwhile may be seen or not.
	Pages(ctx context.Context, f func(*Page) error) error
	// Hosts calls f for every host until f fails.
	Hosts(ctx context.Context, f func(*Host) error) error
	// Links calls f for every page with stored links.
	Links(ctx context.Context, f func(from weburl.Key, to []weburl.Key) error) error
	// Records returns the records of those of the keys that are known, in any
	// order and each once.
	Records(ctx context.Context, keys []weburl.Key) ([]Page, error)

	// Changes returns up to n changes after a sequence number, oldest first. The
	// same URL may come again; only its present record counts.
	Changes(ctx context.Context, after uint64, n int) ([]Change, error)
	// Trim forgets changes up to seq and visits before the time.
	Trim(ctx context.Context, seq uint64, visits time.Time) error
	// Visits calls f for the logged visits since a time, oldest first.
	Visits(ctx context.Context, since time.Time, f func(*VisitLog) error) error

	Stats(ctx context.Context) (Stats, error)
	// ID names this store among all: random, made with it, and made anew by
	// Target.Loaded, since a copy has another feed. It never changes otherwise.
	ID() string
	// Get and Put keep small values for other packages (settings, cursors). An empty
	// value is none: putting it deletes the row.
	Get(ctx context.Context, name string) ([]byte, error)
	Put(ctx context.Context, name string, value []byte) error
	// Close ends the store; leases end with it.
	Close() error
}
