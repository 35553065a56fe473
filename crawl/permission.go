package crawl

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// PermitsPage reports whether a scope with Private covers a page, so that its request
// may go to a private address of its host.
func (s *Scopes) PermitsPage(u weburl.URL) bool {
	return s.permits(u, func(sc *Scope) bool {
		return sc.passes(u) && (sc.Kind != "prefix" || strings.HasPrefix(u.String(), prefixOf(sc.Seed)))
	})
}

// PermitsHost reports whether a scope with Private covers the host and port of a URL,
// whatever its path: for robots.txt, scripts, key files and hubs. Filters count where
// they are all that tells the hosts of a scope from others.
func (s *Scopes) PermitsHost(u weburl.URL) bool {
	return s.permits(u, func(sc *Scope) bool { return sc.Kind != "any" || sc.passes(u) })
}

// permits looks for a private scope among those that may cover the host of u.
func (s *Scopes) permits(u weburl.URL, covers func(*Scope) bool) bool {
	private := func(sc *Scope) bool { return sc.Private && covers(sc) }
	return slices.ContainsFunc(s.host[u.Host()], private) ||
		s.domain != nil && slices.ContainsFunc(s.domain[u.Domain()], private) ||
		slices.ContainsFunc(s.others, func(sc *Scope) bool {
			return (sc.Kind == "any" || sc.Seed.Host() == u.Host()) && private(sc)
		})
}

// PermitsURL reports whether a source permits private addresses of a URL's host.
func (r *Robot) PermitsURL(u weburl.URL) bool { return r.sources.PermitsHost(u) }

// PermitsHost reports whether a source permits private addresses of a host and port.
// It is what fetch.Config.Permit asks for.
func (r *Robot) PermitsHost(host, port string) bool {
	for _, scheme := range []string{"http://", "https://"} {
		u, err := weburl.Parse(scheme + net.JoinHostPort(host, port) + "/")
		if err == nil && r.PermitsURL(u) {
			return true
		}
	}
	return false
}

// NamesHost reports whether a scope's own URL is on the host of u: its operator is
// known to us, while other hosts of a scope are those to which links have led.
func (s *Scopes) NamesHost(u weburl.URL) bool {
	names := func(sc *Scope) bool { return sc.Seed.Host() == u.Host() }
	return len(s.host[u.Host()]) > 0 || s.domain != nil && slices.ContainsFunc(s.domain[u.Domain()], names) || slices.ContainsFunc(s.others, names)
}

// PublicName reports whether a host name may be a public server: not an address
// of a private network and not a loopback name.
func PublicName(host string) bool {
	if politeness.IsLoopback(host) {
		return false
	}
	a, err := netip.ParseAddr(host)
	return err != nil || fetch.Public(a)
}
