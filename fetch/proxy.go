package fetch

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// ProxyFunc returns the forward proxy for a URL, nil for none.
type ProxyFunc func(*url.URL) (*url.URL, error)

// Proxies name forward proxies as the environment variables HTTP_PROXY, HTTPS_PROXY and
// NO_PROXY do.
type Proxies struct {
	HTTP, HTTPS string // for http:// and https:// URLs; "" is none
	// Bypass lists hosts that are asked directly, separated by commas: names (with their
	// subdomains), addresses, networks, "*". Loopback hosts always are.
	Bypass string
}

// Func returns the function of the proxies, nil if there are none.
func (p Proxies) Func() (ProxyFunc, error) {
	for _, address := range []string{p.HTTP, p.HTTPS} {
		if address != "" && !isProxyAddress(address) {
			return nil, fmt.Errorf("proxy %q is no URL such as http://127.0.0.1:3128", address)
		}
	}
	if p.HTTP == "" && p.HTTPS == "" {
		return nil, nil
	}
	c := httpproxy.Config{HTTPProxy: p.HTTP, HTTPSProxy: p.HTTPS, NoProxy: p.Bypass}
	return c.ProxyFunc(), nil
}

// isProxyAddress reports whether a text is the URL of a proxy, or its host and port.
func isProxyAddress(text string) bool {
	if !strings.Contains(text, "://") {
		if _, _, err := net.SplitHostPort(text); err != nil {
			return false
		}
		text = "http://" + text
	}
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
}

// ProxyOf returns the forward proxy for a URL, nil for none. The addresses that a name
// has are the proxy's business then: CheckTarget is all that can be checked here.
func (c *Client) ProxyOf(u *url.URL) (*url.URL, error) {
	if c.config.Proxy == nil {
		return nil, nil
	}
	return c.config.Proxy(u)
}

// isProxied reports whether requests to a host go through a proxy.
func (c *Client) isProxied(host string) bool {
	return slices.ContainsFunc([]string{"http", "https"}, func(scheme string) bool {
		p, err := c.ProxyOf(&url.URL{Scheme: scheme, Host: host})
		return p != nil || err != nil
	})
}

// proxyTransport returns the transport of requests that go through a proxy. It dials
// proxies only, which may be at private addresses: the operator has named them.
func (c *Client) proxyTransport() *http.Transport {
	t := c.transport(false)
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.Proxy = func(r *http.Request) (*url.URL, error) { return c.ProxyOf(r.URL) }
	return t
}
