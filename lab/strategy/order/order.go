// Package order lets a strategy script order a live crawl: the script's
// function order(n) says how soon a found page is to be visited, its procedure
// fetched(n), if there is one, learns from the links of fetched pages.
//
// The script runs in the same sandbox as on a stored web. It sees what a robot
// knows: a page's URL, depth, server, age since it was found and the attributes
// that the script keeps of it; the links of the page that was just fetched. The
// main body runs once, before the crawl, on an empty web: a script whose body
// crawls a stored web can be used as it is.
package order

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/lab/strategy"
	"github.com/freshet/freshet/lab/strategy/contain"
	"github.com/freshet/freshet/lab/strategy/run"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Prefix marks a script in the name of an ordering: script:FILE.
const Prefix = "script:"

// Options bound a script in a live crawl.
type Options struct {
	Pages    int   // whose attributes are remembered; beyond, all is forgotten. 0: a million
	MaxSteps int64 // of a call; 0: 10,000
	Log      *slog.Logger
}

// servers is how many servers a script can tell apart; more share numbers.
const servers = 1 << 16

// maxErrors is how many errors of a script are borne before it is asked no more.
const maxErrors = 100

// Ordering is a crawl.Ordering by a script. It is safe for concurrent use. Close
// it after the crawl.
type Ordering struct {
	mu      sync.Mutex
	script  *strategy.Script
	session *run.Session
	order   func(u uint32) (float64, error)
	fetched func(u uint32) (float64, error)
	web     *live
	pages   int
	errors  int
	log     *slog.Logger
	dir     string
}

// Spreading is an Ordering whose script learns from links (crawl.Spreader).
type Spreading struct{ *Ordering }

var (
	_ crawl.Ordering = (*Ordering)(nil)
	_ crawl.Spreader = Spreading{}
)

// Open reads a script, a file or the name of a shipped one, and runs its main
// body. The ordering is a Spreading if the script has a procedure fetched.
func Open(ctx context.Context, name string, opt Options) (crawl.Ordering, *Ordering, error) {
	file, src, err := strategy.Read(name)
	if err != nil {
		return nil, nil, err
	}
	s, err := strategy.Load(file, src, strategy.Auto, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range s.Diagnostics {
		if !d.Warning {
			return nil, nil, errors.New(d.Human(s.File, s.Source))
		}
	}
	o, err := newOrdering(ctx, s, opt)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	if o.fetched != nil {
		return Spreading{o}, o, nil
	}
	return o, o, nil
}

func newOrdering(ctx context.Context, s *strategy.Script, opt Options) (_ *Ordering, err error) {
	if opt.Pages <= 0 {
		opt.Pages = 1 << 20
	}
	if opt.MaxSteps <= 0 {
		opt.MaxSteps = 10_000
	}
	o := &Ordering{script: s, pages: opt.Pages, log: opt.Log}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	if o.dir, err = os.MkdirTemp("", "freshet-ordering-*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	o.web = &live{nodes: opt.Pages}
	o.web.forgetLive()
	o.session, err = run.NewSession(ctx, s.Program, run.Options{
		Web: o.web, Pages: o.web, Dir: o.dir, Cost: run.DefaultCost(), MaxSteps: opt.MaxSteps, MaxMemory: 256 << 20, MaxDisk: 1 << 30,
	}, o.web)
	if err != nil {
		return nil, err
	}
	var ok bool
	if o.order, ok, err = o.session.Function("order"); err == nil && !ok {
		err = errors.New("a script that orders a crawl has a function order(n : node) : real; the greatest goes first")
	}
	if err != nil {
		return nil, err
	}
	o.fetched, _, err = o.session.Function("fetched")
	return o, err
}

// Close ends the script and removes its files.
func (o *Ordering) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var err error
	if o.session != nil {
		err = o.session.Close()
		o.session = nil
	}
	return errors.Join(err, os.RemoveAll(o.dir))
}

// Order implements crawl.Ordering. If the script fails the page has its place
// by depth.
func (o *Ordering) Order(f *store.Found) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.pageNumber(f.URL.Key())
	o.web.noteFound(u, f)
	v, ok := o.callScript(o.order, u)
	o.web.url = ""
	if !ok {
		return uint64(f.Depth) + 1
	}
	return valueRank(v)
}

// valueRank maps a value to a place: the greatest to the lowest, which goes first.
// Places have 63 bits, for databases whose integers are signed.
func valueRank(v float64) uint64 { return max(1, ^contain.RealKey(v)>>1) }

// Spread implements crawl.Spreader.
func (s Spreading) Spread(from weburl.Key, to []weburl.Key) {
	o := s.Ordering
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.web.numbers)+len(to)+1 > o.pages {
		o.forgetPages()
	}
	u := o.pageNumber(from)
	o.web.links = o.web.links[:0]
	for _, k := range to[:min(len(to), o.pages-1)] {
		o.web.links = append(o.web.links, o.pageNumber(k))
	}
	o.web.fetched = u
	o.callScript(o.fetched, u)
	o.web.fetched = none
}

// callScript asks the script; after too many errors it is asked no more.
func (o *Ordering) callScript(f func(uint32) (float64, error), u uint32) (float64, bool) {
	if o.session == nil || o.errors > maxErrors {
		return 0, false
	}
	v, err := f(u)
	if err == nil {
		return v, true
	}
	o.errors++
	switch o.errors {
	case 1:
		o.log.Warn("the ordering's script failed; the page has its place by depth", "script", o.script.File, "error", err)
	case maxErrors + 1:
		o.log.Error("the ordering's script failed too often and is asked no more; pages are ordered by depth", "script", o.script.File, "error", err)
	}
	return 0, false
}

// pageNumber returns the number of a page. When there are too many everything is
// forgotten.
func (o *Ordering) pageNumber(k weburl.Key) uint32 {
	if u, ok := o.web.numbers[k]; ok {
		return u
	}
	if len(o.web.numbers) >= o.pages {
		o.forgetPages()
	}
	u := uint32(len(o.web.numbers))
	o.web.numbers[k] = u
	o.web.about = append(o.web.about, about{depth: -1})
	return u
}

func (o *Ordering) forgetPages() {
	o.web.forgetLive()
	if o.session != nil {
		o.session.Forget()
	}
}

// none is the number of no page.
const none = ^uint32(0)

// about is what is remembered of a page: 16 bytes.
type about struct {
	found  float64 // seconds since the start
	depth  int32
	server uint32
}

// live is the web as the robot knows it.
type live struct {
	nodes   int
	numbers map[weburl.Key]uint32
	about   []about
	hosts   map[string]uint32
	started time.Time
	fetched uint32   // the page whose links are known
	links   []uint32 // of it
	current uint32   // the page whose URL is known
	url     string
}

func (l *live) forgetLive() {
	l.numbers, l.about, l.fetched, l.links = map[weburl.Key]uint32{}, nil, none, nil
	if l.hosts == nil || len(l.hosts) > servers {
		l.hosts = map[string]uint32{}
	}
	if l.started.IsZero() {
		l.started = time.Now()
	}
}

// noteFound notes what is known of a page that is to be ordered.
func (l *live) noteFound(u uint32, f *store.Found) {
	l.current, l.url = u, f.URL.String()
	a := &l.about[u]
	if a.depth < 0 {
		a.found = time.Since(l.started).Seconds()
		a.server = l.hostNumber(f.URL.Host())
		a.depth = int32(min(f.Depth, 1<<30))
	} else if int32(min(f.Depth, 1<<30)) < a.depth {
		a.depth = int32(f.Depth)
	}
}

func (l *live) hostNumber(name string) uint32 {
	h, ok := l.hosts[name]
	if !ok {
		h = uint32(len(l.hosts) % servers)
		l.hosts[name] = h
	}
	return h
}

// Nodes implements run.Web: how many pages there can be.
func (l *live) Nodes() int { return l.nodes }

// Links implements run.Web.
func (l *live) Links() int64 { return 0 }

// Out implements run.Web: only the page that was just fetched has links.
func (l *live) Out(u uint32) []uint32 {
	if u == l.fetched {
		return l.links
	}
	return nil
}

// In implements run.Web: nobody knows them.
func (l *live) In(uint32) []uint32 { return nil }

// Sites implements run.Web.
func (l *live) Sites() int { return servers }

// Site implements run.Web.
func (l *live) Site(u uint32) int { return l.Server(u) }

// SiteSpan implements run.Web: sites are no ranges of pages here.
func (l *live) SiteSpan(int) (first, pages uint32) { return 0, 0 }

// Server implements run.Live.
func (l *live) Server(u uint32) int {
	if int(u) < len(l.about) {
		return int(l.about[u].server)
	}
	return 0
}

// Depth implements run.Live.
func (l *live) Depth(u uint32) int {
	if int(u) < len(l.about) {
		return int(l.about[u].depth)
	}
	return -1
}

// Age implements run.Live.
func (l *live) Age(u uint32) float64 {
	if int(u) < len(l.about) && l.about[u].depth >= 0 {
		return time.Since(l.started).Seconds() - l.about[u].found
	}
	return 0
}

// URL implements run.Pages: the URL of the page that is being ordered.
func (l *live) URL(u uint32) string {
	if u == l.current {
		return l.url
	}
	return ""
}

// Size implements run.Pages: it is not known before the page is fetched.
func (l *live) Size(uint32) int64 { return 0 }

// Contains implements run.Pages: whether the URL contains the word.
func (l *live) Contains(u uint32, word string) bool {
	return u == l.current && strings.Contains(strings.ToLower(l.url), strings.ToLower(word))
}
