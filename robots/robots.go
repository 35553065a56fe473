// Package robots reads robots.txt files and answers whether a robot may fetch
// a URL, by RFC 9309 and, where that leaves room, as Google's open-source
// parser does: missing colons and misspelt keys are understood, the longest
// matching rule decides, Allow wins a tie, rules for the robot's own token
// replace those for "*".
//
// Parse compiles the rules of one robot; a check is a scan over few rules, or
// for large files one map access a pattern length, without allocation.
package robots

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// MaxSize is how much of a file is read; RFC 9309 asks for at least 500 KiB.
const MaxSize = 500 << 10

// maxLine is Google's bound on a line: 8 times the longest URL.
const maxLine = 2083 * 8

// File is a robots.txt compiled for one robot. The zero value allows
// everything.
type File struct {
	Sitemaps []string
	// Delay is the Crawl-delay of the robot's group; 0 is none.
	Delay time.Duration

	rules    []rule           // by falling length, Allow before Disallow
	exact    map[string]int32 // wildcard-free pattern -> index in rules, for many rules
	lengths  []int            // of the patterns in exact, falling
	wild     []int32          // indexes of rules with wildcards, where exact is used
	disallow bool             // everything, without a rule
}

// Rule is the line that decided.
type Rule struct {
	Line  int    // counted from 1; 0 is no line: nothing matches
	Text  string // "allow: /x" as compiled
	Allow bool
}

type rule struct {
	pattern string // escaped
	line    int
	allow   bool
	wild    bool
}

// manyRules is from where on looking up is faster than scanning.
const manyRules = 48

// DisallowAll is the file of a host whose robots.txt cannot be had for now
// (5xx, unreachable): nothing may be fetched.
func DisallowAll() *File { return &File{disallow: true} }

// Parse compiles the rules for the robot with the given product token
// ("freshet"). Every sequence of bytes is some file; what is no rule is passed
// over. Bytes beyond MaxSize are ignored.
func Parse(body []byte, token string) *File {
	if len(body) > MaxSize {
		body = body[:MaxSize]
	}
	p := parser{token: token}
	p.parse(body)
	f := &File{Sitemaps: p.sitemaps}
	g := &p.global
	if p.sawSpecific {
		g = &p.specific
	}
	f.rules, f.Delay = g.rules, g.delay
	f.compile()
	return f
}

// Allowed reports whether the path with query (weburl.URL.Target) may be
// fetched. The path is compared as it is: percent-encoded, as URLs come.
func (f *File) Allowed(target string) bool {
	if f.disallow {
		return target == "/robots.txt"
	}
	i := f.match(target)
	return i < 0 || f.rules[i].allow
}

// Decide is Allowed with the rule that decided.
func (f *File) Decide(target string) Rule {
	if f.disallow {
		return Rule{Allow: target == "/robots.txt"}
	}
	i := f.match(target)
	if i < 0 {
		return Rule{Allow: true}
	}
	r := f.rules[i]
	key := "disallow"
	if r.allow {
		key = "allow"
	}
	return Rule{Line: r.line, Text: key + ": " + r.pattern, Allow: r.allow}
}

// group collects the rules of one kind of group.
type group struct {
	rules []rule
	delay time.Duration
}

type parser struct {
	token            string
	specific, global group
	sitemaps         []string
	inSpecific       bool // the group being read is for this robot
	inGlobal         bool // ... for every robot
	sawSpecific      bool
	sawRule          bool // a rule has ended the list of agents
	line             int
}

func (p *parser) parse(b []byte) {
	for i, c := range []byte{0xEF, 0xBB, 0xBF} { // a byte order mark, or the begin of one
		if len(b) == 0 || b[0] != c {
			break
		}
		_ = i
		b = b[1:]
	}
	for len(b) > 0 {
		p.line++
		end := bytes.IndexAny(b, "\r\n")
		line := b
		if end < 0 {
			b = nil
		} else {
			line = b[:end]
			if b[end] == '\r' && end+1 < len(b) && b[end+1] == '\n' {
				end++
			}
			b = b[end+1:]
		}
		if len(line) > maxLine {
			line = line[:maxLine]
		}
		p.readLine(string(line))
	}
}

// readLine takes "key: value # comment"; the colon may be missing where the
// line is two words.
func (p *parser) readLine(line string) {
	line, _, _ = strings.Cut(line, "#")
	line = trim(line)
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		i := strings.IndexAny(line, " \t")
		if i < 0 {
			return
		}
		key, value = line[:i], trim(line[i:])
		if strings.ContainsAny(value, " \t") {
			return
		}
	}
	key, value = trim(key), trim(value)
	if key == "" {
		return
	}
	switch kindOf(key) {
	case "user-agent":
		p.agent(value)
	case "allow":
		p.rule(value, true)
	case "disallow":
		p.rule(value, false)
	case "crawl-delay":
		p.delay(value)
	case "sitemap":
		if value != "" {
			p.sitemaps = append(p.sitemaps, value)
		}
	}
}

// trim drops ASCII white space at both ends, as Google's parser does.
func trim(s string) string { return strings.Trim(s, " \t\n\v\f\r\x00") }

// kindOf understands a key and its common misspellings.
func kindOf(key string) string {
	lower := strings.ToLower(key)
	switch {
	case strings.HasPrefix(lower, "user-agent"), strings.HasPrefix(lower, "useragent"), strings.HasPrefix(lower, "user agent"):
		return "user-agent"
	case strings.HasPrefix(lower, "allow"):
		return "allow"
	case strings.HasPrefix(lower, "disallow"), strings.HasPrefix(lower, "dissallow"), strings.HasPrefix(lower, "dissalow"),
		strings.HasPrefix(lower, "disalow"), strings.HasPrefix(lower, "diasllow"), strings.HasPrefix(lower, "disallaw"):
		return "disallow"
	case strings.HasPrefix(lower, "sitemap"), strings.HasPrefix(lower, "site-map"):
		return "sitemap"
	case lower == "crawl-delay", lower == "crawldelay":
		return "crawl-delay"
	}
	return ""
}

func (p *parser) agent(value string) {
	if p.sawRule {
		p.inSpecific, p.inGlobal, p.sawRule = false, false, false
	}
	if value != "" && value[0] == '*' && (len(value) == 1 || value[1] == ' ' || value[1] == '\t') {
		p.inGlobal = true
		return
	}
	if name := Token(value); name != "" && strings.EqualFold(name, p.token) {
		p.inSpecific, p.sawSpecific = true, true
	}
}

// Token returns the product token at the begin of a user agent: letters,
// underscores and hyphens.
func Token(agent string) string {
	for i := range len(agent) {
		c := agent[i]
		if c != '-' && c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return agent[:i]
		}
	}
	return agent
}

func (p *parser) rule(value string, allow bool) {
	if !p.inSpecific && !p.inGlobal {
		return // a rule before any agent
	}
	p.sawRule = true
	pattern := escape(value)
	if pattern == "" {
		return // "Disallow:" allows what is allowed anyway
	}
	p.add(rule{pattern: pattern, line: p.line, allow: allow, wild: strings.ContainsAny(pattern, "*$")})
	if !allow {
		return
	}
	// Allow: /dir/index.html allows /dir/ itself.
	if slash := strings.LastIndexByte(pattern, '/'); slash >= 0 && strings.HasPrefix(pattern[slash:], "/index.htm") {
		p.add(rule{pattern: pattern[:slash+1] + "$", line: p.line, allow: true, wild: true})
	}
}

func (p *parser) add(r rule) {
	if p.inSpecific {
		p.specific.rules = append(p.specific.rules, r)
	}
	if p.inGlobal {
		p.global.rules = append(p.global.rules, r)
	}
}

// maxDelay bounds Crawl-delay: a larger number is a mistake or a trap.
const maxDelay = time.Hour

func (p *parser) delay(value string) {
	s, err := strconv.ParseFloat(strings.ReplaceAll(value, ",", "."), 64)
	if err != nil || !(s > 0) {
		return
	}
	d := maxDelay
	if s < maxDelay.Seconds() {
		d = time.Duration(s * float64(time.Second))
	}
	if p.inSpecific {
		p.specific.delay = d
	}
	if p.inGlobal {
		p.global.delay = d
	}
}

// escape percent-encodes bytes beyond ASCII and makes hexadecimal digits upper
// case, so that patterns compare with URLs in standard form.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	need := false
	for i := range len(s) {
		if s[i] >= 0x80 || s[i] == '%' {
			need = true
			break
		}
	}
	if !need {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b.WriteString(strings.ToUpper(s[i : i+3]))
			i += 2
		case c >= 0x80:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
