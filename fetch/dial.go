package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// dialer connects to the first address of a name that answers, IPv6 and IPv4 in
// turn with a head start of 250 ms each (RFC 8305). It checks the addresses that
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
	addrs, err := c.dialer.names.lookup(ctx, host)
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
