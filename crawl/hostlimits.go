package crawl

import "time"

// HostLimits bound what is taken of one host; 0 is the limit of Config.
type HostLimits struct {
	BytesDay int64 // of bodies that are kept in a day
	Pages    int64
	Body     int64 // bytes of one body, after decompression
}

// limitsOf returns the limits of a host. Where several scopes name it, the lowest of each
// holds.
func (s *sourceSet) limitsOf(host string) HostLimits {
	var out HostLimits
	lower := func(limit *int64, v int64) {
		if v > 0 && (*limit == 0 || v < *limit) {
			*limit = v
		}
	}
	for _, sc := range s.scopesNaming(host) {
		lower(&out.BytesDay, sc.Limits.BytesDay)
		lower(&out.Pages, sc.Limits.Pages)
		lower(&out.Body, sc.Limits.Body)
	}
	if out.BytesDay == 0 {
		out.BytesDay = s.config.HostBytesDay
	}
	return out
}

func (s *sourceSet) scopesNaming(host string) []*Scope {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.config.Scopes.naming(host)
}

// PolicyOf returns the policy of the first scope that names a host and has one, or "".
func (r *Robot) PolicyOf(host string) string {
	for _, sc := range r.sources.scopesNaming(host) {
		if sc.Policy != "" {
			return sc.Policy
		}
	}
	return ""
}

// maxClosedSearch bounds how far ahead a common hour of several scopes is looked for.
const maxClosedSearch = 24 * time.Hour

// OpensAt implements politeness.Sources: a host is open when it is by the hours of all
// scopes that name it.
func (s *sourceSet) OpensAt(host string, now time.Time) time.Time {
	s.mu.RLock()
	hasHours := s.config.Scopes.hasHours
	s.mu.RUnlock()
	if !hasHours {
		return time.Time{}
	}
	named := s.scopesNaming(host)
	t := now
	for again := true; again && t.Before(now.Add(maxClosedSearch)); {
		again = false
		for _, sc := range named {
			if open := sc.Hours.NextOpen(t); open.After(t) {
				t, again = open, true
			}
		}
	}
	if t.Equal(now) {
		return time.Time{}
	}
	return t
}
