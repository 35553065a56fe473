package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// dialer connects to the first address of a name that answers, those of IPv6 and
// IPv4 in turn with a head start of 250 ms each (RFC 8305). It checks the addresses that
// it connects to, not names: a name that is given another address between two
// requests (DNS rebinding) gains nothing.
type dialer struct {
	private bool
	names   *resolver
	net     net.Dialer
}

// headStart is how long an address is waited for alone.
const headStart = 250 * time.Millisecond

func newDialer(c Config) *dialer {
	return &dialer{private: c.AllowPrivate, names: newResolver(c.Resolver), net: net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}}
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.names.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	order := d.order(addrs)
	if len(order) == 0 {
		return nil, fmt.Errorf("%s is %v: %w", host, addrs[:min(len(addrs), mostAddrs)], errPrivate)
	}
	return d.race(ctx, network, port, order)
}

// mostAddrs is how many addresses of a name are dialled: a name with more is no
// licence to knock at all of them.
const mostAddrs = 8

// order returns the addresses that may be dialled as they are.
func (d *dialer) order(addrs []netip.Addr) []netip.Addr {
	var allowed []netip.Addr
	for _, a := range addrs {
		if d.private || Public(a) {
			allowed = append(allowed, a)
		}
	}
	out := alternate(allowed)
	return out[:min(len(out), mostAddrs)]
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

// Address returns the address of a host name that is dialled first, found in the
// cache or by asking, or "" where there is none: the name does not resolve, no
// address is allowed, or another dials.
func (c *Client) Address(ctx context.Context, host string) string {
	if c.config.Dial != nil || c.config.Proxy != "" {
		return ""
	}
	addrs, err := c.dialer.names.lookup(ctx, host)
	if err != nil {
		return ""
	}
	if order := c.dialer.order(addrs); len(order) > 0 {
		return order[0].String()
	}
	return ""
}

// alternate orders addresses so that the two families take turns, beginning with
// that of the first, which the resolver puts first if it can be reached (RFC 6724).
func alternate(addrs []netip.Addr) []netip.Addr {
	var first, other, out []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			other = append(other, a)
		}
	}
	for i := 0; i < len(first) || i < len(other); i++ {
		if i < len(first) {
			out = append(out, first[i])
		}
		if i < len(other) {
			out = append(out, other[i])
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
// benchmarking, reserved; and of IPv6 those in which an address of IPv4 is embedded
// that may be any (6to4, Teredo, NAT64, IPv4-compatible), and the old site-local ones.
// See IANA's special-purpose address registries.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"),
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
