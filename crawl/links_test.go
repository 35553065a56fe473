package crawl

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/store"
)

// Which links of a site are followed, and which pages may be shown: every kind of link
// leads to /ok..., what may not or should not be followed to /no....
func TestLinksThatAreFollowed(t *testing.T) {
	t.Parallel()
	header := func(body string, fields ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for i := 0; i < len(fields); i += 2 {
				w.Header().Add(fields[i], fields[i+1])
			}
			_, _ = w.Write([]byte(body))
		}
	}
	s := newSite(t, map[string]string{
		"/": `<link rel=canonical href=/ok-canonical><link rel=alternate hreflang=lt href=/ok-lt><link rel="alternate stylesheet" href=/no.css><link rel=next href=/ok-next>
			<a href=/refresh>1</a><a href=/base>2</a><a href=/no-rel rel="noopener nofollow">3</a><a href=/meta>4</a><a href=/none>5</a><a href=/tag>6</a><a href=/other>7</a><a href=/until>8</a><a href=/link>9</a>
			<area href=/ok-area><iframe src=/ok-iframe></iframe><frame src=/ok-frame><img src=/no.png srcset="/no,b.png 1x, data:image/png;base64,AA 2x">
			<a href="javascript:x()">a</a><a href="/%7Eok">b</a><a href="/~ok">c</a><a href="/a b?ą">d</a><a href="/private/no">e</a><a href="/priv%61te/no">f</a><a href="/private/ok">g</a><a href="/header">h</a>`,
		"/refresh": `<meta http-equiv=Refresh content="5; URL='/ok-refresh'">`,
		"/base":    `<base href="data:,x"><base href=/no/><a href=ok-base>x</a>`,
		"/meta":    `<meta name=robots content="max-snippet:5, nofollow"><a href=/no-meta>x</a>`,
		"/none":    `<meta name=FRESHET content=none><a href=/no-none>x</a>`,
	}, map[string]http.HandlerFunc{
		"/robots.txt": header("user-agent: *\nallow: /private/ok\ndisallow: /private/\n"),
		"/tag":        header("<a href=/no-tag>x</a>", "X-Robots-Tag", "otherbot: noarchive, freshet: noindex, nofollow"),
		"/other":      header("<a href=/ok-other>x</a>", "X-Robots-Tag", "otherbot: noindex, nofollow", "X-Robots-Tag", "unavailable_after: 2100-01-01"),
		"/until":      header("x", "X-Robots-Tag", "unavailable_after: 25 Jun 2010 15:00:00 PST"),
		"/link":       header("x", "Link", `</ok-link,1>; rel="next"; title="a, <b>; rel=next", </no>; rel=preload`),
		"/header":     header("x", "Refresh", "0;/ok-header"),
	})
	r := newRig(t)
	r.config.Token = "freshet"
	r.crawl(t, s.URL+"/")
	for _, path := range []string{"/ok-canonical", "/ok-lt", "/ok-next", "/ok-area", "/ok-iframe", "/ok-frame", "/ok-refresh", "/ok-base", "/ok-other", "/ok-link,1", "/ok-header", "/~ok", "/a%20b?%C4%85", "/private/ok"} {
		if got := s.count(path); got != 1 {
			t.Errorf("%s was fetched %d times", path, got)
		}
	}
	s.mu.Lock()
	for _, path := range s.log {
		if strings.HasPrefix(path, "/no-") || strings.HasPrefix(path, "/no.") || strings.HasPrefix(path, "/no/") || path == "/no" || strings.HasSuffix(path, "/no") || strings.HasSuffix(path, ".png") {
			t.Errorf("%s was fetched", path)
		}
	}
	s.mu.Unlock()
	for path, hidden := range map[string]bool{"/": false, "/meta": false, "/none": true, "/tag": true, "/other": false, "/until": true} {
		if p := r.page(t, s.URL+path); p.NoIndex != hidden || p.State != store.OK {
			t.Errorf("%s: noindex %v, state %v", path, p.NoIndex, p.State)
		}
	}
}

// Images are fetched if they are asked for by name.
func TestImagesOfPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": `<img src=/a.png srcset="/b,1.png 1x, /c.png 2x"><picture><source srcset=/d.png></picture>`}, nil)
	r := newRig(t)
	r.config.Types = []string{"html", "image"}
	r.crawl(t, s.URL+"/")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range []string{"/a.png", "/b,1.png", "/c.png", "/d.png"} {
		if !slices.Contains(s.log, path) {
			t.Errorf("%s was not fetched: %q", path, s.log)
		}
	}
}
