package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// puppet is a Renderer that does what a test wants. (The real one is tested
// with the robot in lab/bench and cmd/freshet.)
type puppet struct {
	mu      sync.Mutex
	ready   error
	links   map[string][]string // that rendering adds, by path
	took    time.Duration
	enough  func(most int) bool // a page is held until this holds of how many were here at once; nil: not at all
	now     int
	most    int
	learned map[string]int
}

func (p *puppet) Wants(_ context.Context, f *Fetched) Decision {
	_, ok := p.links[f.URL.Target()]
	return Decision{Render: ok, Why: "told so", Tag: 7}
}

func (p *puppet) Render(ctx context.Context, f *Fetched) (*Rendered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready != nil {
		return nil, fmt.Errorf("puppet: %w", p.ready)
	}
	p.now++
	p.most = max(p.most, p.now)
	p.mu.Unlock()
	pause(ctx, p.took)
	p.mu.Lock()
	for p.enough != nil && !p.enough(p.most) && ctx.Err() == nil {
		p.mu.Unlock()
		pause(ctx, time.Millisecond)
		p.mu.Lock()
	}
	p.now--
	if f.URL.Target() == "/fails" {
		return nil, errors.New("the page is bad")
	}
	page := *f.Page
	page.Links = slices.Clone(page.Links)
	html := "<title>rendered</title>"
	for _, l := range p.links[f.URL.Target()] {
		u, err := f.URL.Resolve(l)
		if err != nil {
			return nil, err
		}
		page.Links = append(page.Links, extract.Link{URL: u})
		html += "<a href=" + l + ">"
	}
	page.Title = "rendered"
	return &Rendered{HTML: []byte(html), Page: &page}, nil
}

func (p *puppet) Learn(f *Fetched, r *Rendered, urls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.Tag != 7 {
		return
	}
	if p.learned == nil {
		p.learned = map[string]int{}
	}
	p.learned[f.URL.Target()] = urls
	if r == nil {
		p.learned[f.URL.Target()] = -1
	}
}

func (p *puppet) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *puppet) set(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = err
}

var rendering = map[string]string{
	"/": link("/a", "/b", "/fails"), "/a": link(), "/b": link("/plain"), "/plain": link("/too"), "/only": link("/under"), "/too": link(), "/under": link(), "/fails": link(),
}

// Links that only rendering finds are followed and counted; those that come
// without it, too, are not, whichever was first; a page whose render fails is
// taken as it was fetched.
func TestRendering(t *testing.T) {
	t.Parallel()
	s := newSite(t, rendering, nil)
	r := newRig(t)
	p := &puppet{took: 20 * time.Millisecond, links: map[string][]string{"/a": {"/only", "/too", "/b"}, "/b": {"/only"}, "/fails": nil}}
	r.config.Render = p
	robot := r.crawl(t, s.URL+"/")
	for path := range rendering {
		if n := s.count(path); n != 1 {
			t.Errorf("%s fetched %d times", path, n)
		}
	}
	st := robot.Status()
	if st.Rendered != 2 || st.Gained != 1 || st.Errors["render"] != 1 || st.Waiting != 0 {
		t.Errorf("rendered %d, gained %d, errors %v, waiting %d", st.Rendered, st.Gained, st.Errors, st.Waiting)
	}
	if p.learned["/fails"] != -1 || p.learned["/a"]+p.learned["/b"] != 2 {
		t.Errorf("learned %v", p.learned)
	}
	if a := r.page(t, s.URL+"/a"); !a.Rendered || a.Title != "rendered" || a.Why != "told so" {
		t.Errorf("%+v", a)
	}
	if f := r.page(t, s.URL+"/fails"); f.Rendered || f.State != store.OK || !strings.Contains(f.Why, "failed: the page is bad") {
		t.Errorf("%+v", f)
	}
	if from := r.page(t, s.URL+"/under").From; from != s.URL+"/only" {
		t.Errorf("/under was found on %s", from)
	}
}

// While pages are in the browser the agent goes on with others; a host with a
// delay has one page there at a time.
func TestRenderingAhead(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, time.Millisecond} {
		pages, links := map[string]string{}, map[string][]string{}
		var paths []string
		for i := range 20 {
			path := fmt.Sprint("/p", i)
			pages[path], links[path] = link(), nil
			paths = append(paths, path)
		}
		pages["/"] = link(paths...)
		s := newSite(t, pages, nil)
		r := newRig(t)
		p := &puppet{took: 30 * time.Millisecond, links: links}
		if delay == 0 { // the agent never comes with a second page: the crawl does not end
			p.enough = func(most int) bool { return most >= 2 }
		}
		r.config.Render, r.config.Delay, r.config.DelayGiven = p, delay, delay > 0
		if st := r.crawl(t, s.URL+"/").Status(); st.Rendered != 20 || st.Pages != 21 {
			t.Errorf("%d rendered of %d", st.Rendered, st.Pages)
		}
		if delay == 0 && (p.most < 2 || p.most > maxAway) || delay > 0 && p.most != 1 {
			t.Errorf("delay %v: %d pages of the host rendered at once", delay, p.most)
		}
	}
}

// Agents that wait for the browser do not keep others from fetching.
func TestRenderingApart(t *testing.T) {
	t.Parallel()
	slow := newSite(t, map[string]string{"/": link()}, nil)
	fast := newSite(t, map[string]string{"/": link("/x"), "/x": link("/y"), "/y": link()}, nil)
	r := newRig(t)
	r.config.Agents = 1
	hosts := map[string]time.Time{}
	var mu sync.Mutex
	r.config.OnPage = func(res *Result) {
		mu.Lock()
		defer mu.Unlock()
		hosts[res.Page.URL] = time.Now()
	}
	// The page is in the browser until the other host is done.
	p := &puppet{links: map[string][]string{"/": nil}, enough: func(int) bool {
		mu.Lock()
		defer mu.Unlock()
		return !hosts[fast.URL+"/y"].IsZero()
	}}
	r.config.Render = &only{p, slow.URL}
	r.crawl(t, slow.URL+"/", fast.URL+"/")
	if !hosts[fast.URL+"/y"].Before(hosts[slow.URL+"/"]) {
		t.Errorf("the host without scripts waited for the other's browser: %v", hosts)
	}
}

// only renders one site.
type only struct {
	*puppet
	site string
}

func (o *only) Wants(ctx context.Context, f *Fetched) Decision {
	if !strings.HasPrefix(f.URL.String(), o.site) {
		return Decision{}
	}
	return o.puppet.Wants(ctx, f)
}

// Without a browser pages are taken as they are and wait; the list survives a
// restart, and is worked off when there is a browser.
func TestWaitingList(t *testing.T) {
	t.Parallel()
	s := newSite(t, rendering, nil)
	r := newRig(t)
	p := &puppet{links: map[string][]string{"/a": {"/only"}, "/b": nil}, ready: ErrNoBrowser}
	r.config.Render = p
	st := r.crawl(t, s.URL+"/").Status()
	if st.Waiting != 2 || st.Rendered != 0 || s.count("/only") != 0 || s.count("/too") != 1 {
		t.Fatalf("%d wait, %d rendered", st.Waiting, st.Rendered)
	}
	if a := r.page(t, s.URL+"/a"); !a.Waits || a.State != store.OK {
		t.Errorf("%+v", a)
	}
	st = r.crawl(t, s.URL+"/").Status() // the browser is still missing: nothing waits twice
	if st.Waiting != 2 {
		t.Errorf("%d wait after a second crawl", st.Waiting)
	}
	if err := r.archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	r.open(t)
	p.set(nil)
	st = r.crawl(t, s.URL+"/").Status()
	if st.Waiting != 0 || st.Rendered != 2 || s.count("/only") != 1 || s.count("/under") != 1 {
		t.Errorf("%d wait, %d rendered, /only fetched %d times", st.Waiting, st.Rendered, s.count("/only"))
	}
	if a := r.page(t, s.URL+"/a"); a.Waits || !a.Rendered {
		t.Errorf("%+v", a)
	}
}

func TestGains(t *testing.T) {
	t.Parallel()
	key := func(s string) weburl.Key {
		u, err := weburl.Parse("http://h/" + s)
		if err != nil {
			t.Fatal(err)
		}
		return u.Key()
	}
	var g gains
	unknown := func() bool { return false }
	if !g.rendered(key("a"), unknown) || g.rendered(key("a"), unknown) {
		t.Error("found twice")
	}
	g.plain(key("b"))
	if g.rendered(key("b"), unknown) {
		t.Error("found without a browser a moment before")
	}
	g.committed([]weburl.Key{key("b")})
	if g.rendered(key("b"), func() bool { return true }) {
		t.Error("the store knows it")
	}
	g.rendered(key("c"), unknown)
	g.plain(key("c"))
	if g.count() != 1 {
		t.Errorf("%d, want a alone", g.count())
	}
}
