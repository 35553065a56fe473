// Package weburl parses, resolves and canonicalises the URLs of web pages as
// browsers do (the WHATWG URL standard) and names them by short keys.
//
// Nearly all URLs on the web are plain: lower-case ASCII host, a path without
// dot segments, nothing to escape. Those take a fast path that only checks
// bytes; everything else goes to a full WHATWG parser (nlnwa/whatwg-url), which
// is also the oracle that the fast path is fuzzed against.
package weburl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/publicsuffix"
)

// URL is an absolute http or https URL without user, password and fragment, in
// its standard form. The zero value is no URL.
type URL struct {
	s          string // the whole
	host, path uint16 // where the authority and the path begin
	query      uint16 // where the query begins (its '?'), len(s) if none
}

// Errors of Parse.
var (
	ErrScheme = errors.New("not an http or https URL")
	ErrSyntax = errors.New("malformed URL")
)

// parseReason is what the library says of a URL, without the URL, which the caller
// names, and without what concerns base URLs.
func parseReason(err error) string {
	s := strings.TrimPrefix(err.Error(), "Error: ")
	s, _, _ = strings.Cut(s, " Url: '")
	s, _, _ = strings.Cut(s, ", because it does not begin with an ASCII alpha")
	return strings.ToLower(s[:1]) + strings.TrimSuffix(s[1:], ".")
}

// maxLength bounds a URL; longer ones are traps or data.
const maxLength = 4096

// The standard's parser takes a time that grows with the square of the length of a
// reference, and with the number of its at signs: 0.5 s for 64 KB, 5 s with signs only.
const (
	maxRaw   = 2 * maxLength // some is taken out of a reference: fragment, dot segments
	maxSigns = 256
)

// ErrLong is the error of a URL longer than 4,096 bytes, or of a reference too long to be one.
var ErrLong = errors.New("URL is longer than 4096 bytes")

// Parse reads an absolute URL. A string without scheme is not completed.
func Parse(raw string) (URL, error) {
	if u, ok := parsePlain(raw); ok {
		return u, nil
	}
	return parseStandard(URL{}, raw)
}

// Resolve reads a reference found on the page u.
func (u URL) Resolve(ref string) (URL, error) {
	if abs, ok := u.joinPlain(ref); ok {
		return abs, nil
	}
	return parseStandard(u, ref)
}

// parseStandard is the slow path: the full standard.
func parseStandard(base URL, raw string) (URL, error) {
	if len(raw) > maxRaw || strings.Count(raw, "@") > maxSigns {
		return URL{}, ErrLong
	}
	if s := schemeOf(raw); s != "" && s != "http" && s != "https" { // mailto, javascript, tel ...: many pages have them
		return URL{}, fmt.Errorf("%w: %q", ErrScheme, s)
	}
	var w *whatwg.Url
	var err error
	if base.s == "" {
		w, err = whatwg.Parse(raw)
	} else {
		w, err = whatwg.ParseRef(base.s, raw)
	}
	if err != nil {
		return URL{}, fmt.Errorf("%w: %s", ErrSyntax, parseReason(err))
	}
	if p := w.Protocol(); p != "http:" && p != "https:" {
		return URL{}, fmt.Errorf("%w: %q", ErrScheme, strings.TrimSuffix(p, ":"))
	}
	s := w.Protocol() + "//" + w.Host() + w.Pathname() + w.Search()
	if len(s) > maxLength {
		return URL{}, ErrLong
	}
	u := splitURL(s)
	if err := u.checkHost(); err != nil {
		return URL{}, err
	}
	return u, nil
}

// checkHost fails for a URL whose host the standard's parser does not read as the same
// host again: a page must have one name. The parser accepts "İ~.example" and writes
// it as "xn--i~-rub.example", which it then refuses.
func (u URL) checkHost() error {
	if end, ok := plainHostEnd(u.s, int(u.host)); ok && end == int(u.path) {
		return nil
	}
	again, err := whatwg.Parse(u.Origin() + "/")
	if err != nil {
		return fmt.Errorf("%w: %s", ErrSyntax, parseReason(err))
	}
	if again.Protocol()+"//"+again.Host() != u.Origin() {
		return fmt.Errorf("%w: the host %q has no standard form", ErrSyntax, u.Host())
	}
	return nil
}

// schemeOf returns the scheme that begins raw, "" if that is not plain to see.
func schemeOf(raw string) string {
	for i := range len(raw) {
		switch c := raw[i] | 0x20; {
		case c >= 'a' && c <= 'z' && raw[i] >= 'A':
		case i > 0 && (raw[i] >= '0' && raw[i] <= '9' || raw[i] == '+' || raw[i] == '-' || raw[i] == '.'):
		case i > 0 && raw[i] == ':':
			return strings.ToLower(raw[:i])
		default:
			return ""
		}
	}
	return ""
}

// splitURL finds the parts of a URL in standard form.
func splitURL(s string) URL {
	u := URL{s: s, query: uint16(len(s))}
	host := strings.Index(s, "://") + 3
	path := host + strings.IndexByte(s[host:], '/')
	u.host, u.path = uint16(host), uint16(path)
	if i := strings.IndexByte(s[path:], '?'); i >= 0 {
		u.query = uint16(path + i)
	}
	return u
}

// String returns the URL.
func (u URL) String() string { return u.s }

// IsZero reports whether u is no URL.
func (u URL) IsZero() bool { return u.s == "" }

// Scheme returns http or https.
func (u URL) Scheme() string {
	if u.s == "" {
		return ""
	}
	return u.s[:u.host-3]
}

// Host returns the authority: host name, and the port unless it is the
// scheme's own.
func (u URL) Host() string { return u.s[u.host:u.path] }

// Origin returns scheme and authority.
func (u URL) Origin() string { return u.s[:u.path] }

// Path returns the path, which begins with a slash.
func (u URL) Path() string { return u.s[u.path:u.query] }

// Query returns the query without its question mark.
func (u URL) Query() string {
	if int(u.query) >= len(u.s) {
		return ""
	}
	return u.s[u.query+1:]
}

// Target returns path and query: what robots.txt rules match.
func (u URL) Target() string { return u.s[u.path:] }

// Hostname returns the host without port and brackets.
func (u URL) Hostname() string { return Hostname(u.Host()) }

// Hostname cuts the port off an authority.
func Hostname(host string) string {
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
		return host
	}
	name, _, _ := strings.Cut(host, ":")
	return name
}

// Domain returns the registrable domain of the host (example.co.uk), or the
// host name itself where there is none (addresses, localhost).
func (u URL) Domain() string {
	d, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname())
	if err != nil {
		return u.Hostname()
	}
	return d
}

// Key names a page in 16 bytes: the hash of its authority, then the hash of
// the whole URL, both big endian, so that the pages of a host are neighbours
// in an ordered store. With 10^8 URLs on one host the chance that any two
// share a key is n^2/2^65 = 0.03 %; spread over hosts it is far less.
type Key [16]byte

// Key returns the page's key.
func (u URL) Key() Key {
	var k Key
	binary.BigEndian.PutUint64(k[:8], xxhash.Sum64String(u.Host()))
	binary.BigEndian.PutUint64(k[8:], xxhash.Sum64String(u.s))
	return k
}

// HostKey returns the first half of the keys of a host's pages.
func HostKey(host string) [8]byte {
	var k [8]byte
	binary.BigEndian.PutUint64(k[:], xxhash.Sum64String(host))
	return k
}
