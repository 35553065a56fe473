package render

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/weburl"
)

// counter is a server that notes what it is asked for.
type counter struct {
	*httptest.Server
	mu      sync.Mutex
	asked   map[string]int // by method and path
	total   int
	sockets int // handshakes of WebSockets
}

// newCounter returns a server that answers all that browsers might ask for as they
// like it best: with any origin allowed, scripts for workers, endless streams.
func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{asked: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.asked[r.Method+" "+r.URL.Path]++
		c.total++
		if r.Header.Get("Upgrade") != "" {
			c.sockets++
		}
		c.mu.Unlock()
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Allow-Methods", "*")
		h.Set("Access-Control-Allow-Headers", "*")
		h.Set("Cache-Control", "no-store")
		h.Set("Service-Worker-Allowed", "/")
		switch {
		case r.URL.Path == "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		case strings.HasSuffix(r.URL.Path, ".js"):
			h.Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, workerScript, r.URL.Query().Get("to"))
		case strings.HasSuffix(r.URL.Path, ".json"):
			h.Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"a":1}`)
		default:
			h.Set("Content-Type", "text/html")
			fmt.Fprint(w, "<p>a page</p>")
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// workerScript floods a server, from whatever it runs in.
const workerScript = `const to=%q;const flood=()=>{try{fetch(to+'/private/worker',{method:'POST',mode:'no-cors',body:'x'}).catch(()=>0)}catch(e){}
try{new WebSocket(to.replace('http','ws')+'/private/socket')}catch(e){}};
self.onconnect=flood;self.oninstall=flood;setInterval(flood,20);flood()`

func (c *counter) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// hostilePages are pages that want to do what a robot's visitor does not. THIRD
// stands for the address of another server, OWN for that of the page's own.
var hostilePages = map[string]string{
	"shared worker":      `<script>new SharedWorker('/w.js?to=THIRD')</script>`,
	"shared worker blob": `<script>new SharedWorker(URL.createObjectURL(new Blob([FLOOD],{type:'text/javascript'})))</script>`,
	"service worker":     `<script>navigator.serviceWorker.register('/w.js?to=THIRD').then(r=>r.active&&r.active.postMessage(1))</script>`,
	"worker":             `<script>for(let i=0;i<5;i++)new Worker('/w.js?n='+i+'&to=THIRD')</script>`,
	"worker module":      `<script>new Worker('/w.js?to=THIRD',{type:'module'})</script>`,
	"worker blob":        `<script>new Worker(URL.createObjectURL(new Blob([FLOOD],{type:'text/javascript'})))</script>`,
	"worker data":        `<script>new Worker('data:text/javascript,'+encodeURIComponent(FLOOD))</script>`,
	"frame with worker":  `<iframe srcdoc="<script>new Worker(URL.createObjectURL(new Blob([parent.FLOOD])));new parent.SharedWorker('/w.js?to=THIRD')</script>"></iframe>`,
	"frame of its own": `<script>for(const k of ['srcdoc','blob','blank']){const f=document.createElement('iframe');if(k==='srcdoc')f.srcdoc='<script>'+FLOOD+'<'+'/script>';
		if(k==='blob')f.src=URL.createObjectURL(new Blob(['<script>'+FLOOD+'<'+'/script>'],{type:'text/html'}));document.body.appendChild(f);
		if(k==='blank'){f.contentWindow.WebSocket&&new f.contentWindow.WebSocket('WSTHIRD/private/frame');f.contentWindow.SharedWorker&&new f.contentWindow.SharedWorker('/w.js?to=THIRD')}}</script>`,
	"sandboxed frame":  `<iframe sandbox="allow-scripts" srcdoc="<script>setInterval(()=>{fetch('THIRD/private/sandbox',{method:'POST',mode:'no-cors'})},20)</script>"></iframe>`,
	"socket":           `<script>try{for(let i=0;i<40;i++)new WebSocket('WSTHIRD/private/s'+i)}catch(e){};try{new WebSocket('WSOWN/private/s')}catch(e){}</script>`,
	"event source":     `<script>try{new EventSource('THIRD/private/events')}catch(e){}</script>`,
	"beacons":          `<script>for(let i=0;i<200;i++)navigator.sendBeacon('THIRD/private/beacon','x'.repeat(100));addEventListener('pagehide',()=>{navigator.sendBeacon('THIRD/private/late','x');fetch('THIRD/private/late',{method:'POST',keepalive:true,mode:'no-cors'})})</script>`,
	"posts":            `<script>for(let i=0;i<100;i++)fetch('THIRD/private/post',{method:'POST',mode:'no-cors',body:'x'});for(const m of ['PUT','DELETE','PATCH'])fetch('/private/'+m,{method:m})</script>`,
	"flood":            `<script>setInterval(()=>fetch('THIRD/f?'+Math.random()),10)</script>`,
	"flood of its own": `<script>setInterval(()=>fetch('/f?'+Math.random()),10)</script>`,
	"flood of scripts": `<script>setInterval(()=>{const s=document.createElement('script');s.src='THIRD/s.js?'+Math.random();document.head.append(s)},5)</script>`,
	"flood of styles":  `<script>setInterval(()=>{const s=document.createElement('link');s.rel='stylesheet';s.href='THIRD/s.css?'+Math.random();document.head.append(s)},5)</script>`,
	"images":           `<img src="THIRD/private/i.png"><script>for(let i=0;i<50;i++)new Image().src='THIRD/private/i'+i;document.body.style.background='url(THIRD/private/bg)'</script><video src="THIRD/private/v"></video><object data="THIRD/private/o"></object><embed src="THIRD/private/e">`,
	"prefetch":         `<link rel=prefetch href="THIRD/private/prefetch"><link rel=prerender href="THIRD/private/prerender"><link rel=preconnect href="THIRD/"><link rel=dns-prefetch href="THIRD/"><link rel=preload as=image href="THIRD/private/preload">`,
	"speculation": `<script type="speculationrules">{"prerender":[{"source":"list","urls":["/private/pre"],"eagerness":"immediate"}],"prefetch":[{"source":"list","urls":["/private/fetch","THIRD/private/fetch"],"eagerness":"immediate"}]}</script>
		<script>const s=document.createElement('script');s.type='speculationrules';s.text='{"prerender":[{"urls":["/private/pre2"],"eagerness":"immediate"}]}';document.head.append(s)</script>`,
	"import map":            `<script type="importmap">{"imports":{"a":"/private/module.js"}}</script><script type="module">import('a').catch(()=>0)</script>`,
	"windows":               `<form id=f target=_blank method=post action="THIRD/private/form"></form><a id=l target=_blank href="THIRD/private/window">x</a><script>for(let i=0;i<20;i++)window.open('THIRD/private/open'+i);delete window.open;Window.prototype.open&&Window.prototype.open.call(window,'THIRD/private/proto');l.click();f.submit();const e=document.createElement('iframe');document.body.append(e);e.contentWindow.open('THIRD/private/frameopen')</script>`,
	"downloads":             `<script>for(let i=0;i<20;i++){const a=document.createElement('a');a.href='/private/d'+i;a.download='x';document.body.append(a);a.click()}</script>`,
	"dialogs":               `<script>let n=0;while(n++<20){alert(n);confirm(n);prompt(n)}onbeforeunload=e=>{e.preventDefault();return 'stay'}</script>`,
	"endless script":        `<script>setTimeout(()=>{for(;;);},20)</script>`,
	"very endless promises": `<script>const f=()=>Promise.resolve().then(f);setTimeout(f,20)</script>`,
	"document.write":        `<script>for(let i=0;i<5000;i++)document.write('<p><a href=/w'+i+'>x</a></p>')</script>`,
	"history":               `<script>for(let i=0;i<1000;i++){try{history.pushState({},'','/h?'+i)}catch(e){break}}</script>`,
	"moves":                 `<script>setInterval(()=>{location.href='/move?'+Math.random()},10)</script>`,
	"stringify":             `<script>const big='x'.repeat(300e6);JSON.stringify=()=>big;String.prototype.slice=function(){return big};Array.prototype.slice=()=>[big];Set.prototype.add=function(){return this};Object.defineProperty(Document.prototype,'documentElement',{get(){return {outerHTML:big}}});Object.defineProperty(Element.prototype,'outerHTML',{get(){return big}})</script>`,
	"clobbered":             `<img name=documentElement><img name=body><form name=scrollingElement></form><img name=querySelectorAll><img name=getElementsByTagName><a href=/clobbered>x</a><script>1</script>`,
	"huge document":         `<script>let h='';for(let i=0;i<20000;i++)h+='<a href=/'+'x'.repeat(200)+i+'>x</a>';document.body.insertAdjacentHTML('beforeend',h)</script>`,
	"deep document":         `<script>let e=document.body;for(let i=0;i<500;i++){const d=document.createElement('div');e.appendChild(d);e=d}e.innerHTML='<a href=/deep>x</a>'</script>`,
	"shadow trees":          `<script>let r=document.body;for(let i=0;i<200;i++){const d=document.createElement('div');r.appendChild(d);r=d.attachShadow({mode:'open'});r.innerHTML='<a href=/s'+i+'>x</a>'}</script>`,
	"endless answer":        `<script>fetch('THIRD/endless').then(r=>r.text())</script>`,
	"forged links":          `<script>for(let i=0;i<100000;i++)document.dispatchEvent(new HashChangeEvent('freshet-link',{newURL:'http://forged.test/'+i}))</script>`,
	// Pages that the browser itself does not get done with.
	"very deep document": `<script>let e=document.body;for(let i=0;i<20000;i++){const d=document.createElement('div');e.appendChild(d);e=d}</script>`,
	"very long history":  `<script>for(let i=0;i<100000;i++){try{history.pushState({},'','/h?'+i)}catch(e){break}}</script>`,
	"webrtc":             `<script>const f=document.createElement('iframe');document.body.append(f);const R=f.contentWindow.RTCPeerConnection;if(R){const p=new R({iceServers:[{urls:'stun:127.0.0.1:1'}]});p.createDataChannel('x');p.createOffer().then(o=>p.setLocalDescription(o))}</script>`,
	"worklets":           `<script>try{CSS.paintWorklet.addModule('/w.js?to=THIRD');new OfflineAudioContext(1,1,44100).audioWorklet.addModule('/w.js?to=THIRD')}catch(e){}</script>`,
	"later":              `<script>try{fetchLater('THIRD/private/later',{activateAfter:1})}catch(e){};addEventListener('unload',()=>{const x=new XMLHttpRequest;x.open('GET','THIRD/private/unload',false);try{x.send()}catch(e){}})</script>`,
}

// Pages do no more in the browser than the robot would, whatever they try; and when
// they are done they do nothing. The limits are those of one page: 30 requests to
// another host, 60 to its own, reading only, nothing that robots.txt forbids.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	const own, foreign = 60, 30
	p := newPool(t, Config{Tabs: 3, Stall: 5 * time.Second, Answer: 10 * time.Second, Timeout: time.Minute, MaxBytes: 4 << 20, Requests: own, ForeignRequests: foreign})
	type server struct {
		page, who string
		*counter
		after int
	}
	var mu sync.Mutex
	var servers []server
	outer := t // the servers count until all pages are done
	t.Run("pages", func(t *testing.T) {
		for name, body := range hostilePages {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				site, third := newCounter(outer), newCounter(outer)
				mu.Lock()
				servers = append(servers, server{name, "own", site, 0}, server{name, "third", third, 0})
				mu.Unlock()
				if strings.HasPrefix(name, "very ") && os.Getenv("FRESHET_LONG") == "" {
					t.Skip("locks a tab for its time limit; FRESHET_LONG=1 runs it")
				}
				doc, err := p.Render(t.Context(), hostilePage(t, body, site, third))
				if errors.Is(err, errTab) && strings.HasPrefix(name, "very ") {
					return // the tab is given up, and the robot takes the page as it was fetched
				}
				if err != nil {
					t.Fatal(err)
				}
				checkHostile(t, doc, site, third, own, foreign)
			})
		}
	})
	for i := range servers {
		servers[i].after = servers[i].requests()
	}
	wait := 2 * time.Second
	if os.Getenv("FRESHET_LONG") != "" {
		wait = 12 * time.Second
	}
	time.Sleep(wait)
	for _, s := range servers {
		if n := s.requests() - s.after; n > 0 {
			t.Errorf("%s: %d requests to its %s server after all pages were done", s.page, n, s.who)
		}
	}
	d, err := p.Render(t.Context(), &Page{URL: parse(t, "http://fine.test/"), Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<p id=p></p><script>p.textContent='still works'</script>")})
	if err != nil || !strings.Contains(string(d.HTML), "still works") {
		t.Errorf("the page after them: %v, %+v", err, d)
	}
}

func hostilePage(t *testing.T, body string, own, third *counter) *Page {
	t.Helper()
	socket := func(c *counter) string { return "ws" + strings.TrimPrefix(c.URL, "http") }
	flood := fmt.Sprintf("%q", fmt.Sprintf(strings.ReplaceAll(workerScript, "\n", ""), third.URL))
	head := `<!doctype html><body><p><a href="/plain">plain</a></p><script>window.FLOOD=` + flood + `</script>`
	body = strings.NewReplacer("WSTHIRD", socket(third), "WSOWN", socket(own), "THIRD", third.URL, "OWN", own.URL).Replace(body)
	return &Page{
		URL: parse(t, own.URL+"/page"), Body: []byte(head + body),
		Header:  http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Link": {"<" + third.URL + "/private/header>; rel=preload; as=script"}, "Speculation-Rules": {`"` + third.URL + `/private/rules"`}},
		Allowed: func(_ context.Context, u weburl.URL) bool { return !strings.HasPrefix(u.Target(), "/private/") },
	}
}

func checkHostile(t *testing.T, doc *Document, site, third *counter, own, foreign int) {
	t.Helper()
	for who, c := range map[string]*counter{"own": site, "third": third} {
		limit := map[string]int{"own": own, "third": foreign}[who]
		c.mu.Lock()
		if c.total > limit {
			t.Errorf("%s server: %d requests, want at most %d", who, c.total, limit)
		}
		if c.sockets > 0 {
			t.Errorf("%s server: %d WebSockets", who, c.sockets)
		}
		for what, n := range c.asked {
			method, path, _ := strings.Cut(what, " ")
			if strings.HasPrefix(path, "/private/") {
				t.Errorf("%s server: %s %d times, which robots.txt forbids", who, what, n)
			}
			if method != "GET" {
				t.Errorf("%s server: %s %d times", who, what, n)
			}
		}
		c.mu.Unlock()
	}
	if doc.Requests > own || doc.Bytes > 5<<20 || len(doc.HTML) > 8<<20*3 {
		t.Errorf("%d requests, %d bytes, document of %d", doc.Requests, doc.Bytes, len(doc.HTML))
	}
	forged := 0
	for _, l := range doc.Links {
		if strings.Contains(l, "/forged") || strings.Contains(l, "forged.test") || strings.Contains(l, "/h?") || strings.Contains(l, "/move?") {
			forged++
		}
	}
	if forged > 400 {
		t.Errorf("%d links that a script made up, want at most 400", forged)
	}
	if !strings.Contains(string(doc.HTML), "/plain") && doc.Cut == "" {
		t.Errorf("the page lacks what it had: %.300s", doc.HTML)
	}
}
