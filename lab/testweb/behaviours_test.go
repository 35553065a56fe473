package testweb

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/lab/testweb/behaviour"
	"golang.org/x/net/html/charset"
)

// misbehave serves 400 pages on 4 hosts with behaviours.
func misbehave(t *testing.T, yaml string, change ...func(*Config)) (*Server, *http.Client) {
	t.Helper()
	set, err := behaviour.Parse("", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Pages: 400, Sites: 4, Seed: 11, Behaviours: set, HTTP: "127.0.0.1:0"}
	for _, f := range change {
		f(&cfg)
	}
	s, c := start(t, cfg)
	c.Transport.(*http.Transport).DisableCompression = true
	return s, c
}

func TestRedirectChainsAndLoops(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "redirect: {pages: 0.5, chain: 4, loop: 0.3}")
	moved, loops := 0, 0
	longest := 0
	for p := range s.Pages() {
		u, hops := s.URL(p), 0
		for ; hops < 30; hops++ {
			resp, body := get(t, c, u)
			if resp.StatusCode == 200 {
				if !strings.Contains(fold(body), strings.ToLower(strings.Fields(s.Title(p))[1])) {
					t.Fatalf("%s leads to another page", s.URL(p))
				}
				break
			}
			next, err := resp.Location()
			if err != nil || resp.StatusCode/100 != 3 {
				t.Fatalf("%s: %s, %v", u, resp.Status, err)
			}
			u = next.String()
		}
		switch {
		case hops == 30:
			loops++
		case hops > 0:
			moved++
			longest = max(longest, hops)
		}
	}
	if moved < 90 || loops < 30 || longest != 4 {
		t.Errorf("%d pages moved by up to %d hops, %d loops", moved, longest, loops)
	}
	if resp, _ := get(t, c, "http://"+s.HostName(0)+"/hop/99/aaaa.html"); resp.StatusCode == 200 {
		t.Error("a page at a station that no chain has")
	}
}

func TestErrorsComeAndGo(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "errors: {pages: 0.3, window: 2s, statuses: [500, 503]}", func(cfg *Config) { cfg.TimeScale = 10 })
	failing := func() (n int) {
		for p := range uint64(100) {
			if resp, _ := get(t, c, s.URL(p)); resp.StatusCode >= 500 {
				n++
			}
		}
		return n
	}
	if n := failing(); n < 10 || n > 55 {
		t.Errorf("%d of 100 pages fail, want about 30", n)
	}
	u := s.URL(7)
	seen := map[bool]bool{}
	for range 100 {
		resp, _ := get(t, c, u)
		seen[resp.StatusCode == 200] = true
		if len(seen) == 2 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("a page never changed between error and answer")
}

func TestRetryAfterIsTrue(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "ratelimit: {hosts: 1, busy: 0.5, window: 30s}", func(cfg *Config) { cfg.TimeScale = 20 })
	busy := 0
	for host := range s.Hosts() {
		u := "http://" + s.HostName(host) + "/aaaa.html"
		resp, _ := get(t, c, u)
		if resp.StatusCode != 429 {
			continue
		}
		busy++
		if ra := resp.Header.Get("Retry-After"); ra != "1" && ra != "2" {
			t.Errorf("Retry-After %q in a window of 1.5 s of the clock", ra)
		}
		if resp, _ := get(t, c, "http://"+s.HostName(host)+"/robots.txt"); resp.StatusCode != 200 {
			t.Errorf("robots.txt of a busy host: %s", resp.Status)
		}
	}
	if busy == 0 {
		t.Error("no host is busy in a window in which half should be")
	}
}

func TestRobotsVariants(t *testing.T) {
	t.Parallel()
	for variant, check := range map[string]func(*http.Response, []byte) bool{
		"normal": func(r *http.Response, b []byte) bool {
			return r.StatusCode == 200 && bytes.HasPrefix(b, []byte("User-agent"))
		},
		"missing": func(r *http.Response, _ []byte) bool { return r.StatusCode == 404 },
		"5xx":     func(r *http.Response, _ []byte) bool { return r.StatusCode == 503 },
		"huge":    func(r *http.Response, b []byte) bool { return len(b) > 600<<10 },
		"bom":     func(r *http.Response, b []byte) bool { return bytes.HasPrefix(b, []byte("\ufeffUser-agent")) },
		"delay":   func(r *http.Response, b []byte) bool { return bytes.Contains(b, []byte("Crawl-delay: 2")) },
		"closed":  func(r *http.Response, b []byte) bool { return bytes.Contains(b, []byte("Disallow: /\n")) },
		"redirected": func(r *http.Response, b []byte) bool {
			return r.StatusCode == 302 && r.Header.Get("Location") == "/robots.txt/1"
		},
	} {
		s, c := misbehave(t, "robots: {variants: ["+variant+"]}")
		resp, body := get(t, c, "http://"+s.HostName(1)+"/robots.txt")
		if !check(resp, body) {
			t.Errorf("%s: %s %.80q", variant, resp.Status, body)
		}
		if variant == "redirected" {
			if resp, body := get(t, c, "http://"+s.HostName(1)+"/robots.txt/3"); resp.StatusCode != 200 || !bytes.Contains(body, []byte("/private/")) {
				t.Errorf("end of the chain: %s %q", resp.Status, body)
			}
		}
	}
}

func TestSpacesWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"calendar": "/calendar/2026/01.html", "depth": "/archive/y/"} {
		s, c := misbehave(t, name+": {hosts: 1, pages: 1}")
		_, body := get(t, c, s.URL(0))
		u := "http://" + s.HostName(0) + path
		if !contains(hrefs(t, s.URL(0), body), u) {
			t.Fatalf("%s: no link to %s", name, u)
		}
		seen := map[string]bool{}
		for range 50 {
			if seen[u] {
				t.Fatalf("%s: %s again", name, u)
			}
			seen[u] = true
			resp, body := get(t, c, u)
			if resp.StatusCode != 200 {
				t.Fatalf("%s: %s", u, resp.Status)
			}
			links := hrefs(t, u, body)
			u = links[min(1, len(links)-1)]
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "session: {hosts: 1}")
	own := func() string {
		_, body := get(t, c, s.URL(0))
		for _, u := range hrefs(t, s.URL(0), body) {
			if strings.HasPrefix(u, "http://"+s.HostName(0)) {
				return u
			}
		}
		t.Fatal("no link to the own host")
		return ""
	}
	a, b := own(), own()
	if a == b || !strings.Contains(a, "?sid=") {
		t.Errorf("two visits without a session got %s and %s", a, b)
	}
	_, body := get(t, c, a)
	sid := a[strings.Index(a, "?sid="):]
	for _, u := range hrefs(t, a, body) {
		if strings.HasPrefix(u, "http://"+s.HostName(0)) && !strings.HasSuffix(u, sid) {
			t.Errorf("the session %s is lost in %s", sid, u)
		}
	}
}

// The text of a page in any charset is what it was, if one believes what is right.
func TestCharsets(t *testing.T) {
	t.Parallel()
	honest, ch := misbehave(t, "")
	for variant, believe := range map[string]string{
		"legacy": "header", "header-only": "header", "meta-only": "meta", "meta-lies": "header", "header-lies": "meta",
	} {
		s, c := misbehave(t, "charset: {hosts: 1, variants: ["+variant+"]}")
		for p := uint64(0); p < s.Pages(); p += 40 {
			_, want := get(t, ch, honest.URL(p))
			resp, body := get(t, c, s.URL(p))
			label := resp.Header.Get("Content-Type")
			if believe == "meta" {
				label = "text/html" // and let the page say it
			}
			r, err := charset.NewReader(bytes.NewReader(body), label)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			title := func(b []byte) string { return fold(b[bytes.Index(b, []byte("1>"))+2:][:40]) }
			if title(got) != title(want) {
				t.Errorf("%s, page %d: %q, want %q", variant, p, title(got), title(want))
			}
		}
	}
}

func TestValidatorsLie(t *testing.T) {
	t.Parallel()
	fast := func(cfg *Config) { cfg.History, cfg.TimeScale = changing(t, 1, .1), 1000 }
	s, c := misbehave(t, "validators: {hosts: 1, variants: [constant-etag]}", fast)
	resp, before := get(t, c, s.URL(5))
	time.Sleep(30 * time.Millisecond)
	if _, after := get(t, c, s.URL(5)); bytes.Equal(before, after) {
		t.Fatal("the page does not change")
	}
	if resp, _ := get(t, c, s.URL(5), "If-None-Match", resp.Header.Get("ETag")); resp.StatusCode != 304 {
		t.Errorf("a constant tag gave %s", resp.Status)
	}
	for variant, absent := range map[string]string{"none": "ETag Last-Modified", "etag-only": "Last-Modified", "date-only": "ETag"} {
		s, c := misbehave(t, "validators: {hosts: 1, variants: ["+variant+"]}")
		resp, _ := get(t, c, s.URL(5))
		for _, h := range []string{"ETag", "Last-Modified"} {
			if (resp.Header.Get(h) == "") != strings.Contains(absent, h) {
				t.Errorf("%s: %s is %q", variant, h, resp.Header.Get(h))
			}
		}
	}
	s, c = misbehave(t, "validators: {hosts: 1, variants: [deaf]}")
	resp, _ = get(t, c, s.URL(5))
	if resp, _ := get(t, c, s.URL(5), "If-None-Match", resp.Header.Get("ETag")); resp.StatusCode != 200 {
		t.Errorf("a deaf host heard: %s", resp.Status)
	}
}

// Of a web that never changes an honest sitemap says so, and a lying one that
// all is new.
func TestSitemap(t *testing.T) {
	t.Parallel()
	for lying, age := range map[string]time.Duration{"0": 1100 * time.Millisecond, "1": 0} {
		s, c := misbehave(t, "sitemap: {hosts: 1, lying: "+lying+"}")
		host := "http://" + s.HostName(1)
		_, robots := get(t, c, host+"/robots.txt")
		if !strings.Contains(string(robots), "Sitemap: "+host+"/sitemap.xml") {
			t.Fatalf("robots.txt: %s", robots)
		}
		time.Sleep(1100 * time.Millisecond)
		began := time.Now().Truncate(time.Second)
		_, body := get(t, c, host+"/sitemap.xml")
		var m struct {
			URL []struct {
				Loc     string    `xml:"loc"`
				LastMod time.Time `xml:"lastmod"`
			} `xml:"url"`
		}
		if err := xml.Unmarshal(body, &m); err != nil {
			t.Fatal(err)
		}
		first, pages := s.Span(1)
		if len(m.URL) != int(pages) {
			t.Fatalf("%d addresses, want %d", len(m.URL), pages)
		}
		for i, u := range m.URL {
			if u.Loc != s.URL(first+uint64(i)) {
				t.Errorf("address %d is %s", i, u.Loc)
			}
			if old := u.LastMod.Before(began); old != (age > 0) {
				t.Errorf("lying %s: %s changed at %s, asked at %s", lying, u.Loc, u.LastMod, began)
			}
		}
	}
}

func TestSoft404AndDeadLinks(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "soft404: {hosts: 1}\ndeadlinks: {pages: 1, links: 2}")
	_, body := get(t, c, s.URL(0))
	dead := 0
	for _, u := range hrefs(t, s.URL(0), body) {
		if strings.Contains(u, "/old/") {
			dead++
			if resp, body := get(t, c, u); resp.StatusCode != 200 || !bytes.Contains(body, []byte("could not be found")) {
				t.Errorf("%s: %s", u, resp.Status)
			}
		}
	}
	if dead != 2 {
		t.Errorf("%d dead links, want 2", dead)
	}
}

// Mirrors and near-duplicates share as many sentences as they say.
func TestCopies(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]float64{"mirror: {hosts: 0.6, similarity: 1}": 1, "neardup: {pages: 0.5, similarity: 0.7}": .7} {
		set, err := behaviour.Parse("", []byte(yaml))
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewWeb(Config{Pages: 1000, Sites: 20, Seed: 4, Behaviours: set, Sentences: 60})
		if err != nil {
			t.Fatal(err)
		}
		same, all := 0, 0
		for p := range w.Pages() {
			host := w.layout.Host(p)
			v := w.answerVisit(host, w.HostName(host), origin{scheme: "http"}, w.URL(p)[len("http://")+len(w.HostName(host)):], "", 0)
			if v.r.CopyOf > 0 {
				base, _ := w.TextKey(uint64(v.r.CopyOf - 1))
				if v.r.Page.Base != base || v.r.Similarity != want {
					t.Fatalf("%s: page %d copies %d by %.2f", yaml, p, v.r.CopyOf-1, v.r.Similarity)
				}
				original := *v.r.Page
				original.Version = 0
				for i := range v.r.Page.Sentences {
					all++
					if v.r.Page.SentenceKey(i) == original.SentenceKey(i) {
						same++
					}
				}
			}
			w.releaseVisit(v)
		}
		if got := float64(same) / float64(all); all < 2000 || got < want-.05 || got > want+.05 {
			t.Errorf("%s: %.3f of %d sentences are the original's, want %.2f", yaml, got, all, want)
		}
	}
}

func TestResetsAndOutages(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "reset: {pages: 1, after: 300}")
	resp, err := c.Get(s.URL(0))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("a broken page came whole")
	}
	s, c = misbehave(t, "outage: {hosts: 1, down: 1}")
	if _, err := c.Get(s.URL(0)); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("a host that is down: %v", err)
	}
}

func TestSlowness(t *testing.T) {
	t.Parallel()
	timed := func(yaml string) time.Duration {
		s, c := misbehave(t, yaml)
		began := time.Now()
		get(t, c, s.URL(1))
		return time.Since(began)
	}
	if d := timed("latency: {median: 300ms, spread: 1.0001}"); d < 140*time.Millisecond {
		t.Errorf("latency of 300 ms: answer after %v", d)
	}
	if d := timed("bandwidth: {median: 8000, spread: 1.0001}"); d < 150*time.Millisecond {
		t.Errorf("8 kB/s: page after %v", d)
	}
}

func TestBomb(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "bomb: {hosts: 1, pages: 1, size: 50000000}")
	resp, body := get(t, c, "http://"+s.HostName(0)+"/archive/all.html")
	if resp.Header.Get("Content-Encoding") != "gzip" || len(body) > 1<<20 {
		t.Fatalf("%d bytes, coding %q", len(body), resp.Header.Get("Content-Encoding"))
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, z); err != nil || n < 50000000 {
		t.Errorf("unpacks to %d bytes, %v", n, err)
	}
}

func TestBadTLS(t *testing.T) {
	t.Parallel()
	for fault, is := range map[string]func(error) bool{
		"expired": func(err error) bool {
			var e x509.CertificateInvalidError
			return errors.As(err, &e) && e.Reason == x509.Expired
		},
		"wrong-name":  func(err error) bool { var e x509.HostnameError; return errors.As(err, &e) },
		"self-signed": func(err error) bool { var e x509.UnknownAuthorityError; return errors.As(err, &e) },
		"refused":     func(err error) bool { var op *net.OpError; return errors.As(err, &op) || errors.Is(err, io.EOF) },
	} {
		s, _ := misbehave(t, "tls: {hosts: 1, faults: ["+fault+"]}", func(cfg *Config) { cfg.HTTPS = "127.0.0.1:0" })
		_, err := trusting(t, s, "").Get("https://" + s.HostName(0) + "/aaaa.html")
		if err == nil || !is(err) {
			t.Errorf("%s: error %v", fault, err)
		}
	}
}

func TestScriptsAndHints(t *testing.T) {
	t.Parallel()
	s, c := misbehave(t, "jslinks: {hosts: 1, pages: 1}")
	if _, body := get(t, c, s.URL(0)); len(hrefs(t, s.URL(0), body)) > 0 || !bytes.Contains(body, []byte("createElement")) {
		t.Error("links stand in the page, or no script")
	}
	s, c = misbehave(t, "canonical: {hosts: 1, wrong: 0, parameters: 1}\nnofollow: {hosts: 1, pages: 1, links: 1, meta: 1}")
	_, body := get(t, c, s.URL(3))
	text := strings.NewReplacer("\n", "", " ", "", `"`, "", "'", "").Replace(strings.ToLower(string(body)))
	for _, want := range []string{"rel=canonicalhref=" + s.URL(3), "?ref=", "rel=nofollow", "noindex,nofollow"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

// The same requests at the same times of the web are answered alike: nothing of
// a behaviour hangs on who asked before.
func TestBehavioursArePure(t *testing.T) {
	t.Parallel()
	set, err := behaviour.Preset("wild")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Pages: 3000, Sites: 60, Seed: 9, Behaviours: set, History: changing(t, 1, 100)}
	a, err := NewWeb(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewWeb(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.Begin(*a.start.Load())
	ask := func(w *Web, p uint64, now float64) (behaviour.Reply, string) {
		host := w.layout.Host(p)
		v := w.answerVisit(host, w.HostName(host), origin{scheme: "http"}, w.URL(p)[len("http://")+len(w.HostName(host)):], "", now)
		defer w.releaseVisit(v)
		r, body := v.r, string(w.replyBody(v))
		r.Page, r.Body = nil, nil
		return r, body
	}
	for p := uint64(0); p < a.Pages(); p += 7 { // one web is asked forwards, the other backwards
		ra, ba := ask(a, p, float64(p))
		q := a.Pages() - 1 - p
		_, _ = ask(b, q, float64(q))
		rb, bb := ask(b, p, float64(p))
		if ba != bb || ra.Status != rb.Status || ra.Location != rb.Location || ra.Delay != rb.Delay || ra.Validator != rb.Validator || ra.Kind != rb.Kind {
			t.Fatalf("page %d: %+v and %+v", p, ra, rb)
		}
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	cfg := Demo()
	s, c := start(t, cfg)
	languages := map[string]bool{}
	scripted := 0
	for p := range s.Pages() {
		languages[s.Language(s.layout.Host(p)).Tag()] = true
		resp, body := get(t, c, s.URL(p))
		if resp.StatusCode >= 400 {
			t.Errorf("%s: %s", s.URL(p), resp.Status)
		}
		if bytes.Contains(body, []byte("createElement")) {
			scripted++
		}
	}
	if s.Hosts() < 20 || len(languages) != 3 || scripted < 5 {
		t.Errorf("%d hosts in %v, %d pages with links by script", s.Hosts(), languages, scripted)
	}
}
