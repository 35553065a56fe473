package robots

import (
	"strings"
	"testing"
)

// google is Google's open-source matcher (robots.cc, Apache 2.0) told anew, with its
// own means: the line buffer, the set of all places where a pattern may stand, the
// verdicts of both kinds of group. Our parser is fuzzed against it.
type google struct {
	agent, path                        string
	seenOwn, seenAll, everOwn, rulesIn bool
	allow, disallow                    [2]int // priorities: own group, group of all
}

func googleAllows(body, agent, url string) bool {
	g := &google{agent: agent, path: Target(url), allow: [2]int{-1, -1}, disallow: [2]int{-1, -1}}
	var line []byte
	bom, wasReturn := 0, false
	for i := range len(body) {
		c := body[i]
		if bom < 3 {
			at := bom
			bom++
			if c == "\xEF\xBB\xBF"[at] {
				continue
			}
			bom = 3
		}
		if c != '\n' && c != '\r' {
			if len(line) < 2083*8-1 {
				line = append(line, c)
			}
			continue
		}
		if len(line) > 0 || !wasReturn || c != '\n' {
			g.line(string(line))
		}
		line, wasReturn = line[:0], c == '\r'
	}
	g.line(string(line))
	own := g.disallow[0] > g.allow[0]
	if g.allow[0] > 0 || g.disallow[0] > 0 {
		return !own
	}
	if g.everOwn {
		return true
	}
	if g.allow[1] > 0 || g.disallow[1] > 0 {
		return g.disallow[1] <= g.allow[1]
	}
	return true
}

func (g *google) line(s string) {
	s, _, _ = strings.Cut(s, "\x00") // C strings
	s, _, _ = strings.Cut(s, "#")
	space := func(s string) string { return strings.Trim(s, "\t\n\v\f\r ") }
	s = space(s)
	sep := strings.IndexByte(s, ':')
	if sep < 0 {
		if sep = strings.IndexAny(s, " \t"); sep < 0 || strings.ContainsAny(strings.TrimLeft(s[sep:], " \t"), " \t") {
			return
		}
	}
	key, value := strings.ToLower(space(s[:sep])), space(s[sep+1:])
	begins := func(words string) bool {
		for _, w := range strings.Split(words, ",") {
			if strings.HasPrefix(key, w) {
				return true
			}
		}
		return false
	}
	switch {
	case key == "":
	case begins("user-agent,useragent,user agent"):
		g.userAgent(value)
	case begins("allow"):
		g.rule(g.escaped(value), &g.allow, true)
	case begins("disallow,dissallow,dissalow,disalow,diasllow,disallaw"):
		g.rule(g.escaped(value), &g.disallow, false)
	}
}

func (g *google) userAgent(value string) {
	if g.rulesIn {
		g.seenOwn, g.seenAll, g.rulesIn = false, false, false
	}
	if value == "*" || len(value) > 1 && value[0] == '*' && strings.IndexByte(" \t\n\v\f\r", value[1]) >= 0 {
		g.seenAll = true
		return
	}
	n := 0
	for n < len(value) && strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_", value[n]) >= 0 {
		n++
	}
	if asciiLower(value[:n]) == asciiLower(g.agent) {
		g.seenOwn, g.everOwn = true, true
	}
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func (g *google) rule(pattern string, of *[2]int, index bool) {
	if !g.seenOwn && !g.seenAll {
		return
	}
	g.rulesIn = true
	kind := 0
	if !g.seenOwn {
		kind = 1
	}
	if g.fits(pattern) {
		of[kind] = max(of[kind], len(pattern))
	} else if i := strings.LastIndexByte(pattern, '/'); index && i >= 0 && strings.HasPrefix(pattern[i:], "/index.htm") {
		g.rule(pattern[:i+1]+"$", of, true)
	}
}

// fits keeps the ends of all beginnings of the path that the pattern matches so far.
func (g *google) fits(pattern string) bool {
	at := []int{0}
	for i := range len(pattern) {
		c := pattern[i]
		switch {
		case c == '$' && i+1 == len(pattern):
			return at[len(at)-1] == len(g.path)
		case c == '*':
			first := at[0]
			at = at[:0]
			for p := first; p <= len(g.path); p++ {
				at = append(at, p)
			}
		default:
			kept := at[:0]
			for _, p := range at {
				if p < len(g.path) && g.path[p] == c {
					kept = append(kept, p+1)
				}
			}
			if at = kept; len(at) == 0 {
				return false
			}
		}
	}
	return true
}

func (g *google) escaped(s string) string {
	const lower, upper, digits = "abcdef", "ABCDEF", "0123456789"
	hex := func(i int) bool { return i < len(s) && strings.IndexByte(digits+lower+upper, s[i]) >= 0 }
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%' && hex(i+1) && hex(i+2):
			b.WriteString(strings.ToUpper(s[i : i+3]))
			i += 2
		case s[i] >= 0x80:
			b.WriteByte('%')
			b.WriteByte((digits + upper)[s[i]>>4])
			b.WriteByte((digits + upper)[s[i]&15])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// What Google's matcher forbids is forbidden. What it allows is allowed, too,
// unless the plain forms of patterns and target say otherwise.
func FuzzGoogle(f *testing.F) {
	for _, c := range googleCases {
		for _, e := range c.want {
			f.Add(c.robots, e.agent, e.url)
		}
	}
	f.Add("user-agent: a\n\rdisallow:/%7ejoe\x00\nallow: /*x$y$ #\n", "A", "/~joe")
	f.Fuzz(func(t *testing.T, body, agent, url string) {
		if len(body) > MaxSize || strings.HasPrefix(body, "\xFF\xFE") || strings.HasPrefix(body, "\xFE\xFF") || strings.ContainsAny(agent, "0123456789.") {
			return
		}
		got, want := Parse([]byte(body), agent), googleAllows(body, agent, url)
		target := Target(url)
		if got.Allowed(target) == want || target == "/robots.txt" {
			return
		}
		if !want || got.plain == nil && isPlain(target) {
			t.Errorf("%q for %q in %q: Google %v", url, agent, body, want)
		}
	})
}
