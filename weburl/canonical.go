package weburl

import (
	"slices"
	"strings"
)

// Canon says which differences between URLs make no difference between pages.
// The zero value changes nothing; DefaultCanon is for the web at large.
type Canon struct {
	// Drop are query parameters that never choose the content. A name that
	// ends in * is a prefix.
	Drop []string
	// Sessions are parameters, in the query or as ;name=value in the path, that
	// carry a session's number.
	Sessions []string
	// Same makes one of URLs that RFC 3986 (section 6.2.2) calls the same: letters,
	// digits and -._~ are not escaped, escapes are in upper case. It takes the dot of
	// the root from the host's name, too.
	Same bool
}

// DefaultCanon drops the parameters of trackers and of the common session
// mechanisms.
var DefaultCanon = Canon{
	Same: true,
	Drop: []string{
		"utm_*", "gclid", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "ysclid", "twclid", "ttclid", "igshid",
		"mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "mkt_tok", "vero_id", "vero_conv", "wickedid", "oly_anon_id", "oly_enc_id",
		"_openstat", "pk_campaign", "pk_kwd", "pk_source", "pk_medium", "mtm_*", "piwik_campaign", "hsctatracking", "spm", "scm",
	},
	Sessions: []string{"jsessionid", "phpsessid", "aspsessionid*", "asp.net_sessionid", "cfid", "cftoken", "sessionid", "session_id", "sid", "osid", "zenid"},
}

// Cut tells what was taken out of a URL, which is waste worth counting.
type Cut uint8

// What may be taken out of a URL.
const (
	Tracking Cut = 1 << iota // parameters that never choose the content
	Session                  // the number of a session
)

// Apply returns the canonical form of u and what is not in it any more. The canonical
// form is a fixed point of both Apply and Parse: what is left when something was taken
// out is parsed again, since "/a/..;sid=1" becomes "/a/..".
func (c Canon) Apply(u URL) (canonical URL, cut Cut) {
	for {
		next, more := c.applyOnce(u)
		if next == u {
			return u, cut
		}
		whole, err := Parse(next.s)
		if err != nil { // such as a host of dots only: it stays as it is
			return u, cut
		}
		u, cut = whole, cut|more
	}
}

// applyOnce takes out what is not canonical without parsing the rest again. Each
// change makes the URL shorter, or writes escapes in upper case.
func (c Canon) applyOnce(u URL) (canonical URL, cut Cut) {
	if c.Same {
		u = u.canonicalSame()
	}
	path, query := u.Path(), u.Query()
	if strings.IndexByte(path, ';') >= 0 {
		var session bool
		if path, session = c.dropSessionID(path); session {
			cut |= Session
		}
	}
	if query != "" {
		var q Cut
		query, q = c.filterQuery(query)
		cut |= q
	}
	if path == u.Path() && query == u.Query() {
		return u, cut
	}
	s := u.Origin() + path
	if query != "" {
		s += "?" + query
	}
	return splitURL(s), cut
}

// canonicalSame is the form that Canon.Same tells of.
func (u URL) canonicalSame() URL {
	target := normalEscapes(u.s[u.path:])
	name, port := u.Host(), ""
	if i := strings.LastIndexByte(name, ':'); i >= 0 && name[i-1] == '.' {
		name, port = name[:i], name[i:]
	}
	if n := len(name) - 1; n > 0 && name[n] == '.' && name[n-1] != '.' {
		return splitURL(u.s[:u.host] + name[:n] + port + target)
	}
	if target == u.s[u.path:] {
		return u
	}
	return splitURL(u.s[:u.path] + target)
}

// normalEscapes returns s as it is if nothing is to be changed, or if a % in it
// begins no escape: with what follows it could become one.
func normalEscapes(s string) string {
	at := 0 // what is before is in b
	var b []byte
	for i := strings.IndexByte(s, '%'); i >= 0 && i < len(s); {
		if i+2 >= len(s) || hexValue(s[i+1]) < 0 || hexValue(s[i+2]) < 0 {
			return s
		}
		c := byte(hexValue(s[i+1])<<4 | hexValue(s[i+2]))
		if class[c]&hostByte != 0 || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '~' {
			b = append(append(b, s[at:i]...), c)
			at = i + 3
		} else if s[i+1] >= 'a' || s[i+2] >= 'a' {
			b = append(append(b, s[at:i]...), strings.ToUpper(s[i:i+3])...)
			at = i + 3
		}
		i += 3
		n := strings.IndexByte(s[i:], '%')
		if n < 0 {
			break
		}
		i += n
	}
	if at == 0 {
		return s
	}
	return string(append(b, s[at:]...))
}

// hexValue is the value of a hexadecimal digit, or -1.
func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// dropSessionID drops ;jsessionid=... wherever it stands.
func (c Canon) dropSessionID(p string) (string, bool) {
	found := false
	for i := 0; i < len(p); i++ {
		if p[i] != ';' {
			continue
		}
		end := i + 1
		for end < len(p) && p[end] != ';' && p[end] != '/' {
			end++
		}
		name, _, _ := strings.Cut(p[i+1:end], "=")
		if matchesParameter(c.Sessions, name) {
			p, found = p[:i]+p[end:], true
			i--
		}
	}
	return p, found
}

func (c Canon) filterQuery(q string) (kept string, cut Cut) {
	keep := make([]string, 0, strings.Count(q, "&")+1)
	changed := false
	for part := range strings.SplitSeq(q, "&") {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case part == "":
			changed = true
		case matchesParameter(c.Drop, name):
			changed, cut = true, cut|Tracking
		case matchesParameter(c.Sessions, name) && (len(value) >= 8 || !strings.EqualFold(name, "sid")):
			changed, cut = true, cut|Session
		default:
			keep = append(keep, part)
		}
	}
	if !changed {
		return q, 0
	}
	return strings.Join(keep, "&"), cut
}

func matchesParameter(list []string, name string) bool {
	if name == "" {
		return false
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(list, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return p == name
	})
}
