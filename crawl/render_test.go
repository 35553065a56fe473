package crawl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/crawl/politeness"
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
	slots   int

	relearned []string
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
	politeness.Pause(ctx, p.took)
	p.mu.Lock()
	for p.enough != nil && !p.enough(p.most) && ctx.Err() == nil {
		p.mu.Unlock()
		politeness.Pause(ctx, time.Millisecond)
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

func (p *puppet) Relearn(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relearned = append(p.relearned, host)
}

func (p *puppet) Slots() int { return max(1, p.slots) }

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
	if p.learned["/fails"] != -1 || p.learned["/a"]+p.learned["/b"] < 1 {
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

// So many pages as there are slots are in the browser at once; of a host with a delay
// one at a time.
func TestRenderingSlots(t *testing.T) {
	t.Parallel()
	const slots = 4
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
		p := &puppet{took: time.Millisecond, links: links, slots: slots}
		if delay == 0 { // the crawl does not end before there are so many
			p.enough = func(most int) bool { return most >= slots }
		}
		r.config.Render, r.config.Delay, r.config.DelayGiven = p, delay, delay > 0
		if st := r.crawl(t, s.URL+"/").Status(); st.Rendered != 20 || st.Pages != 21 {
			t.Errorf("delay %v: %d rendered of %d, want 20 of 21", delay, st.Rendered, st.Pages)
		}
		if want := map[bool]int{true: 1, false: slots}[delay > 0]; p.most != want {
			t.Errorf("delay %v: %d pages of the host rendered at once, want %d", delay, p.most, want)
		}
	}
}

// Pages that wait for the browser hold up no others: of their own host, and of others.
// Until they are rendered they are stored as they were fetched.
func TestRenderingHoldsUpNothing(t *testing.T) {
	t.Parallel()
	pages, links := map[string]string{"/last": link()}, map[string][]string{}
	for i := range 200 {
		next := fmt.Sprint("/p", i+1)
		if i == 199 {
			next = "/last"
		}
		pages[fmt.Sprint("/p", i)] = link(next)
		links[fmt.Sprint("/p", i)] = nil
	}
	s := newSite(t, pages, nil)
	other := newSite(t, map[string]string{"/": link("/x"), "/x": link("/y"), "/y": link()}, nil)
	r := newRig(t)
	r.config.Agents = 2
	var asFetched *store.Page
	p := &puppet{links: links}
	p.enough = func(int) bool { // the first page is in the browser until all others are fetched and committed
		if s.count("/last") == 0 || other.count("/y") == 0 {
			return false
		}
		u, err := weburl.Parse(s.URL + "/p150")
		if err != nil {
			return false
		}
		page, err := r.store.Page(context.Background(), u)
		if err != nil || page.State != store.OK {
			return false
		}
		if asFetched == nil {
			asFetched = page
		}
		return true
	}
	r.config.Render = &only{p, s.URL}
	if st := r.crawl(t, s.URL+"/p0", other.URL+"/").Status(); st.Rendered != 200 || st.Waiting != 0 {
		t.Errorf("%d rendered, %d wait, want 200 and none", st.Rendered, st.Waiting)
	}
	if !asFetched.Waits || asFetched.Rendered || asFetched.Body.IsZero() {
		t.Errorf("while it waited: %+v, want it stored as it was fetched", asFetched)
	}
	for i := range 200 {
		if n := s.count(fmt.Sprint("/p", i)); n != 1 {
			t.Errorf("/p%d fetched %d times, want once", i, n)
		}
	}
	if a := r.page(t, s.URL+"/p150"); a.Waits || !a.Rendered || a.Title != "rendered" {
		t.Errorf("afterwards: %+v", a)
	}
}

// Hosts have their turns: one with many pages does not keep others from the browser.
func TestRenderingShares(t *testing.T) {
	t.Parallel()
	q := renderQueue{hosts: map[string]*renderHost{}, pages: map[weburl.Key]*renderPage{}, rows: map[uint64]int{}, wake: make(chan struct{}, 1)}
	add := func(host string, n int) {
		for i := range n {
			u, err := weburl.Parse(fmt.Sprintf("http://%s/%d", host, i))
			if err != nil {
				t.Fatal(err)
			}
			q.insert(&renderPage{url: u}, 0)
		}
	}
	add("large.test", 1000)
	add("small.test", 2)
	add("other.test", 2)
	var got []string
	for range 7 {
		p := q.take(time.Now())
		got = append(got, strings.TrimSuffix(p.url.Host(), ".test"))
	}
	if want := []string{"large", "small", "other", "large", "small", "other", "large"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A process that ends while pages wait leaves a list that the next works off. Where
// bodies cannot be read back, pages are visited again. No row of the list remains.
func TestRenderQueueRestart(t *testing.T) {
	t.Parallel()
	for _, readsBack := range []bool{true, false} {
		s := newSite(t, rendering, nil)
		r := newRig(t)
		p := &puppet{links: map[string][]string{"/a": {"/only"}, "/b": nil}, ready: ErrNoBrowser}
		r.config.Render = p
		r.crawl(t, s.URL+"/")
		if err := r.archive.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.store.Close(); err != nil {
			t.Fatal(err)
		}
		r.open(t)
		p.set(nil)
		if readsBack {
			r.config.ReadBody = func(at archive.Position) (*archive.Exchange, error) {
				return archive.Read(filepath.Join(r.dir, "warc"), at)
			}
		}
		st := r.crawl(t, s.URL+"/").Status()
		if st.Waiting != 0 || st.Rendered != 2 || s.count("/only") != 1 {
			t.Errorf("bodies read back %v: %d wait, %d rendered, /only fetched %d times; want none, 2, once", readsBack, st.Waiting, st.Rendered, s.count("/only"))
		}
		if want := map[bool]int{true: 1, false: 2}[readsBack]; s.count("/a") != want {
			t.Errorf("bodies read back %v: /a fetched %d times, want %d", readsBack, s.count("/a"), want)
		}
		for n := range rowsReserved {
			if v, err := r.store.Get(t.Context(), fmt.Sprint("render-wait//", n)); err != nil || v != nil {
				t.Errorf("row %d remains: %q, %v", n, v, err)
			}
		}
	}
}

// A page that was rendered keeps what the browser showed while it waits for the next
// render.
func TestRenderAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, rendering, nil)
	r := newRig(t)
	p := &puppet{links: map[string][]string{"/a": nil}}
	r.config.Render = p
	r.crawl(t, s.URL+"/a")
	first := r.page(t, s.URL+"/a")
	u, err := weburl.Parse(s.URL + "/a")
	if err != nil {
		t.Fatal(err)
	}
	again := func() {
		if _, err := r.store.Add(t.Context(), []store.Found{{URL: u, Due: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		r.crawl(t, s.URL+"/a")
	}
	p.set(ErrNoBrowser)
	again()
	if a := r.page(t, s.URL+"/a"); !a.Rendered || !a.Waits || a.Title != "rendered" || a.Digest != first.Digest || a.Body != first.Body {
		t.Errorf("without a browser: %+v, want it as it was rendered, waiting", a)
	}
	p.set(nil)
	again()
	if a := r.page(t, s.URL+"/a"); !a.Rendered || a.Waits || a.Title != "rendered" || a.Slot.Due.IsZero() || a.History.Visits == 0 {
		t.Errorf("with one: %+v", a)
	}
}

// The limit of pages ends fetching; those that were fetched are rendered.
func TestRenderingMaxPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, rendering, nil)
	r := newRig(t)
	r.config.Render, r.config.MaxPages = &puppet{links: map[string][]string{"/a": nil, "/b": nil, "/": nil}}, 3
	if st := r.crawl(t, s.URL+"/").Status(); st.Pages != 3 || st.Rendered < 2 || st.Waiting != 0 {
		t.Errorf("%d pages, %d rendered, %d wait; want 3, 2 or 3, none", st.Pages, st.Rendered, st.Waiting)
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

// hidingPuppet is a Renderer that shows pages whose scripts add noindex.
type hidingPuppet struct{ *puppet }

func (h hidingPuppet) Render(ctx context.Context, f *Fetched) (*Rendered, error) {
	r, err := h.puppet.Render(ctx, f)
	if r != nil {
		r.Page.Robots.NoIndex = true
	}
	return r, err
}

// The index hears of a page whose scripts add noindex, though its text is the same.
func TestScriptsHidePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": link()}, nil)
	r := newRig(t)
	r.config.Render = hidingPuppet{&puppet{links: map[string][]string{"/": nil}}}
	r.crawl(t, s.URL+"/")
	changes, err := r.store.Changes(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if p := r.page(t, s.URL+"/"); len(changes) != 2 || !p.NoIndex || !p.Rendered {
		t.Errorf("the feed names %v, the page is hidden: %v, rendered: %v; want it twice, hidden and rendered", changes, p.NoIndex, p.Rendered)
	}
}
