package robots

import (
	"cmp"
	"slices"
	"strings"
)

// rules are the compiled rules of one robot.
type rules struct {
	list    []rule           // by falling length, Allow before Disallow
	exact   map[string]int32 // wildcard-free pattern -> index in list, for many rules
	lengths []int            // of the patterns in exact, falling
	wild    []int32          // indexes of rules with wildcards, where exact is used
}

// compileRules orders the rules so that the first that matches decides, and builds
// the lookup for large files.
func (rs *rules) compileRules(list []rule) {
	rs.list = list
	slices.SortStableFunc(list, func(a, b rule) int {
		if c := cmp.Compare(len(b.pattern), len(a.pattern)); c != 0 {
			return c
		}
		if a.allow != b.allow {
			if a.allow {
				return -1
			}
			return 1
		}
		return 0
	})
	if len(list) < manyRules {
		return
	}
	rs.exact = make(map[string]int32, len(list))
	for i, r := range list {
		if r.wild {
			rs.wild = append(rs.wild, int32(i))
			continue
		}
		if _, ok := rs.exact[r.pattern]; !ok { // the first, Allow, wins
			rs.exact[r.pattern] = int32(i)
			if n := len(rs.lengths); n == 0 || rs.lengths[n-1] != len(r.pattern) {
				rs.lengths = append(rs.lengths, len(r.pattern))
			}
		}
	}
}

// matchRule returns the rule that decides.
func (rs *rules) matchRule(target string) *rule {
	if rs.exact == nil {
		for i := range rs.list {
			if r := &rs.list[i]; r.matchesTarget(target) {
				return r
			}
		}
		return noRule
	}
	best := len(rs.list)
	for _, n := range rs.lengths {
		if n > len(target) {
			continue
		}
		if i, ok := rs.exact[target[:n]]; ok {
			best = int(i)
			break
		}
	}
	for _, i := range rs.wild {
		if int(i) > best {
			break
		}
		if r := &rs.list[i]; r.matchesTarget(target) {
			return r
		}
	}
	if best == len(rs.list) {
		return noRule
	}
	return &rs.list[best]
}

// Target returns path, parameters and query of a URL as it is written, which
// is what Google's matcher compares; no escaping is added or taken away.
func Target(rawURL string) string {
	start := 0
	if strings.HasPrefix(rawURL, "//") {
		start = 2
	}
	begin := strings.IndexAny(rawURL[start:], "/?;")
	if scheme := strings.Index(rawURL[start:], "://"); scheme >= 0 && (begin < 0 || begin > scheme) {
		start += scheme + 3
		begin = strings.IndexAny(rawURL[start:], "/?;")
	}
	rest := rawURL[start:]
	end := strings.IndexByte(rest, '#')
	if end < 0 {
		end = len(rest)
	}
	if begin < 0 || begin > end {
		return "/"
	}
	if rest[begin] != '/' {
		return "/" + rest[begin:end]
	}
	return rest[begin:end]
}

func (r *rule) matchesTarget(target string) bool {
	if !r.wild {
		return strings.HasPrefix(target, r.pattern)
	}
	return matchGlob(r.pattern, target)
}

// matchGlob matches a pattern with * and a closing $ against the begin of s. It
// takes each literal piece at its first place after the last one, which finds
// a match if there is one; a piece before the closing $ must end s.
func matchGlob(pattern, s string) bool {
	pattern, anchored := strings.CutSuffix(pattern, "$")
	first, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	if !star {
		return !anchored || s == ""
	}
	for {
		var piece string
		piece, rest, star = strings.Cut(rest, "*")
		if !star {
			if anchored {
				return strings.HasSuffix(s, piece)
			}
			return strings.Contains(s, piece)
		}
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}
}
