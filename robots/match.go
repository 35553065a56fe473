package robots

import (
	"cmp"
	"slices"
	"strings"
)

// compile orders the rules so that the first that matches decides, and builds
// the lookup for large files.
func (f *File) compile() {
	slices.SortStableFunc(f.rules, func(a, b rule) int {
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
	if len(f.rules) < manyRules {
		return
	}
	f.exact = make(map[string]int32, len(f.rules))
	for i, r := range f.rules {
		if r.wild {
			f.wild = append(f.wild, int32(i))
			continue
		}
		if _, ok := f.exact[r.pattern]; !ok { // the first, Allow, wins
			f.exact[r.pattern] = int32(i)
			if n := len(f.lengths); n == 0 || f.lengths[n-1] != len(r.pattern) {
				f.lengths = append(f.lengths, len(r.pattern))
			}
		}
	}
}

// match returns the index of the rule that decides, or -1.
func (f *File) match(target string) int {
	target = escapeTarget(target)
	if f.exact == nil {
		for i := range f.rules {
			if f.rules[i].matches(target) {
				return i
			}
		}
		return -1
	}
	best := -1
	for _, n := range f.lengths {
		if n > len(target) {
			continue
		}
		if i, ok := f.exact[target[:n]]; ok {
			best = int(i)
			break
		}
	}
	for _, i := range f.wild {
		if best >= 0 && int(i) > best {
			break
		}
		if f.rules[i].matches(target) {
			return int(i)
		}
	}
	return best
}

// escapeTarget makes the hexadecimal digits of a target upper case; targets in
// standard form come back as they are.
func escapeTarget(s string) string {
	for i := strings.IndexByte(s, '%'); i >= 0 && i+2 < len(s); i++ {
		if s[i] == '%' && (lower(s[i+1]) || lower(s[i+2])) {
			return escape(s)
		}
	}
	return s
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

func lower(c byte) bool { return c >= 'a' && c <= 'f' }

func (r *rule) matches(target string) bool {
	if !r.wild {
		return strings.HasPrefix(target, r.pattern)
	}
	return glob(r.pattern, target)
}

// glob matches a pattern with * and a closing $ against the begin of s. It
// takes each literal piece at its first place after the last one, which finds
// a match if there is one; a piece before the closing $ must end s.
func glob(pattern, s string) bool {
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
