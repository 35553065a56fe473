package console

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/freshet/freshet/internal/ratelimit"
)

// ParseNetworks reads addresses and networks of trusted proxies.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, p := range texts {
		prefix, err := netip.ParsePrefix(p)
		if err != nil {
			addr, err := netip.ParseAddr(p)
			if err != nil {
				return nil, fmt.Errorf("trusted proxy %q is neither an address nor a network", p)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// inNetworks reports whether a network contains an address.
func inNetworks(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(address) })
}

// remoteAddr returns the address at the other end of the connection.
func remoteAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// ClientAddr returns the address of the client. A trusted proxy names it in
// X-Forwarded-For or, without that, in Forwarded; the headers of others count for
// nothing. The last address in the list that is not itself a trusted proxy is the
// client: everything in front of it may be forged.
func ClientAddr(r *http.Request, proxies []netip.Prefix) netip.Addr {
	at := remoteAddr(r)
	if !inNetworks(proxies, at) {
		return at
	}
	hops := splitList(r.Header.Values("X-Forwarded-For"))
	if len(hops) == 0 {
		for _, element := range splitList(r.Header.Values("Forwarded")) {
			hops = append(hops, forwardedFor(element))
		}
	}
	for _, hop := range slices.Backward(hops) {
		address, ok := parseHop(hop)
		if !ok {
			return at // unknown or hidden: the last address that is known
		}
		if at = address; !inNetworks(proxies, at) {
			return at
		}
	}
	return at
}

// clientKey is the key of the client for limits.
func (a *auth) clientKey(r *http.Request) string {
	return ratelimit.ClientKey(ClientAddr(r, a.proxies))
}

func splitList(values []string) []string {
	var out []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			out = append(out, strings.TrimSpace(part))
		}
	}
	return out
}

// forwardedFor returns the "for" parameter of an element of Forwarded (RFC 7239).
func forwardedFor(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		if k, v, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && strings.EqualFold(k, "for") {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}

// parseHop reads an address with or without a port.
func parseHop(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap(), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap(), true
	}
	return netip.Addr{}, false
}

// hostNames are the names under which the console answers. Under any other a web
// page could reach it, by a name of its own that resolves to this address (DNS
// rebinding).
type hostNames struct {
	all     bool
	names   map[string]bool
	foreign bool // addresses that are not loopback: no name that resolves
}

func newHostNames(c Config) (*hostNames, error) {
	h := &hostNames{names: map[string]bool{}}
	add := func(name string) { h.names[bareHost(name)] = true }
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: %w", c.Listen, err)
	}
	if !loopbackName(host) {
		h.foreign = true
		if own, err := os.Hostname(); err == nil {
			add(own)
			short, _, _ := strings.Cut(own, ".")
			add(short)
		}
	}
	h.foreign = h.foreign || len(c.Proxies) > 0
	if host != "" {
		add(host)
	}
	for _, name := range c.Hosts {
		if name == "*" {
			h.all = true
		}
		add(name)
	}
	for _, address := range c.Addresses {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			add(u.Hostname())
		}
	}
	return h, nil
}

// isOwnName reports whether a Host header names this server.
func (h *hostNames) isOwnName(hostHeader string) bool {
	host := bareHost(hostHeader)
	if h.all || loopbackName(host) || h.names[host] {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil && h.foreign
}

// bareHost is the name of a Host header: lower case, without port, brackets and
// final dot.
func bareHost(s string) string {
	if host, port, err := net.SplitHostPort(s); err == nil && strings.Trim(port, "0123456789") == "" {
		s = host
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(s, "[]")), ".")
}

// loopbackName reports whether a host name means this machine.
func loopbackName(host string) bool {
	host = strings.Trim(host, "[]")
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || (err == nil && a.Unmap().IsLoopback())
}
