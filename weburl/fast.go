package weburl

import "strings"

// Classes of bytes on the fast path.
const (
	hostByte  = 1 << iota // a-z 0-9 . -
	pathByte              // stands in a path as it is
	queryByte             // stands in a query as it is
)

// class tells for each byte where it may stand without any change. Upper-case
// letters of the host, '%', '\', tabs, quotes and all beyond ASCII are left to
// the slow path.
var class = func() (t [256]byte) {
	set := func(chars string, c byte) {
		for i := range len(chars) {
			t[chars[i]] |= c
		}
	}
	const lower, upper, digit = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	set(lower+digit+".-", hostByte)
	set(lower+upper+digit+"-_~!$&()*+,;=:@/.", pathByte)
	set(lower+upper+digit+"-_~!$&()*+,;=:@/.?[]|^`{}", queryByte)
	return t
}()

// parsePlain accepts an absolute URL that is in standard form already, but for a
// fragment or a missing slash, without allocating. It says no in any doubt.
func parsePlain(s string) (URL, bool) {
	var at int
	switch {
	case strings.HasPrefix(s, "http://"):
		at = len("http://")
	case strings.HasPrefix(s, "https://"):
		at = len("https://")
	default:
		return URL{}, false
	}
	end, ok := plainHostEnd(s, at)
	if !ok {
		return URL{}, false
	}
	if end == len(s) || s[end] == '#' {
		s = s[:end] + "/"
	} else if s[end] != '/' {
		return URL{}, false
	}
	query, last, ok := plainPath(s, end)
	if !ok || last > maxLength {
		return URL{}, false
	}
	return URL{s: s[:last], host: uint16(at), path: uint16(end), query: uint16(query)}, true
}

// plainHostEnd returns the end of a host that needs no work: a name whose last
// label begins with a letter (so that it is no IPv4 address) and has no
// punycode, or a dotted IPv4 address, either with a port that is not the
// scheme's.
func plainHostEnd(s string, at int) (int, bool) {
	i := at
	label, letters := at, false
	for i < len(s) && class[s[i]]&hostByte != 0 {
		if s[i] == '.' {
			if i == label {
				return 0, false
			}
			label = i + 1
		} else if s[i] == '-' {
			if i == label || (i == label+2 && label+2 <= len(s)) { // leading hyphen or xn--
				return 0, false
			}
		} else if s[i] >= 'a' {
			letters = true
		}
		i++
	}
	if i == at || i == label || i-at > 253 {
		return 0, false
	}
	if c := s[label]; c >= '0' && c <= '9' && (letters || !isDottedIPv4(s[at:i])) {
		return 0, false
	}
	if i < len(s) && s[i] == ':' {
		return plainPort(s, at, i)
	}
	return i, true
}

// plainPort accepts a port of two to five digits without a leading zero that
// is not the default.
func plainPort(s string, at, i int) (int, bool) {
	start := i + 1
	port := 0
	for i = start; i < len(s) && s[i] >= '0' && s[i] <= '9' && i-start < 6; i++ {
		port = port*10 + int(s[i]-'0')
	}
	if i == start || s[start] == '0' || port > 65535 {
		return 0, false
	}
	if (port == 80 && at == len("http://")) || (port == 443 && at == len("https://")) {
		return 0, false
	}
	return i, true
}

// isDottedIPv4 reports whether s is four numbers below 256 without leading zeros.
func isDottedIPv4(s string) bool {
	for n := range 4 {
		v, i := 0, 0
		for i < len(s) && i < 4 && s[i] >= '0' && s[i] <= '9' {
			v = v*10 + int(s[i]-'0')
			i++
		}
		if i == 0 || v > 255 || (i > 1 && s[0] == '0') {
			return false
		}
		if n == 3 {
			return i == len(s)
		}
		if i == len(s) || s[i] != '.' {
			return false
		}
		s = s[i+1:]
	}
	return false
}

// plainPath checks path and query from the slash at i; last is where the
// fragment begins or the string ends.
func plainPath(s string, i int) (query, last int, ok bool) {
	for i < len(s) && class[s[i]]&pathByte != 0 {
		if s[i] == '/' && i+1 < len(s) && s[i+1] == '.' && dotSegment(s[i+2:]) {
			return 0, 0, false
		}
		i++
	}
	query = i
	if i < len(s) && s[i] == '?' {
		for i++; i < len(s) && class[s[i]]&queryByte != 0; i++ {
		}
		if i == query+1 { // an empty query is dropped by the slow path
			return 0, 0, false
		}
	}
	if i < len(s) && s[i] != '#' {
		return 0, 0, false
	}
	return query, i, true
}

// dotSegment reports whether what follows "/." makes the segment "." or "..",
// or may do so.
func dotSegment(rest string) bool {
	rest = strings.TrimPrefix(rest, ".")
	return rest == "" || strings.ContainsRune("/?#%", rune(rest[0]))
}

// resolvePrefix returns what u gives to an ordinary reference: the origin, the folder as
// well, or nothing to what has a scheme. It says no in any doubt.
func resolvePrefix[T string | []byte](u URL, ref T) (string, bool) {
	if len(ref) == 0 || u.s == "" {
		return "", false
	}
	switch c := ref[0]; {
	case c == '/':
		return u.s[:u.path], len(ref) == 1 || ref[1] != '/'
	case c == '.' || class[c]&pathByte == 0:
		return "", false
	}
	for i := range len(ref) {
		if c := ref[i]; c == ':' {
			return "", true
		} else if c == '/' || c == '?' || c == '#' {
			break
		}
	}
	return u.s[:int(u.path)+strings.LastIndexByte(u.s[u.path:u.query], '/')+1], true
}

// joinPlain resolves an ordinary reference against u with one allocation.
func (u URL) joinPlain(ref string) (URL, bool) {
	head, ok := resolvePrefix(u, ref)
	switch {
	case !ok:
		return URL{}, false
	case head == "":
		return parsePlain(ref)
	}
	return u.checkJoined(head+ref, len(head))
}

// checkJoined checks the path that a reference made, which begins in s at from; what
// is before it is of u.
func (u URL) checkJoined(s string, from int) (URL, bool) {
	if s[from] == '/' && from+1 < len(s) && s[from+1] == '.' && dotSegment(s[from+2:]) {
		return URL{}, false
	}
	query, last, ok := plainPath(s, from)
	if !ok || last > maxLength {
		return URL{}, false
	}
	return URL{s: s[:last], host: u.host, path: u.path, query: uint16(query)}, true
}

// Resolver resolves the references found on a page. Its URLs share memory, some
// kilobytes for many of them.
type Resolver struct {
	Base URL

	memory strings.Builder
}

// Memory is taken by pieces, a small one at first.
const (
	firstPiece  = 512
	furtherOnes = 2048
)

// Resolve is Base.Resolve.
func (r *Resolver) Resolve(ref []byte) (URL, error) {
	if head, ok := resolvePrefix(r.Base, ref); ok && len(head)+len(ref) <= maxLength {
		s := r.concatKept(head, ref)
		if head == "" {
			if u, ok := parsePlain(s); ok {
				return u, nil
			}
		} else if u, ok := r.Base.checkJoined(s, len(head)); ok {
			return u, nil
		}
	}
	return parseStandard(r.Base, string(ref))
}

// concatKept returns head and ref as one string.
func (r *Resolver) concatKept(head string, ref []byte) string {
	n := r.memory.Len()
	if need := len(head) + len(ref); need > r.memory.Cap()-n {
		size := furtherOnes
		if n == 0 {
			size = firstPiece
		}
		n, r.memory = 0, strings.Builder{} // those from before are their URLs' alone
		r.memory.Grow(max(need, size))
	}
	r.memory.WriteString(head)
	r.memory.Write(ref)
	return r.memory.String()[n:]
}
