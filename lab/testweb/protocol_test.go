package testweb

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/andybalholm/brotli"
)

// trusting returns a client that trusts the web's authority.
func trusting(t *testing.T, s *Server, proxy string) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CertificateAuthority()) {
		t.Fatal("no certificate in the authority's PEM")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	if proxy != "" {
		tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})
	} else {
		tr.DialContext = s.DialContext
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestHTTPSAndHTTP2(t *testing.T) {
	t.Parallel()
	s, plain := start(t, Config{Pages: 200, Sites: 4, HTTP: "127.0.0.1:0", HTTPS: "127.0.0.1:0"})
	c := trusting(t, s, "")
	for host := range s.Hosts() {
		first, _ := s.Span(host)
		u := "https" + s.URL(first)[len("http"):]
		resp, secure := get(t, c, u)
		if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
			t.Fatalf("%s: %s by %s", u, resp.Status, resp.Proto)
		}
		_, body := get(t, plain, s.URL(first))
		if got, want := len(hrefs(t, u, secure)), len(hrefs(t, s.URL(first), body)); got != want {
			t.Errorf("%s: %d links, %d over plain HTTP", u, got, want)
		}
	}
	if n := len(s.ca.cache); n != int(s.Hosts()) {
		t.Errorf("%d certificates kept for %d hosts", n, s.Hosts())
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	s, _ := start(t, Config{Pages: 200, Sites: 4, Proxy: "127.0.0.1:0"})
	c := trusting(t, s, s.ProxyAddr())
	for _, u := range []string{s.URL(150), "https" + s.URL(150)[len("http"):]} {
		resp, body := get(t, c, u)
		if resp.StatusCode != 200 || len(hrefs(t, u, body)) == 0 {
			t.Errorf("%s: %s, %d bytes", u, resp.Status, len(body))
		}
	}
	if resp, _ := get(t, c, "http://example.com/"); resp.StatusCode != 404 {
		t.Errorf("foreign host: %s", resp.Status)
	}
	if _, err := c.Get("https://example.com/"); err == nil {
		t.Error("a tunnel to a foreign host")
	}
}

func TestContentCodings(t *testing.T) {
	t.Parallel()
	s, c := start(t, Config{Pages: 50, Sites: 1})
	c.Transport.(*http.Transport).DisableCompression = true
	_, want := get(t, c, s.URL(3))
	tests := []struct{ accept, coding string }{
		{"gzip", "gzip"},
		{"gzip, deflate, br", "br"},
		{"br;q=0, gzip;q=0.5", "gzip"},
		{"identity", ""},
		{"gzip;q=0.0", ""},
	}
	for _, tt := range tests {
		resp, body := get(t, c, s.URL(3), "Accept-Encoding", tt.accept)
		if got := resp.Header.Get("Content-Encoding"); got != tt.coding {
			t.Errorf("%s: coding %q, want %q", tt.accept, got, tt.coding)
			continue
		}
		var r io.Reader = bytes.NewReader(body)
		switch tt.coding {
		case "gzip":
			z, err := gzip.NewReader(r)
			if err != nil {
				t.Fatal(err)
			}
			r = z
		case "br":
			r = brotli.NewReader(r)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want the %d of the page", tt.accept, len(got), err, len(want))
		}
		if tt.coding != "" && len(body) >= len(want) {
			t.Errorf("%s: %d bytes instead of %d", tt.accept, len(body), len(want))
		}
		resp304, _ := get(t, c, s.URL(3), "Accept-Encoding", tt.accept, "If-None-Match", resp.Header.Get("ETag"))
		if resp304.StatusCode != 304 {
			t.Errorf("%s: its own tag %s: %s", tt.accept, resp.Header.Get("ETag"), resp304.Status)
		}
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	s, c := start(t, Config{Pages: 50, Sites: 1})
	c.Transport.(*http.Transport).DisableCompression = true
	_, all := get(t, c, s.URL(3))
	n := len(all)
	tests := []struct {
		field  string
		status int
		want   []byte
	}{
		{"bytes=0-9", 206, all[:10]},
		{"bytes=100-", 206, all[100:]},
		{"bytes=-7", 206, all[n-7:]},
		{"bytes=-999999", 206, all},
		{"bytes=5-999999", 206, all[5:]},
		{"bytes=999999-", 416, nil},
		{"bytes=9-5", 200, all},
		{"bytes=0-1,5-6", 200, all},
		{"lines=1-2", 200, all},
		{"bytes=x-", 200, all},
		{"bytes=-", 200, all},
	}
	for _, tt := range tests {
		resp, body := get(t, c, s.URL(3), "Range", tt.field)
		if resp.StatusCode != tt.status || !bytes.Equal(body, tt.want) {
			t.Errorf("%s: %s, %d bytes, want %d with %d", tt.field, resp.Status, len(body), tt.status, len(tt.want))
		}
	}
	if resp, _ := get(t, c, s.URL(3), "Range", "bytes=0-9", "If-Range", `"other"`); resp.StatusCode != 200 {
		t.Errorf("stale If-Range: %s", resp.Status)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	s, c := start(t, Config{Pages: 50, Sites: 1})
	_, body := get(t, c, s.URL(3), "Accept-Encoding", "identity")
	req, err := http.NewRequest(http.MethodHead, s.URL(3), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ContentLength != int64(len(body)) {
		t.Errorf("HEAD: %s, length %d, want %d", resp.Status, resp.ContentLength, len(body))
	}
}

// A whole path without helpers: the standard resolver asks the web's DNS, and the
// addresses are the hosts' own.
func TestDNSTellsAddresses(t *testing.T) {
	t.Parallel()
	s, _ := start(t, Config{Pages: 100, Sites: 3, DNS: "127.0.0.1:0"})
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, s.DNSAddr())
	}}
	got, err := r.LookupNetIP(t.Context(), "ip4", s.HostName(2))
	if err != nil || len(got) != 1 || got[0].Unmap().String() != "1.0.0.2" {
		t.Errorf("%v, %v", got, err)
	}
}

// A web of 2^42 pages costs no more than a small one.
func TestHugeWeb(t *testing.T) {
	t.Parallel()
	s, c := start(t, Config{Pages: 1 << 42, Seed: 5})
	for _, p := range []uint64{0, 1 << 20, 1<<42 - 1, 0x2abcdef0123} {
		_, body := get(t, c, s.URL(p))
		var want []string
		for _, v := range s.Successors(p, nil) {
			want = append(want, s.URL(v))
		}
		if got := hrefs(t, s.URL(p), body); len(got) == 0 || len(got) != len(want) || got[0] != want[0] {
			t.Errorf("page %d links to %v, want %v", p, got, want)
		}
	}
}
