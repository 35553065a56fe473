package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// site serves pages by path and remembers what was asked for.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
}

// pages are small documents, each with one habit of pages built by scripts.
var pages = map[string]string{
	"/fetch":   `<title>before</title><div id=root></div><script>fetch('/list').then(r=>r.json()).then(l=>{document.title='after';for(const u of l)root.innerHTML+='<a href="'+u+'">to '+u+'</a>'})</script>`,
	"/late":    `<div id=app></div><script>setTimeout(()=>{app.innerHTML='<a href=/from-timer>x</a>'},4500)</script>`,
	"/chain":   `<div id=app></div><script>let n=0;const step=()=>fetch('/slow?'+n).then(()=>{app.innerHTML+='<a href=/step'+n+'>x</a>';if(++n<3)setTimeout(step,500)});step()</script>`,
	"/tick":    `<div id=app></div><script>let n=0;setInterval(()=>{app.textContent='tick '+(++n)},10)</script>`,
	"/scroll":  `<div id=list style="height:3000px"></div><script>let n=0;addEventListener('scroll',()=>{if(n<4){n++;list.insertAdjacentHTML('beforeend','<a href=/more'+n+'>m</a>');list.style.height=(3000+n*2000)+'px'}})</script>`,
	"/observe": `<div id=list></div><div id=end style="margin-top:100px">end</div><script>let n=0;new IntersectionObserver(es=>{for(const e of es)if(e.isIntersecting&&n<5){n++;end.insertAdjacentHTML('beforebegin','<p style="height:4000px"><a href=/seen'+n+'>m</a></p>')}}).observe(end)</script>`,
	"/hash":    `<div id=app></div><script>const show=()=>{const h=location.hash;app.innerHTML=h==='#/b'?'<a href=/of-b>b</a> text of b':h==='#/a'?'<a href="#/b">b</a><a href=/of-a>a</a>':'<a href="#/a">a</a>'};addEventListener('hashchange',show);show()</script>`,
	"/push":    `<script>history.pushState({},'','/pushed?x=1');document.write('<p>moved</p>')</script>`,
	"/away":    `<p>stay</p><script>location.href='/elsewhere'</script>`,
	"/open":    `<script>window.open('/window');alert('hello');confirm('?')</script><p>shown</p>`,
	"/shadow":  `<x-y></x-y><script>customElements.define('x-y',class extends HTMLElement{connectedCallback(){this.attachShadow({mode:'open'}).innerHTML='<a href=/in-shadow>x</a>'}})</script>`,
	"/media":   `<img src=/i.png><video src=/v.mp4></video><iframe src=/frame></iframe><style>@font-face{font-family:f;src:url(/f.woff)}p{font-family:f}</style><p>text</p><link rel=stylesheet href=/s.css>`,
	"/broken":  `<p><a href=/plain>plain</a></p><script>nothing.here()</script><script>document.body.innerHTML+='<a href=/second>x</a>'</script>`,
	"/forever": `<p><a href=/plain>plain</a></p><script>setTimeout(()=>{for(;;);},50)</script>`,
	"/hangs":   `<p><a href=/plain>plain</a></p><script>fetch('/never').then(()=>0)</script>`,
	"/big":     `<p id=p>0</p><script>(async()=>{for(let i=0;i<40;i++){try{await(await fetch('/mega?'+i)).text();p.textContent=i}catch(e){}}})()</script>`,
	"/cookie":  `<p id=p></p><script>p.textContent='['+document.cookie+localStorage.getItem('k')+']';document.cookie='c=1';localStorage.setItem('k','v')</script>`,
	"/agent":   `<p id=p></p><script>fetch('/echo').then(r=>r.text()).then(t=>{p.textContent=t})</script>`,
	"/robots":  `<p id=p></p><script>for(const u of ['/list','/forbidden'])fetch(u).then(r=>r.text()).then(()=>{p.textContent+=u+' '}).catch(()=>{p.textContent+='no '+u})</script>`,
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.URL.Path]++
		s.mu.Unlock()
		switch r.URL.Path {
		case "/list":
			fmt.Fprint(w, `["/a","/b?c=d"]`)
		case "/slow":
			time.Sleep(100 * time.Millisecond)
		case "/never":
			<-r.Context().Done()
		case "/mega":
			_, _ = w.Write(make([]byte, 1<<20))
		case "/echo":
			fmt.Fprint(w, r.UserAgent())
		case "/private":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html>"+pages[r.URL.Path])
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// page is what the robot would hand over after a fetch.
func (s *site) page(t testing.TB, path string) *Page {
	t.Helper()
	return &Page{URL: parse(t, s.URL+path), Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: []byte("<!doctype html>" + pages[path])}
}

func parse(t testing.TB, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// newPool makes a pool, or skips the test where no Chromium is installed.
func newPool(t *testing.T, c Config) *Pool {
	t.Helper()
	if _, err := Find(c.Path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if c.Client == nil {
		client, err := fetch.New(fetch.Config{AllowPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		c.Client = client
	}
	c.NoSandbox = os.Geteuid() == 0
	// A busy machine is no hanging page: tests of those set their own limits.
	c.Timeout, c.Stall, c.Answer = cmp.Or(c.Timeout, 5*time.Minute), cmp.Or(c.Stall, 2*time.Minute), cmp.Or(c.Answer, 2*time.Minute)
	p := NewPool(c)
	t.Cleanup(p.Close)
	return p
}

func TestRender(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := "freshet/test (+http://contact/)"
	patient := newPool(t, Config{Tabs: 4, MaxBytes: 5 << 20, UserAgent: agent})
	hasty := newPool(t, Config{Tabs: 2, Stall: 3 * time.Second, Answer: 2 * time.Second, UserAgent: agent}) // for pages that hang
	tests := []struct {
		path  string
		links []string // that must be found
		text  string   // that the document must hold
		check func(*Document) error
	}{
		{"/fetch", []string{"/a", "/b?c=d"}, "<title>after</title>", nil},
		{"/late", []string{"/from-timer"}, "", fast},
		{"/chain", []string{"/step0", "/step1", "/step2"}, "", nil},
		{"/tick", nil, "tick ", func(d *Document) error { // 5 s and one more after scrolling, by its own clock
			var n int
			_, text, _ := strings.Cut(string(d.HTML), "tick ")
			if _, err := fmt.Sscan(text, &n); err == nil && (n < 590 || n > 610) {
				return fmt.Errorf("%d ticks", n)
			}
			return nil
		}},
		{"/scroll", []string{"/more1", "/more2", "/more3", "/more4"}, "", nil},
		{"/observe", []string{"/seen1", "/seen3", "/seen5"}, "", nil},
		{"/hash", []string{"/of-a", "/of-b"}, "text of b", nil},
		{"/push", []string{"/pushed?x=1"}, "moved", nil},
		{"/away", []string{"/elsewhere"}, "stay", func(*Document) error { return s.unasked("/elsewhere") }},
		{"/open", []string{"/window"}, "shown", nil},
		{"/shadow", []string{"/in-shadow"}, "", nil},
		{"/media", nil, "text", func(d *Document) error {
			if d.Blocked < 3 {
				return fmt.Errorf("%d blocked", d.Blocked)
			}
			return s.unasked("/i.png", "/v.mp4", "/frame", "/f.woff")
		}},
		{"/broken", []string{"/plain", "/second"}, "", nil},
		{"/forever", []string{"/plain"}, "", cut(CutHang)},
		{"/hangs", []string{"/plain"}, "", cut(CutStall)},
		{"/big", nil, "", func(d *Document) error {
			if d.Bytes > 7<<20 || d.Cut != CutBytes {
				return fmt.Errorf("%d bytes, cut %q", d.Bytes, d.Cut)
			}
			return nil
		}},
		{"/cookie", nil, "[null]", nil},
		{"/cookie", nil, "[null]", nil},
		{"/cookie", nil, "[null]", nil},
		{"/agent", nil, "freshet/test", func(d *Document) error {
			if strings.Contains(string(d.HTML), "Headless") {
				return fmt.Errorf("%s", d.HTML)
			}
			return nil
		}},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(tt.path[1:], i), func(t *testing.T) {
			t.Parallel()
			p := patient
			if tt.path == "/forever" || tt.path == "/hangs" {
				p = hasty
			}
			d, err := p.Render(t.Context(), s.page(t, tt.path))
			if err != nil {
				t.Fatal(err)
			}
			for try := 0; try < 8 && tt.path == "/late" && fast(d) != nil; try++ { // the best counts, on a busy machine
				if d, err = p.Render(t.Context(), s.page(t, tt.path)); err != nil {
					t.Fatal(err)
				}
			}
			checkDocument(t, d, s.URL, tt.links, tt.text)
			if tt.check != nil {
				if err := tt.check(d); err != nil {
					t.Error(err)
				}
			}
			if s.count(tt.path)+s.count("/favicon.ico") > 0 {
				t.Error("the page was asked for again, or an icon")
			}
		})
	}
}

// checkDocument checks that a document has links to paths of a site, and a text.
func checkDocument(t *testing.T, d *Document, site string, wantLinks []string, wantText string) {
	t.Helper()
	for _, l := range wantLinks {
		if !slices.Contains(d.Links, site+l) {
			t.Errorf("links: got %q, want %s among them", d.Links, l)
		}
	}
	if !strings.Contains(string(d.HTML), wantText) {
		t.Errorf("document: got %s, want %q in it", d.HTML, wantText)
	}
}

// fast: the page's clock ran ahead of ours.
func fast(d *Document) error {
	if d.Took > 4*time.Second {
		return fmt.Errorf("took %v", d.Took)
	}
	return nil
}

func cut(why string) func(*Document) error {
	return func(d *Document) error {
		if d.Cut != why {
			return fmt.Errorf("cut %q, want %q", d.Cut, why)
		}
		return nil
	}
}

func (s *site) unasked(paths ...string) error {
	for _, p := range paths {
		if s.count(p) > 0 {
			return fmt.Errorf("%s was asked for", p)
		}
	}
	return nil
}

// The robot's rules are asked about each request of the page.
func TestRenderAsks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newPool(t, Config{Tabs: 1})
	page := s.page(t, "/robots")
	page.Allowed = func(_ context.Context, u weburl.URL) bool { return !strings.HasPrefix(u.Target(), "/forbidden") }
	d, err := p.Render(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	if s.count("/robots") != 0 || s.count("/list") != 1 || s.count("/forbidden") != 0 || d.Blocked < 1 {
		t.Errorf("asked %v, blocked %d", s.asked, d.Blocked)
	}
	if h := string(d.HTML); !strings.Contains(h, "/list ") || !strings.Contains(h, "no /forbidden") {
		t.Errorf("%s", h)
	}
}

// Private addresses are refused to the browser as they are to the robot,
// whatever leads to them.
func TestPrivate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, Config{Client: client, Tabs: 1})
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	script := `<p id=p></p><script>
const note=(n)=>(r)=>{p.textContent+=n+':'+(r.status||'failed')+' '};
for(const [n,u] of [['ip','` + s.URL + `/list'],['name','http://localhost` + port + `/list'],['six','http://[::1]` + port + `/'],['tls','https://127.0.0.1` + port + `/']])fetch(u,{mode:'cors'}).then(note(n),note(n));
try{const w=new WebSocket('ws://127.0.0.1` + port + `/list');w.onerror=note('ws');w.onopen=()=>{p.textContent+='OPEN'}}catch(e){p.textContent+='ws:'+e}
</script><script src="` + s.URL + `/script"></script>`
	d, err := p.Render(t.Context(), &Page{URL: parse(t, "http://public.example/"), Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte(script)})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) > 0 {
		t.Errorf("the server was asked: %v", s.asked)
	}
	if n := p.Stats().Private; n < 4 {
		t.Errorf("%d connections refused: %s", n, d.HTML)
	}
	if said, _, _ := strings.Cut(string(d.HTML), "</p>"); strings.Contains(said, "OPEN") || strings.Contains(said, ":200") {
		t.Errorf("%s", said)
	}
}

// A browser that dies or hangs is replaced, and the page comes all the same.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newPool(t, Config{Tabs: 2, Answer: 6 * time.Second})
			if _, err := p.Render(t.Context(), s.page(t, "/fetch")); err != nil {
				t.Fatal(err)
			}
			p.mu.Lock()
			pid, dir := p.current.pid, p.current.dir
			p.mu.Unlock()
			if pid == 0 {
				t.Fatal("the browser has no process group")
			}
			if err := syscall.Kill(-pid, sig); err != nil {
				t.Fatal(err)
			}
			d, err := p.Render(t.Context(), s.page(t, "/fetch"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(d.HTML), "to /a") {
				t.Errorf("%s", d.HTML)
			}
			if st := p.Stats(); st.Killed != 1 || st.Retried != 1 || st.Browsers != 2 {
				t.Errorf("%+v", st)
			}
			p.Close()
			if err := gone(pid); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s remains", dir)
			}
		})
	}
}

// gone waits until no process of a group is left.
func gone(pgid int) error {
	for range 1200 {
		if err := syscall.Kill(-pgid, 0); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("processes of the group %d remain", pgid)
}

// A page that takes all the memory it can get ends alone.
func TestMemory(t *testing.T) {
	t.Parallel()
	if os.Getenv("FRESHET_LONG") == "" {
		t.Skip("takes 600 MB; FRESHET_LONG=1 runs it")
	}
	s := newSite(t)
	p := newPool(t, Config{Tabs: 2})
	greedy := s.page(t, "/fetch")
	greedy.Body = []byte(`<script>const a=[];for(;;)a.push(new Array(100000).fill({}))</script>`)
	if d, err := p.Render(t.Context(), greedy); !errors.Is(err, errTab) {
		t.Errorf("%v, %+v", err, d)
	}
	if d, err := p.Render(t.Context(), s.page(t, "/fetch")); err != nil || !strings.Contains(string(d.HTML), "to /a") {
		t.Errorf("the next page: %v", err)
	}
	if st := p.Stats(); st.Killed != 0 || st.Browsers != 1 {
		t.Errorf("%+v", st)
	}
}

// Browsers are replaced after so many pages, while others render.
func TestRecycle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newPool(t, Config{Tabs: 3, MaxPages: 4})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if d, err := p.Render(t.Context(), s.page(t, "/fetch")); err != nil || !strings.Contains(string(d.HTML), "to /a") {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if st := p.Stats(); st.Browsers < 2 || st.Browsers > 4 || st.Rendered != 10 || st.Failed+st.Retried+st.Killed > 0 {
		t.Errorf("%+v", st)
	}
	if st := p.Stats(); st.CPU < 100*time.Millisecond || p.current != nil && st.Memory < 50<<20 {
		t.Errorf("browsers with %d bytes, %v", st.Memory, st.CPU)
	}
}

// The next browser is started when the one before has ended, not beside it.
func TestOneBrowser(t *testing.T) {
	t.Parallel()
	p := newPool(t, Config{Tabs: 2, MaxPages: 1})
	held, release := make(chan int, 1), make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	var overlaps atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		switch r.URL.Path {
		case "/held.js":
			held <- p.currentPID()
			<-release
		case "/next.js": // by another browser
			select {
			case <-release:
			default:
				overlaps.Store(true)
				free()
			}
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(free)
	render := func(name string) {
		page := &Page{URL: parse(t, s.URL+"/"), Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<script src=/" + name + ".js></script>")}
		if _, err := p.Render(t.Context(), page); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { render("held") })
	first := <-held
	render("quick") // its browser has served long enough now
	wg.Go(func() { render("next") })
	time.AfterFunc(3*time.Second, free) // longer than a browser takes to start
	wg.Wait()
	if overlaps.Load() {
		t.Error("a second browser was started beside the first")
	}
	if p.currentPID() == first || p.Stats().Browsers != 2 {
		t.Errorf("%d browsers, want 2", p.Stats().Browsers)
	}
}

func (p *Pool) currentPID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return 0
	}
	return p.current.pid
}

// What a killed process left behind is removed, what a living one uses is not.
func TestSweep(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	dead, alive := filepath.Join(dir, fmt.Sprint(profile, cmd.Process.Pid, "-1")), filepath.Join(dir, fmt.Sprint(profile, os.Getpid(), "-1"))
	for _, d := range []string{dead, alive, filepath.Join(dir, profile+"other")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeStaleProfiles(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// Without Chromium the error says so, at once; with no tabs, too.
func TestNone(t *testing.T) {
	t.Parallel()
	client, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	for _, c := range []Config{{Path: "/nonexistent/chromium", NoSandbox: true}, {Path: "/bin/false", NoSandbox: true}, {Remote: "ws://127.0.0.1:1/"}, {Tabs: -1}} {
		c.Client = client
		p := NewPool(c)
		if _, err := p.Render(t.Context(), s.page(t, "/fetch")); !errors.Is(err, ErrNoBrowser) {
			t.Errorf("%+v: %v", c, err)
		}
		if err := p.Available(); !errors.Is(err, ErrNoBrowser) {
			t.Errorf("%+v: available: %v", c, err)
		}
		p.Close()
		if _, err := p.Render(t.Context(), s.page(t, "/fetch")); !errors.Is(err, ErrNoBrowser) {
			t.Errorf("closed pool: %v", err)
		}
	}
}

// The number of tabs changes while pages wait.
func TestSetTabs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newPool(t, Config{Tabs: 1})
	p.SetTabs(2)
	done := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := p.Render(t.Context(), s.page(t, "/hash"))
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if busy, waiting, limit := p.Tabs(); busy != 0 || waiting != 0 || limit != 2 {
		t.Errorf("%d busy, %d waiting, %d tabs", busy, waiting, limit)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	p.SetTabs(0)
	if _, err := p.Render(ctx, s.page(t, "/hash")); !errors.Is(err, ErrNoBrowser) {
		t.Errorf("%v", err)
	}
}
