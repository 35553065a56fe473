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
}

// DefaultCanon drops the parameters of trackers and of the common session
// mechanisms.
var DefaultCanon = Canon{
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

// Apply returns the canonical form of u and what is not in it any more.
func (c Canon) Apply(u URL) (canonical URL, cut Cut) {
	path, query := u.Path(), u.Query()
	if strings.IndexByte(path, ';') >= 0 {
		var session bool
		if path, session = c.path(path); session {
			cut |= Session
		}
	}
	if query != "" {
		var q Cut
		query, q = c.query(query)
		cut |= q
	}
	if path == u.Path() && query == u.Query() {
		return u, cut
	}
	s := u.Origin() + path
	out := URL{host: u.host, path: u.path, query: len(s)}
	if query != "" {
		s += "?" + query
	}
	out.s = s
	return out, cut
}

// path drops ;jsessionid=... wherever it stands.
func (c Canon) path(p string) (string, bool) {
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
		if matches(c.Sessions, name) {
			p, found = p[:i]+p[end:], true
			i--
		}
	}
	return p, found
}

func (c Canon) query(q string) (kept string, cut Cut) {
	keep := make([]string, 0, strings.Count(q, "&")+1)
	changed := false
	for part := range strings.SplitSeq(q, "&") {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case part == "":
			changed = true
		case matches(c.Drop, name):
			changed, cut = true, cut|Tracking
		case matches(c.Sessions, name) && (len(value) >= 8 || !strings.EqualFold(name, "sid")):
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

func matches(list []string, name string) bool {
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
