package fetch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
)

// fixedProxy returns a function that sends every request through one proxy.
func fixedProxy(t *testing.T, address string) ProxyFunc {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return func(*url.URL) (*url.URL, error) { return u, nil }
}

// Proxies are chosen by scheme; loopback hosts and those of Bypass are asked directly.
func TestProxies(t *testing.T) {
	t.Parallel()
	p := Proxies{HTTP: "http://plain.example:1", HTTPS: "tls.example:2", Bypass: "intranet.example,10.0.0.0/8"}
	of, err := p.Func()
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"http://a.example/": "http://plain.example:1", "https://a.example/": "http://tls.example:2", "http://www.intranet.example/": "", "https://10.1.2.3/": "", "http://127.0.0.1:8080/": "",
		"http://localhost/": "", "https://[::1]/": "",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		got, err := of(u)
		if err != nil {
			t.Fatal(err)
		}
		if text := ""; got != nil && got.String() != want || got == nil && want != text {
			t.Errorf("%s: proxy %v, want %q", address, got, want)
		}
	}
	for _, bad := range []string{"nonsense", "ftp://h:1", "http://", "://"} {
		if _, err := (Proxies{HTTP: bad}).Func(); err == nil {
			t.Errorf("proxy %q was taken", bad)
		}
	}
	if of, err := (Proxies{Bypass: "a.example"}).Func(); of != nil || err != nil {
		t.Errorf("no proxies: function %v, error %v, want none", of != nil, err)
	}
}

// That a proxy is at a private address permits no request to that address: one that is
// not sent through it needs its own permission.
func TestProxyAddressNeedsPermission(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	of, err := Proxies{HTTP: proxy.URL, HTTPS: proxy.URL}.Func()
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Proxy: of})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(context.Background(), Request{URL: parse(t, proxy.URL+"/")}); err == nil || asked.Load() > 0 {
		t.Errorf("the proxy's own address: error %v, asked %d times, want refused", err, asked.Load())
	}
	if _, err := c.Get(context.Background(), Request{URL: parse(t, "http://site.example/")}); err != nil || asked.Load() != 1 {
		t.Errorf("through the proxy: error %v, asked %d times, want once", err, asked.Load())
	}
}

// An identity is sent to its origin alone.
func TestIdentities(t *testing.T) {
	t.Parallel()
	type seen struct{ agent, cookie string }
	got := make(chan seen, 1)
	site := func() *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got <- seen{r.UserAgent(), r.Header.Get("Cookie")}
		}))
		t.Cleanup(s.Close)
		return s
	}
	own, other := site(), site()
	c, err := New(Config{UserAgent: "robot", AllowPrivate: true, Identities: func(origin string) *Identity {
		if origin != own.URL {
			return nil
		}
		return &Identity{UserAgent: "guest", Header: http.Header{"Cookie": {"a=b"}}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for address, want := range map[string]seen{own.URL: {"guest", "a=b"}, other.URL: {"robot", ""}} {
		for _, head := range []bool{false, true} {
			if _, err := c.Get(context.Background(), Request{URL: parse(t, address+"/"), Head: head}); err != nil {
				t.Fatal(err)
			}
			if got := <-got; got != want {
				t.Errorf("%s, HEAD %v: sent %+v, want %+v", address, head, got, want)
			}
		}
	}
}
