package crawl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/crawl/visithours"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Scope says which URLs belong to a source.
type Scope struct {
	Seed    weburl.URL
	Kind    string // host (default), domain, prefix, any
	Depth   int    // most links from the seed; 0 is no limit
	Include []*regexp.Regexp
	Exclude []*regexp.Regexp
	// Private permits private addresses of the hosts that the scope covers.
	Private bool
	// Delay, if not nil, is the least time between two requests to a host of the scope;
	// 0 is no pause. Connections is how many requests may be under way at once where
	// there is no pause; 0 is Config.Connections.
	Delay       *time.Duration
	Connections int
	// Limits hold for the hosts that the scope names; a zero one is Config's.
	Limits HostLimits
	Hours  *visithours.Hours // when these hosts may be visited; nil is always
	Policy string            // of their pages; "" is that of all
}

// NewScope checks and compiles a scope.
func NewScope(seed weburl.URL, kind string, depth int, include, exclude []string) (Scope, error) {
	seed, _ = weburl.Canon{Same: true}.Apply(seed)
	s := Scope{Seed: seed, Kind: kind, Depth: depth}
	switch kind {
	case "":
		s.Kind = "host"
	case "host", "domain", "prefix", "any":
	default:
		return s, fmt.Errorf("scope %q is none of host, domain, prefix, any", kind)
	}
	for _, l := range []struct {
		in  []string
		out *[]*regexp.Regexp
	}{{include, &s.Include}, {exclude, &s.Exclude}} {
		for _, p := range l.in {
			re, err := regexp.Compile(p)
			if err != nil {
				return s, fmt.Errorf("scope of %s: %w", seed, err)
			}
			*l.out = append(*l.out, re)
		}
	}
	return s, nil
}

// Scopes is a set of scopes: a URL is in if one of them has it.
type Scopes struct {
	host, domain map[string][]*Scope
	others       []*Scope
	hasHours     bool // a scope has hours
}

// Add adds a scope; a robot that runs takes further ones by AddScope.
func (s *Scopes) Add(sc Scope) {
	s.hasHours = s.hasHours || sc.Hours != nil
	s.set(sc, append(s.list(sc), &sc))
}

// Remove takes out the scope of the same seed, kind and depth that was added last.
func (s *Scopes) Remove(sc Scope) {
	list := s.list(sc)
	for i := len(list) - 1; i >= 0; i-- {
		if o := list[i]; o.Seed == sc.Seed && o.Kind == sc.Kind && o.Depth == sc.Depth {
			s.set(sc, slices.Delete(slices.Clone(list), i, i+1))
			return
		}
	}
}

// Has reports whether a scope of the same seed and kind is in the set.
func (s *Scopes) Has(sc Scope) bool {
	return slices.ContainsFunc(s.list(sc), func(o *Scope) bool { return o.Seed == sc.Seed && o.Kind == sc.Kind })
}

// HasSeedOn reports whether a scope of the set begins on a host.
func (s *Scopes) HasSeedOn(host string) bool {
	on := func(sc *Scope) bool { return sc.Seed.Host() == host }
	if len(s.host[host]) > 0 || slices.ContainsFunc(s.others, on) {
		return true
	}
	for _, list := range s.domain {
		if slices.ContainsFunc(list, on) {
			return true
		}
	}
	return false
}

// list returns the scopes among which one stands.
func (s *Scopes) list(sc Scope) []*Scope {
	switch sc.Kind {
	case "host":
		return s.host[sc.Seed.Host()]
	case "domain":
		return s.domain[sc.Seed.Domain()]
	}
	return s.others
}

func (s *Scopes) set(sc Scope, list []*Scope) {
	switch sc.Kind {
	case "host":
		if s.host == nil {
			s.host = map[string][]*Scope{}
		}
		s.host[sc.Seed.Host()] = list
	case "domain":
		if s.domain == nil {
			s.domain = map[string][]*Scope{}
		}
		s.domain[sc.Seed.Domain()] = list
	default:
		s.others = list
	}
}

// Check returns "" for a URL that is in scope, else why not.
func (s *Scopes) Check(u weburl.URL, depth int) store.Reason {
	if blockedPort(u) && !s.NamesHost(u) {
		return store.ReasonBlockedPort
	}
	why := store.ReasonOutOfScope
	check := func(sc *Scope) bool {
		switch {
		case sc.Depth > 0 && depth > sc.Depth:
			why = store.ReasonTooDeep
		case !sc.passes(u):
			why = store.ReasonFiltered
		default:
			return true
		}
		return false
	}
	for _, sc := range s.host[u.Host()] {
		if check(sc) {
			return ""
		}
	}
	if s.domain != nil {
		for _, sc := range s.domain[u.Domain()] {
			if check(sc) {
				return ""
			}
		}
	}
	for _, sc := range s.others {
		if sc.Kind == "any" || strings.HasPrefix(u.String(), prefixOf(sc.Seed)) {
			if check(sc) {
				return ""
			}
		}
	}
	return why
}

// prefixOf is the seed up to its last slash.
func prefixOf(u weburl.URL) string {
	s := u.Origin() + u.Path()
	return s[:strings.LastIndexByte(s, '/')+1]
}

func (s *Scope) passes(u weburl.URL) bool {
	text := u.String()
	for _, re := range s.Exclude {
		if re.MatchString(text) {
			return false
		}
	}
	if len(s.Include) == 0 {
		return true
	}
	for _, re := range s.Include {
		if re.MatchString(text) {
			return true
		}
	}
	return false
}
