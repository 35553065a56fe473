package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// dialer connects to the first address of a name that answers, those of IPv6 and
// IPv4 in turn with a head start of 250 ms each (RFC 8305). It checks the addresses that
// it connects to, not names: a name that is given another address between two
// requests (DNS rebinding) gains nothing.
type dialer struct {
	names *resolver
	net   net.Dialer
}

// headStart is how long an address is waited for alone.
const headStart = 250 * time.Millisecond

func newDialer(c Config) *dialer {
	return &dialer{names: newResolver(c.Resolver), net: net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}}
}

// dial connects to a host and port. permitted lets it use private addresses of that
// host.
func (d *dialer) dial(ctx context.Context, network, address string, permitted bool) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.names.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	order := dialOrder(addrs, host, permitted)
	if len(order) == 0 {
		return nil, privateError(host, addrs)
	}
	return d.race(ctx, network, port, order)
}

// mostAddrs is how many addresses of a name are dialled: a name with more is no
// licence to knock at all of them.
const mostAddrs = 8

// privateError says that none of a host's addresses may be dialled.
func privateError(host string, addrs []netip.Addr) error {
	return fmt.Errorf("%s is %v: %w", host, addrs[:min(len(addrs), mostAddrs)], errPrivate)
}

// dialOrder returns the addresses of a host that may be dialled, in the order of
// trying.
func dialOrder(addrs []netip.Addr, host string, permitted bool) []netip.Addr {
	var allowed []netip.Addr
	for _, a := range addrs {
		if mayDial(a, host, permitted) {
			allowed = append(allowed, a)
		}
	}
	out := alternate(allowed)
	return out[:min(len(out), mostAddrs)]
}

// Permits reports whether Dial may use private addresses of a host and port.
func (c *Client) Permits(address string) bool {
	if c.config.AllowPrivate {
		return true
	}
	host, port, err := net.SplitHostPort(address)
	return err == nil && c.config.Permit != nil && c.config.Permit(host, port)
}

// Dial connects as the client does for its own requests, with the check of
// addresses, for a proxy through which another program's requests go. Config.Permit
// decides on private addresses. private tells a refusal from a failure.
func (c *Client) Dial(ctx context.Context, network, address string) (conn net.Conn, private bool, err error) {
	if c.config.Dial != nil {
		conn, err = c.config.Dial(ctx, network, address)
	} else {
		conn, err = c.dialer.dial(ctx, network, address, c.Permits(address))
	}
	return conn, errors.Is(err, errPrivate), err
}

// CheckTarget refuses a host and port that is written as an address which Dial would
// refuse: all that can be known of a request that goes through a forward proxy.
func (c *Client) CheckTarget(address string) error {
	return checkWritten(address, c.Permits(address))
}

func checkWritten(address string, permitted bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if a, err := netip.ParseAddr(host); err == nil && !mayDial(a, host, permitted) {
		return privateError(host, []netip.Addr{a})
	}
	if isLoopbackName(host) && !permitted {
		return fmt.Errorf("%s is this machine: %w", host, errPrivate)
	}
	return nil
}

// isLoopbackName reports whether a name means this machine (RFC 6761).
func isLoopbackName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Addresses returns the addresses of a host name that a request with or without
// permission may dial, in the order of trying, found in the cache or by asking. There
// are none where the name does not resolve or another dials.
func (c *Client) Addresses(ctx context.Context, host string, permitted bool) []string {
	if c.config.Dial != nil || c.isProxied(host) {
		return nil
	}
	addrs, err := c.dialer.names.lookup(ctx, host)
	if err != nil {
		return nil
	}
	order := dialOrder(addrs, host, permitted || c.config.AllowPrivate)
	out := make([]string, len(order))
	for i, a := range order {
		out[i] = a.String()
	}
	return out
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
