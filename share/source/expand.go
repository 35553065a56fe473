package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/freshet/freshet/weburl"
)

// maxRange bounds the addresses of one source.
const maxRange = 1 << 16

// cidr matches scheme://address/bits[/path]: an address range.
var cidr = regexp.MustCompile(`^([a-z+]+)://([^@/]*@)?(\[?[0-9a-fA-F.:]+?\]?)(:\d+)?/(\d{1,3})(/.*)?$`)

// IsRange reports whether spec names an address range, which is to be probed
// again from time to time.
func IsRange(spec string) bool {
	m := cidr.FindStringSubmatch(spec)
	if m == nil {
		return false
	}
	_, err := netip.ParseAddr(strings.Trim(m[3], "[]"))
	return err == nil
}

// IsLocal reports whether spec names folders of this machine.
func IsLocal(spec string) bool {
	spec = strings.TrimSpace(spec)
	return strings.HasPrefix(spec, "/") || len(spec) >= 5 && strings.EqualFold(spec[:5], "file:")
}

// HasLogin reports whether spec has a user or a password in it.
func HasLogin(spec string) bool {
	_, rest, _ := strings.Cut(spec, "://")
	authority, _, _ := strings.Cut(rest, "/")
	return strings.Contains(authority, "@") || weburl.Redact(spec) != spec
}

// Expand returns the hosts that a source names.
//
//	smb://server/share           one host, one share
//	smb://server                 all its shares
//	ftp://one,two,10.0.0.3/pub   a list of hosts
//	smb://10.20.0.0/16           an address range: those that answer at the port
//	smb://user:password@...      with credentials; without, a guest
//
// Only an address range is asked anything here. Errors say what is wrong with
// the source.
func Expand(ctx context.Context, spec string, o Options) ([]*url.URL, error) {
	if m := cidr.FindStringSubmatch(spec); m != nil {
		if addr, err := netip.ParseAddr(strings.Trim(m[3], "[]")); err == nil {
			p, err := netip.ParsePrefix(addr.String() + "/" + m[5])
			if err != nil {
				return nil, fmt.Errorf("source %s: %w", weburl.Redact(spec), err)
			}
			return expandRange(ctx, m, p, o)
		}
	}
	scheme, rest, ok := strings.Cut(spec, "://")
	if !ok {
		if strings.HasPrefix(spec, "/") {
			return Expand(ctx, (&url.URL{Scheme: "file", Path: spec}).String(), o)
		}
		if strings.Contains(spec, "@") { // perhaps with a password
			spec = "…" + spec[strings.LastIndexByte(spec, '@'):]
		}
		return nil, fmt.Errorf("source %q: write it as a URL, such as smb://server/share or file:///folder", spec)
	}
	authority, path, _ := strings.Cut(rest, "/")
	user := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, authority = authority[:i+1], authority[i+1:]
	}
	if _, ok := defaultPort(scheme); !ok {
		return nil, fmt.Errorf("source %s: no source of scheme %q: use one of %s", weburl.Redact(spec), scheme, strings.Join(Names(), ", "))
	}
	var out []*url.URL
	for h := range strings.SplitSeq(authority, ",") {
		u, err := url.Parse(scheme + "://" + user + strings.TrimSpace(h) + "/" + path)
		if err != nil {
			var ue *url.Error
			if errors.As(err, &ue) {
				err = ue.Err // without the URL
			}
			if shown := weburl.Redact(spec); shown != spec { // what is wrong may be a piece of the password
				return nil, fmt.Errorf("source %s: malformed URL: write /, ?, #, %%, : and spaces of a password as %%2F, %%3F, %%23, %%25, %%3A and %%20", shown)
			}
			return nil, fmt.Errorf("source %s: %w", spec, err)
		}
		if u.Hostname() == "" && scheme != "file" {
			return nil, fmt.Errorf("source %s: no host: write %s://server/folder", weburl.Redact(spec), scheme)
		}
		out = append(out, u)
	}
	return out, nil
}

// expandRange probes the addresses of a range, 64 at a time.
func expandRange(ctx context.Context, m []string, p netip.Prefix, o Options) ([]*url.URL, error) {
	if bits := p.Addr().BitLen() - p.Bits(); bits > 16 {
		return nil, fmt.Errorf("source %s: 2^%d addresses: name ranges of at most %d", p, bits, maxRange)
	}
	if _, ok := defaultPort(m[1]); !ok || m[1] == "file" {
		return nil, fmt.Errorf("source %s: no network source of scheme %q", p, m[1])
	}
	if _, password, _ := strings.Cut(strings.TrimSuffix(m[2], "@"), ":"); (password != "" || o.Password != "") && !o.TrustRange && revealsPassword(m[1], o) {
		return nil, fmt.Errorf("source %s://…@%s: every machine of the range that answers would learn the password: name the hosts (%s://user@one,two/), use a protocol with TLS, host_keys for sftp, or say trust_range: true", m[1], p, m[1])
	}
	p = p.Masked()
	var urls []*url.URL
	for a := p.Addr(); p.Contains(a); a = a.Next() {
		host := a.String()
		if a.Is6() {
			host = "[" + host + "]"
		}
		u, err := url.Parse(m[1] + "://" + m[2] + host + m[4] + m[6])
		if err != nil {
			return nil, fmt.Errorf("source %s: malformed", p)
		}
		urls = append(urls, u)
	}
	answers := make([]bool, len(urls))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i, u := range urls {
		if ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			answers[i] = probeAddress(ctx, Address(u), min(o.timeoutOrDefault(), 2*time.Second))
		})
	}
	wg.Wait()
	var out []*url.URL
	for i, u := range urls {
		if answers[i] {
			out = append(out, u)
		}
	}
	return out, ctx.Err()
}

// revealsPassword reports whether a server of the scheme gets to know the password
// before it has proved who it is.
func revealsPassword(scheme string, o Options) bool {
	switch scheme {
	case "ftp", "webdav", "http", "index+http":
		return true
	case "sftp":
		return len(o.HostKeys) == 0 && o.KnownHosts == ""
	}
	return false
}

// probeAddress reports whether something listens at the address.
func probeAddress(ctx context.Context, address string, timeout time.Duration) bool {
	d := net.Dialer{Timeout: timeout}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c.Close() == nil || errors.Is(err, syscall.ECONNRESET)
}
