package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/freshet/freshet/weburl"
)

func parse(t *testing.T, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// zoo is a server with the manners of the web.
func zoo(t *testing.T) *httptest.Server {
	t.Helper()
	pack := func(w io.WriteCloser, s string) { _, _ = io.WriteString(w, s); _ = w.Close() }
	mux := http.NewServeMux()
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		fmt.Fprint(w, "hello "+r.UserAgent())
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		pack(gzip.NewWriter(w), "packed")
	})
	mux.HandleFunc("/br", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		pack(brotli.NewWriter(w), "packed")
	})
	mux.HandleFunc("/zstd", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "zstd")
		z, _ := zstd.NewWriter(w)
		pack(z, "packed")
	})
	mux.HandleFunc("/lying", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, "not packed")
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		var b bytes.Buffer
		pack(gzip.NewWriter(&b), strings.Repeat("0", 8<<20))
		_, _ = w.Write(b.Bytes())
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/plain?x", http.StatusMovedPermanently)
	})
	mux.HandleFunc("/late", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "cut")
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
	})
	mux.HandleFunc("/reset", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

func TestGet(t *testing.T) {
	t.Parallel()
	srv := zoo(t)
	c, err := New(Config{UserAgent: "freshet-test", AllowPrivate: true, Timeout: 5 * time.Minute, MaxBody: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	hasty, err := New(Config{AllowPrivate: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path   string
		req    Request
		status int
		body   string
		kind   Kind
	}{
		{"/plain", Request{}, 200, "hello freshet-test", ""},
		{"/plain", Request{ETag: `"v1"`}, 304, "", ""},
		{"/gzip", Request{}, 200, "packed", ""},
		{"/br", Request{}, 200, "packed", ""},
		{"/zstd", Request{}, 200, "packed", ""},
		{"/none", Request{}, 404, "404 page not found\n", ""},
		{"/lying", Request{}, 0, "", Encoding},
		{"/bomb", Request{}, 0, "", Bomb},
		{"/late", Request{}, 0, "", Timeout},
		{"/short", Request{}, 0, "", Reset},
		{"/header", Request{}, 0, "", Header},
		{"/reset", Request{}, 0, "", Reset},
	}
	for _, tt := range tests {
		t.Run(tt.path[1:]+tt.req.ETag, func(t *testing.T) {
			t.Parallel()
			tt.req.URL = parse(t, srv.URL+tt.path)
			by := c
			if tt.kind == Timeout {
				by = hasty
			}
			res, err := by.Get(context.Background(), tt.req)
			if tt.kind != "" {
				var fe *Error
				if !errors.As(err, &fe) || fe.Kind != tt.kind {
					t.Fatalf("error %v, want kind %s", err, tt.kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != tt.status || string(res.Body) != tt.body {
				t.Errorf("status %d, body %q", res.Status, res.Body)
			}
		})
	}
	res, err := c.Get(context.Background(), Request{URL: parse(t, srv.URL+"/moved")})
	if err != nil {
		t.Fatal(err)
	}
	if to, ok := res.Location(parse(t, srv.URL+"/moved")); !ok || to.Target() != "/plain?x" {
		t.Errorf("redirect to %s, %v", to, ok)
	}
	long, err := c.Get(context.Background(), Request{URL: parse(t, srv.URL+"/endless")})
	if err != nil || !long.Truncated || len(long.Body) != 1<<20 {
		t.Errorf("endless body: %v", err)
	}
}

// Without permission nothing that is not public is dialled, by address or name.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	srv := zoo(t)
	c, err := New(Config{Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	for _, u := range []string{srv.URL + "/plain", "http://localhost:" + port + "/", "http://[::ffff:127.0.0.1]:" + port + "/"} {
		_, err := c.Get(context.Background(), Request{URL: parse(t, u)})
		var fe *Error
		if !errors.As(err, &fe) || fe.Kind != Private {
			t.Errorf("%s: %v", u, err)
		}
	}
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "10.1.2.3": false, "172.20.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"192.88.99.1": false, "2400:cb00::1": true, "2001:200::1": true, "2003::1": true, "2001:db8::1": false, "3fff::1": false, "5f00::1": false,
		"fec0::1": false, "64:ff9b:1::7f00:1": false, "2001:0:a00:1::1": false, "2001:2::1": false, "::127.0.0.1": false, "::8.8.8.8": false, "2002:7f00:1::": false,
		"0.0.0.0": false, "224.0.0.1": false, "::1": false, "fe80::1": false, "fc00::1": false, "::ffff:10.0.0.1": false, "64:ff9b::7f00:1": false,
	} {
		if got := Public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Public(%s) = %v", addr, got)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	t.Parallel()
	const closed = "127.0.0.1:1"
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	c, err := New(Config{AllowPrivate: true, Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for u, kind := range map[string]Kind{"http://" + closed + "/": Refused, secure.URL + "/": TLS} {
		_, err := c.Get(context.Background(), Request{URL: parse(t, u)})
		var fe *Error
		if !errors.As(err, &fe) || fe.Kind != kind {
			t.Errorf("%s: %v, want %s", u, err, kind)
		}
	}
}
