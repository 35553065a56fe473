package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// dialer resolves names with a cache and connects to the first address that
// answers, IPv6 and IPv4 in turn with a head start of 250 ms each (RFC 8305).
type dialer struct {
	private  bool
	resolver *net.Resolver
	net      net.Dialer

	mu    sync.Mutex
	cache map[string]answer
}

type answer struct {
	addrs []netip.Addr
	err   error
	until time.Time
}

// How long names are remembered. The system's resolver tells no TTL; five
// minutes is what browsers assume at most.
const (
	nameTTL      = 5 * time.Minute
	noNameTTL    = time.Minute
	cachedNames  = 100_000
	headStart    = 250 * time.Millisecond
	resolveLimit = 10 * time.Second
)

func newDialer(c Config) *dialer {
	d := &dialer{private: c.AllowPrivate, resolver: net.DefaultResolver, cache: map[string]answer{}, net: net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}}
	if c.Resolver != "" {
		d.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, c.Resolver)
		}}
	}
	return d
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var allowed []netip.Addr
	for _, a := range addrs {
		if d.private || Public(a) {
			allowed = append(allowed, a)
		}
	}
	if len(allowed) == 0 {
		return nil, fmt.Errorf("%s is %v: %w", host, addrs, errPrivate)
	}
	return d.race(ctx, network, port, alternate(allowed))
}

// lookup returns the addresses of a host from the cache or the resolver.
func (d *dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	now := time.Now()
	d.mu.Lock()
	a, ok := d.cache[host]
	d.mu.Unlock()
	if ok && now.Before(a.until) {
		return a.addrs, a.err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	a = answer{until: now.Add(nameTTL)}
	a.addrs, a.err = d.resolver.LookupNetIP(ctx, "ip", host)
	for i := range a.addrs {
		a.addrs[i] = a.addrs[i].Unmap()
	}
	if a.err != nil {
		if ctx.Err() != nil {
			return nil, a.err // says nothing about the name
		}
		a.until = now.Add(noNameTTL)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.cache) >= cachedNames {
		clear(d.cache)
	}
	d.cache[host] = a
	return a.addrs, a.err
}

// Dial connects as the client does for its own requests, with the check of
// addresses, for a proxy through which another program's requests go. private
// tells a refusal from a failure.
func (c *Client) Dial(ctx context.Context, network, address string) (conn net.Conn, private bool, err error) {
	dial := c.dialer.dial
	if c.config.Dial != nil {
		dial = c.config.Dial
	}
	conn, err = dial(ctx, network, address)
	return conn, errors.Is(err, errPrivate), err
}

// Address returns the first address of a host name, from the cache or by asking,
// or "" where it is not known: the name does not resolve, or another dials.
func (c *Client) Address(ctx context.Context, host string) string {
	if c.config.Dial != nil || c.config.Proxy != "" {
		return ""
	}
	addrs, err := c.dialer.lookup(ctx, host)
	if err != nil || len(addrs) == 0 {
		return ""
	}
	return addrs[0].String()
}

// alternate orders addresses IPv6, IPv4, IPv6 ...
func alternate(addrs []netip.Addr) []netip.Addr {
	var six, four, out []netip.Addr
	for _, a := range addrs {
		if a.Is4() {
			four = append(four, a)
		} else {
			six = append(six, a)
		}
	}
	for i := 0; i < len(six) || i < len(four); i++ {
		if i < len(six) {
			out = append(out, six[i])
		}
		if i < len(four) {
			out = append(out, four[i])
		}
	}
	return out
}

// race dials the addresses one after the other, not waiting longer than
// headStart for each, and returns the first connection.
func (d *dialer) race(ctx context.Context, network, port string, addrs []netip.Addr) (net.Conn, error) {
	if len(addrs) == 1 {
		return d.net.DialContext(ctx, network, net.JoinHostPort(addrs[0].String(), port))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(addrs))
	started, failed := 0, 0
	var first error
	start := func() {
		a := addrs[started]
		started++
		go func() {
			c, err := d.net.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
			results <- result{c, err}
		}()
	}
	start()
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	for {
		select {
		case r := <-results:
			if r.err == nil {
				go func(rest int) { // close the connections that lose the race
					for range rest {
						if r := <-results; r.conn != nil {
							r.conn.Close()
						}
					}
				}(started - failed - 1)
				return r.conn, nil
			}
			failed++
			if first == nil {
				first = r.err
			}
			if failed == len(addrs) {
				return nil, first
			}
			if started < len(addrs) {
				start()
			}
		case <-timer.C:
			if started < len(addrs) {
				start()
				timer.Reset(headStart)
			}
		}
	}
}

// notPublic are networks that are neither loopback, private nor link-local by
// name but not on the internet either: carrier-grade NAT, documentation,
// benchmarking, 6to4 relays, NAT64 with embedded addresses, reserved.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("100::/64"),
}

// Public reports whether an address can belong to a server on the internet.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
