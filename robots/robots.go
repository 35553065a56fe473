// Package robots reads robots.txt files and answers whether a robot may fetch
// a URL, by RFC 9309 and, where that leaves room, as Google's open-source
// parser does: missing colons and misspelt keys are understood, the longest
// matching rule decides, Allow wins a tie, rules for the robot's own token
// replace those for "*".
//
// In one point the two disagree: for RFC 9309 (section 2.2.2) an escaped letter
// is that letter, Google compares what is written. A URL is allowed if it is by
// both readings.
//
// Parse compiles the rules of one robot; a check is a scan over few rules, or
// for large files one map access a pattern length, without allocation.
package robots

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// MaxSize is how much of a file is read; RFC 9309 asks for at least 500 KiB.
const MaxSize = 500 << 10

// maxLine is Google's bound on a line, 8 times the longest URL with a closing
// NUL; what is beyond is ignored.
const maxLine = 2083*8 - 1

// File is a robots.txt compiled for one robot. The zero value allows
// everything.
type File struct {
	Sitemaps []string
	// Delay is the Crawl-delay of the robot's group; 0 is none.
	Delay time.Duration

	written  rules  // with patterns as they are written
	plain    *rules // with patterns in plain form; nil if that is no other
	disallow bool   // everything, without a rule
}

// Rule is the line that decided.
type Rule struct {
	Line  int    // counted from 1; 0 is no line: nothing matches
	Text  string // "allow: /x"
	Allow bool
}

type rule struct {
	text    string // as it is in the file
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
	p := parser{token: token}
	p.parseLines(truncateFile(utf8Of(body)))
	f := &File{Sitemaps: p.sitemaps}
	g := &p.global
	if p.sawSpecific {
		g = &p.specific
	}
	f.Delay = g.delay
	f.written.compileRules(g.rules)
	if list, other := plainRules(g.rules); other {
		f.plain = new(rules)
		f.plain.compileRules(list)
	}
	return f
}

// truncateFile bounds a file. The line that the bound cuts in two is no rule.
func truncateFile(body []byte) []byte {
	if len(body) <= MaxSize {
		return body
	}
	body = body[:MaxSize]
	return body[:bytes.LastIndexAny(body, "\r\n")+1]
}

// utf8Of decodes a file in UTF-16 that says so by its byte order mark. RFC 9309
// knows UTF-8 only; but what such a file forbids is plain enough.
func utf8Of(body []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(body, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case bytes.HasPrefix(body, []byte{0xFE, 0xFF}):
		order = binary.BigEndian
	default:
		return body
	}
	body = body[:min(len(body), 2*MaxSize)]
	units := make([]uint16, 0, len(body)/2)
	for i := 2; i+1 < len(body); i += 2 {
		units = append(units, order.Uint16(body[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}

// Allowed reports whether the path with query (weburl.URL.Target) may be
// fetched.
func (f *File) Allowed(target string) bool {
	return f.decidingRule(target).allow
}

// Decide is Allowed with the rule that decided.
func (f *File) Decide(target string) Rule {
	r := f.decidingRule(target)
	switch {
	case r.line == 0:
		return Rule{Allow: r.allow}
	case r.allow:
		return Rule{r.line, "allow: " + r.text, true}
	}
	return Rule{r.line, "disallow: " + r.text, false}
}

var (
	noRule  = &rule{allow: true}
	nothing = &rule{}
)

// decidingRule returns the rule that decides; one of line 0 is of no file.
func (f *File) decidingRule(target string) *rule {
	switch {
	case target == "/robots.txt": // implicitly (RFC 9309, section 2.2.2)
		return noRule
	case f.disallow:
		return nothing
	}
	r := f.written.matchRule(target)
	if !r.allow || f.plain == nil && isPlain(target) {
		return r
	}
	second := f.plain
	if second == nil {
		second = &f.written
	}
	if p := second.matchRule(plainForm(target, "*$")); !p.allow || r == noRule {
		return p
	}
	return r
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

func (p *parser) parseLines(b []byte) {
	for _, c := range []byte{0xEF, 0xBB, 0xBF} { // a byte order mark, or the begin of one
		if len(b) == 0 || b[0] != c {
			break
		}
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
// line is two words. A NUL ends a line as # does, as in Google's parser.
func (p *parser) readLine(line string) {
	if i := strings.IndexAny(line, "#\x00"); i >= 0 {
		line = line[:i]
	}
	line = trimASCIISpace(line)
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		i := strings.IndexAny(line, " \t")
		if i < 0 {
			return
		}
		key, value = line[:i], trimASCIISpace(line[i:])
		if strings.ContainsAny(value, " \t") {
			return
		}
	}
	key, value = trimASCIISpace(key), trimASCIISpace(value)
	if key == "" {
		return
	}
	switch kindOfKey(key) {
	case "user-agent":
		p.parseAgent(value)
	case "allow":
		p.parseRule(value, true)
	case "disallow":
		p.parseRule(value, false)
	case "crawl-delay":
		p.parseDelay(value)
	case "sitemap":
		if value != "" && !slices.Contains(p.sitemaps[max(0, len(p.sitemaps)-100):], value) {
			p.sitemaps = append(p.sitemaps, value)
		}
	}
}

// trimASCIISpace drops ASCII white space at both ends, as Google's parser does.
func trimASCIISpace(s string) string { return strings.Trim(s, " \t\n\v\f\r") }

// kindOfKey understands a key and its common misspellings.
func kindOfKey(key string) string {
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

func (p *parser) parseAgent(value string) {
	if p.sawRule {
		p.inSpecific, p.inGlobal, p.sawRule = false, false, false
	}
	if value != "" && value[0] == '*' && (len(value) == 1 || trimASCIISpace(value[1:2]) == "") {
		p.inGlobal = true
		return
	}
	if p.namesThisRobot(value) {
		p.inSpecific, p.sawSpecific = true, true
	}
}

// namesThisRobot reports whether a user-agent line is for this robot: by its product token,
// or by its first word if our name, against RFC 9309, has digits or dots.
func (p *parser) namesThisRobot(value string) bool {
	// The lengths tell letters apart that Unicode folds into ASCII.
	same := func(name string) bool { return len(name) == len(p.token) && strings.EqualFold(name, p.token) }
	if same(Token(value)) {
		return true
	}
	if i := strings.IndexAny(value, " \t/"); i >= 0 {
		value = value[:i]
	}
	return same(value) && strings.Trim(p.token, tokenChars+"0123456789.") == ""
}

const tokenChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

// Token returns the product token at the begin of a user agent: letters,
// underscores and hyphens.
func Token(agent string) string {
	return agent[:len(agent)-len(strings.TrimLeft(agent, tokenChars))]
}

func (p *parser) parseRule(value string, allow bool) {
	if !p.inSpecific && !p.inGlobal {
		return // a rule before any agent
	}
	p.sawRule = true
	pattern := escapePattern(value)
	if pattern == "" {
		return // "Disallow:" allows what is allowed anyway
	}
	p.addRule(rule{text: value, pattern: pattern, line: p.line, allow: allow, wild: strings.ContainsAny(pattern, "*$")})
	if !allow {
		return
	}
	// Allow: /dir/index.html allows /dir/ itself.
	if slash := strings.LastIndexByte(pattern, '/'); slash >= 0 && strings.HasPrefix(pattern[slash:], "/index.htm") {
		p.addRule(rule{text: value, pattern: pattern[:slash+1] + "$", line: p.line, allow: true, wild: true})
	}
}

func (p *parser) addRule(r rule) {
	if p.inSpecific {
		p.specific.rules = append(p.specific.rules, r)
	}
	if p.inGlobal {
		p.global.rules = append(p.global.rules, r)
	}
}

// maxDelay bounds Crawl-delay: a larger number is a mistake or a trap.
const maxDelay = time.Hour

func (p *parser) parseDelay(value string) {
	s, err := strconv.ParseFloat(strings.ReplaceAll(value, ",", "."), 64)
	if err != nil || !(s > 0) {
		return
	}
	d := maxDelay
	if s < maxDelay.Seconds() {
		d = time.Duration(s * float64(time.Second))
	}
	if p.inSpecific {
		p.specific.delay = max(p.specific.delay, d)
	}
	if p.inGlobal {
		p.global.delay = max(p.global.delay, d)
	}
}
