package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Pool renders pages in tabs of a Chromium that it starts when the first page
// comes. It is safe for concurrent use. Make it with NewPool, end it with
// Close.
type Pool struct {
	config  Config
	foreign foreignHosts
	ctx     context.Context // ends with the pool
	stop    context.CancelFunc

	mu      sync.Mutex
	limit   int
	busy    int
	waiting int
	change  chan struct{} // closed and replaced when busy or limit change
	current *chromium     // nil until the first page, and after a crash
	ended   chan struct{} // closed when the browser before has ended; nil without one
	idle    []*tab        // of current
	stats   Stats
	problem error // why no browser could be started last
	tried   time.Time
	open    sync.WaitGroup // pages under way

	starting sync.Mutex // held while a browser is started: by one caller at a time
}

// Stats counts what a pool did.
type Stats struct {
	Rendered int64 // pages
	Failed   int64 // pages that could not be rendered
	Retried  int64 // pages tried again after a crash
	Browsers int64 // started
	Killed   int64 // of them after a crash or hang
	Cut      int64 // pages taken before they were done
	Requests int64 // of pages
	Blocked  int64
	Bytes    int64
	Private  int64 // connections to private addresses that were refused
	Time     time.Duration
	CPU      time.Duration // of the browsers
	Memory   int64         // of the present one, resident
}

// retryStart is how long a browser that could not be started is not tried
// again.
const retryStart = 30 * time.Second

// NewPool returns a pool; no browser is started yet.
func NewPool(c Config) *Pool {
	p := &Pool{config: c.withRenderDefaults(), change: make(chan struct{})}
	p.limit = p.config.Tabs
	p.foreign.rate = p.config.ForeignRate
	if c.Tabs < 0 {
		p.limit = 0
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// SetTabs changes how many pages may be rendered at the same time. Pages under
// way are finished.
func (p *Pool) SetTabs(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = max(0, n)
	p.wakeAll()
}

// Tabs returns how many pages are rendered, wait, and may be rendered at the
// same time.
func (p *Pool) Tabs() (busy, waiting, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy, p.waiting, p.limit
}

// Stats returns what the pool did.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	if p.current != nil {
		s.Private += p.current.guard.refused.Load()
		memory, cpu := p.current.resourceUsage()
		s.Memory, s.CPU = memory, s.CPU+cpu
	}
	return s
}

// Available is nil if pages can be rendered, else why not: no Chromium, or no
// tabs allowed.
func (p *Pool) Available() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == 0 {
		return errNoTabs
	}
	if p.problem != nil && time.Since(p.tried) < retryStart {
		return p.problem
	}
	if p.config.Remote == "" {
		_, err := p.config.findChromium()
		return err
	}
	return nil
}

var errNoTabs = fmt.Errorf("%w: the number of render agents is 0", ErrNoBrowser)

// wakeAll lets everybody who waits look again. The caller holds mu.
func (p *Pool) wakeAll() {
	close(p.change)
	p.change = make(chan struct{})
}

// Close ends the browser; pages under way fail.
func (p *Pool) Close() {
	p.mu.Lock() // who enters sees that it is closed, or is waited for
	p.stop()
	p.mu.Unlock()
	p.open.Wait()
	p.mu.Lock()
	b, idle := p.current, p.idle
	p.current, p.idle = nil, nil
	if b != nil {
		p.stats.Private += b.guard.refused.Load()
		_, cpu := b.resourceUsage()
		p.stats.CPU += cpu
	}
	p.mu.Unlock()
	if b != nil {
		b.killBrowser()
		for _, t := range idle {
			t.closeTab()
		}
		b.closeBrowser()
	}
}

// Render builds a page, waiting for a tab if all are busy. A browser that
// crashes or hangs is killed with its process group, and the page is tried once
// more in a new one; a page that costs its own tab is not. The error is ErrNoBrowser where none can be had.
func (p *Pool) Render(ctx context.Context, page *Page) (*Document, error) {
	if err := p.acquireTab(ctx); err != nil {
		return nil, err
	}
	defer p.releaseTab()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unhook := context.AfterFunc(p.ctx, cancel)
	defer unhook()
	doc, err := p.tryRender(ctx, page)
	if errors.Is(err, errBrowser) && ctx.Err() == nil {
		p.updateStats(func(s *Stats) { s.Retried++ })
		doc, err = p.tryRender(ctx, page)
	}
	p.updateStats(func(s *Stats) {
		if err != nil {
			s.Failed++
			return
		}
		s.Rendered++
		s.Requests += int64(doc.Requests)
		s.Blocked += int64(doc.Blocked)
		s.Bytes += doc.Bytes
		s.Time += doc.Took
		if doc.Cut != "" {
			s.Cut++
		}
	})
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", page.URL, err)
	}
	return doc, nil
}

func (p *Pool) updateStats(f func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.stats)
}

// acquireTab waits until a tab may be used.
func (p *Pool) acquireTab(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	defer func() { p.waiting-- }()
	for p.busy >= p.limit {
		if p.limit == 0 {
			return errNoTabs
		}
		change := p.change
		p.mu.Unlock()
		var err error
		select {
		case <-change:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-p.ctx.Done():
			err = errClosed
		}
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
	if p.ctx.Err() != nil {
		return errClosed
	}
	p.busy++
	p.open.Add(1)
	return nil
}

var errClosed = fmt.Errorf("%w: the pool is closed", ErrNoBrowser)

func (p *Pool) releaseTab() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	p.wakeAll()
	p.open.Done()
}

// tryRender renders the page in one tab.
func (p *Pool) tryRender(ctx context.Context, page *Page) (*Document, error) {
	t, err := p.idleOrNewTab(ctx, page.URL.Host())
	if err != nil {
		return nil, err
	}
	t.host = page.URL.Host()
	doc, err := t.renderPage(ctx, page)
	t.browser.pages.Add(1)
	if p.returnTab(ctx, t, err) {
		err = fmt.Errorf("%w: %w", errBrowser, err)
	}
	return doc, err
}

// idleOrNewTab returns an idle tab or a new one.
func (p *Pool) idleOrNewTab(ctx context.Context, host string) (*tab, error) {
	b, t, err := p.currentBrowser(ctx, host)
	if err != nil || t != nil {
		return t, err
	}
	t, err = newTab(ctx, b, &p.config)
	if err != nil {
		p.dropTab(b, true)
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", errBrowser, err)
		}
		return nil, err
	}
	return t, nil
}

// currentBrowser returns the current browser with a tab counted on it, starting one if
// there is none or it has served long enough, and an idle tab if it has one.
func (p *Pool) currentBrowser(ctx context.Context, host string) (*chromium, *tab, error) {
	p.starting.Lock()
	defer p.starting.Unlock()
	p.mu.Lock()
	if b := p.current; b != nil && (time.Since(b.started) > p.config.MaxAge || b.pages.Load() >= int64(p.config.MaxPages)) {
		p.retireBrowser()
	}
	if b := p.current; b != nil {
		b.tabs++
		var t *tab
		if len(p.idle) > 0 {
			b.tabs-- // it is counted already
			t = p.takeIdleTab(host)
		}
		p.mu.Unlock()
		return b, t, nil
	}
	err := p.problem
	if err != nil && time.Since(p.tried) < retryStart {
		p.mu.Unlock()
		return nil, nil, err
	}
	ended := p.ended
	p.mu.Unlock()
	if ended != nil { // two browsers at once would take twice the memory
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	b, err := startChromium(ctx, &p.config, &p.foreign)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		p.problem, p.tried = err, time.Now()
	}
	if err != nil {
		return nil, nil, err
	}
	p.stats.Browsers++
	p.current, b.tabs = b, 1
	return b, nil, nil
}

// takeIdleTab returns an idle tab, one that showed the host last if there is one:
// Chromium shows each site in a process of its own, and starting one takes as
// long again as rendering a page. The caller holds mu.
func (p *Pool) takeIdleTab(host string) *tab {
	i := max(0, slices.IndexFunc(p.idle, func(t *tab) bool { return t.host == host }))
	t := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return t
}

// retireBrowser lets the current browser end when its tabs are done; the next one is started
// then. The caller holds mu.
func (p *Pool) retireBrowser() {
	b, idle := p.current, p.idle
	p.current, p.idle, p.ended, b.retired = nil, nil, b.ended, true
	b.tabs -= len(idle)
	if b.tabs == 0 {
		p.endBrowser(b)
	}
}

// endBrowser closes a browser nobody uses. The caller holds mu.
func (p *Pool) endBrowser(b *chromium) {
	p.stats.Private += b.guard.refused.Load()
	_, cpu := b.resourceUsage()
	p.stats.CPU += cpu
	p.open.Go(func() {
		b.closeBrowser()
		close(b.ended)
	})
}

// memoryPages and memoryTime are after how many pages, and after how long, the memory of a
// browser is looked at when a page of it is done.
const (
	memoryPages = 16
	memoryTime  = 5 * time.Second
)

// returnTab takes a tab back. It reports whether the browser has died.
func (p *Pool) returnTab(ctx context.Context, t *tab, err error) (dead bool) {
	b := t.browser
	if errors.Is(err, errTab) {
		// One tab's trouble is not the browser's, unless it does not answer.
		dead = !b.isAlive(context.WithoutCancel(ctx), p.config.Answer)
		if dead {
			b.killBrowser()
		}
		t.closeTab()
		p.dropTab(b, dead)
		return dead
	}
	full := false
	looked, now := b.looked.Load(), int64(time.Since(b.started))
	if b.pages.Load()%memoryPages == 0 || now-looked > int64(memoryTime) && b.looked.CompareAndSwap(looked, now) {
		memory, _ := b.resourceUsage()
		full = memory > p.config.MaxMemory
	}
	p.mu.Lock()
	if p.current == b && !full && len(p.idle) < p.limit {
		p.idle = append(p.idle, t)
		p.mu.Unlock()
		return false
	}
	if p.current == b && full {
		p.retireBrowser()
	}
	p.mu.Unlock()
	t.closeTab()
	p.dropTab(b, false)
	return false
}

// dropTab counts a tab off its browser, that is not used again if it is dead.
func (p *Pool) dropTab(b *chromium, dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.tabs--
	if dead && p.current == b {
		p.stats.Killed++
		b.killBrowser()
		p.retireBrowser()
		return
	}
	if b.retired && b.tabs == 0 {
		p.endBrowser(b)
	}
}
