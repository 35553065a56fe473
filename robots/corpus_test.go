package robots

import (
	"strings"
	"testing"
)

type googleCase struct {
	name, robots string
	want         []verdict
}

// verdict is one expectation.
type verdict struct {
	agent, url string
	allowed    bool
}

// says makes expectations of "agent +url -url ...": + is allowed.
func says(agent, list string) []verdict {
	var out []verdict
	for f := range strings.FieldsSeq(list) {
		out = append(out, verdict{agent, f[1:], f[0] == '+'})
	}
	return out
}

var (
	longA = "/x/" + strings.Repeat("a", 2083*8-len("/x/")-len("disallow: ")+1-3)
	longB = "/x/" + strings.Repeat("b", 2083*8-len("/x/")-len("allow: ")+1-3)
)

// googleCases are expectations of Google's unit tests, of the tables of its public
// documentation, and of RFC 9309, in our words.
var googleCases = []googleCase{
	{"typos of disallow", "user-agent: a\ndissallow: /1\ndissalow: /2\ndisalow: /3\ndiasllow: /4\ndisallaw: /5\ndisallo: /6\ndesallow: /7", says("a", "-/1 -/2 -/3 -/4 -/5 +/6 +/7")},
	{"typos of user-agent", "useragent: a\nuser agent: b\nuser-agents: c\nuseragent d\nusr-agent: e\ndisallow: /", append(append(append(append(says("a", "-/"), says("b", "-/")...), says("c", "-/")...), says("d", "-/")...), says("e", "+/")...)},
	{"no colon, three words", "user-agent a\ndisallow /x\ndisallow /y z", says("a", "-/x +/y")},
	{"colon with blanks, tabs between", "user-agent : a\ndisallow\t:\t/x\ndisallow\t/y", says("a", "-/x -/y")},
	{"key with more behind it", "user-agent: a\ndisallowed: /x\nallowance: /x/y", says("a", "-/x +/x/y")},
	{"white space at both ends", " \v\fuser-agent: a\f\n \t disallow: /x\v \r\n", says("a", "-/x")},
	{"a blank inside a path", "user-agent: a\ndisallow: /a b", []verdict{{"a", "/a", true}, {"a", "/a b", false}, {"a", "/a%20b", true}}},
	{"NUL ends a line", "user-agent: a\ndisallow: /x\x00y\n\x00disallow: /z", says("a", "-/x +/z -/xy")},
	{"sitemap and unknown lines close no group", "user-agent: a\nsitemap: https://h/s\nhost: h\ncrawl-delay: 1\nuser-agent: *\ndisallow: /", append(says("a", "-/"), says("b", "-/")...)},
	{"an empty rule closes a group", "user-agent: a\ndisallow:\nuser-agent: b\ndisallow: /", append(says("a", "+/"), says("b", "-/")...)},
	{"empty lines close no group", "user-agent: a\n\n\nuser-agent: b\n\ndisallow: /\n\ndisallow: /x", append(says("a", "-/"), says("b", "-/x")...)},
	{"rules outside groups", "disallow: /x\nuser-agent: a\nallow: /y", says("a", "+/x")},
	{"groups of one agent merge", "user-agent: a\ndisallow: /1\nuser-agent: b\ndisallow: /2\nuser-agent: A\ndisallow: /3", append(says("a", "-/1 +/2 -/3"), says("b", "+/1 -/2 +/3")...)},
	{"groups of all merge", "user-agent: *\ndisallow: /1\nuser-agent: b\ndisallow: /2\nuser-agent: *\ndisallow: /3", says("a", "-/1 +/2 -/3")},
	{"own group without rules", "user-agent: *\ndisallow: /\nuser-agent: a", append(says("a", "+/"), says("b", "-/")...)},
	{"own group with an empty rule", "user-agent: *\ndisallow: /\n\nuser-agent: a\ndisallow:", append(says("a", "+/"), says("b", "-/")...)},
	{"all and more words", "user-agent: * bot\ndisallow: /x\nuser-agent: *bot\ndisallow: /y", says("a", "-/x +/y")},
	{"names end at the first other character", "user-agent: foo/1.0\ndisallow: /1\nuser-agent: foo bar\ndisallow: /2\nuser-agent: foo_bar-x!\ndisallow: /3\nuser-agent: foo12\ndisallow: /4", append(says("FOO", "-/1 -/2 +/3 -/4"), says("foo_bar-x", "-/3 +/1")...)},
	{"a prefix of a name with digits", "user-agent: foo\ndisallow: /x", says("foo12", "+/x")},
	{"a name that is no token matches nothing", "user-agent: foo bar\ndisallow: /", append(says("foo bar", "+/"), says("foo/2.1", "+/")...)},
	{"a prefix is another name", "user-agent: googlebot\ndisallow: /x\nuser-agent: googlebot-news\ndisallow: /y", append(says("googlebot-news", "+/x -/y"), says("google", "+/x")...)},
	{"paths heed case", "user-agent: a\ndisallow: /X/", says("a", "+/x/y -/X/y")},
	{"longest match", "user-agent: a\ndisallow: /x/page.html\nallow: /x/", says("a", "-http://foo.bar/x/page.html +/x/page")},
	{"longest match, turned", "user-agent: a\nallow: /x/page.html\ndisallow: /x/", says("a", "+/x/page.html -/x/")},
	{"both empty", "user-agent: a\ndisallow:\nallow:", says("a", "+/x/page.html")},
	{"tie", "user-agent: a\ndisallow: /\nallow: /", says("a", "+/x")},
	{"wildcards count as octets", "user-agent: a\nallow: /page\ndisallow: /*.html", says("a", "-/page.html +/page")},
	{"wildcards count as octets, turned", "user-agent: a\nallow: /x/page.\ndisallow: /*.html", says("a", "+/x/page.html -/x/y.html")},
	{"escapes count as octets", "user-agent: a\nallow: /ž\ndisallow: /%C5%", says("a", "+/%C5%BE -/%C5%A0")},
	{"query with a URL", "User-agent: a\nDisallow: /\nAllow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par", says("a", "+http://foo.bar/foo/bar?qux=taz&baz=http://foo.bar?tar&par")},
	{"three bytes", "User-agent: a\nDisallow: /\nAllow: /foo/bar/ツ", says("a", "+/foo/bar/%E3%83%84 -/foo/bar/ツ -/foo/bar/%e3%83%84")},
	{"three bytes, lower-case escapes", "User-agent: a\nDisallow: /\nAllow: /foo/bar/%e3%83%84", says("a", "+/foo/bar/%E3%83%84")},
	{"escaped letters are not taken for letters that are allowed", "User-agent: a\nDisallow: /\nAllow: /foo/bar/%62%61%7A", says("a", "-/foo/bar/baz +/foo/bar/%62%61%7A")},
	{"special characters", "User-agent: a\nDisallow: /foo/bar/quz\nAllow: /foo/*/qux", says("a", "-/foo/bar/quz +/foo/quz +/foo//quz +/foo/bax/quz")},
	{"end of a pattern", "User-agent: a\nDisallow: /foo/bar$\nAllow: /foo/bar/qux", says("a", "-/foo/bar +/foo/bar/qux +/foo/bar/ +/foo/bar/baz +/foo/bar?x")},
	{"comments", "User-agent: a\n# Disallow: /\nDisallow: /foo/quz#qux\nAllow: /", says("a", "+/foo/bar -/foo/quz")},
	{"two dollars", "user-agent: a\ndisallow: /x$$", says("a", "-/x$ +/x +/x$$")},
	{"star and dollar alone", "user-agent: a\ndisallow: *\nallow: /ok$\nuser-agent: b\ndisallow: $\nuser-agent: c\ndisallow: *$", append(append(says("a", "-/ +/ok -/okay"), says("b", "+/")...), says("c", "-/x")...)},
	{"many stars", "user-agent: a\ndisallow: /**a***b$", says("a", "-/ab -/xaxb +/ba +/abx")},
	{"star after the end", "user-agent: a\ndisallow: /x*$\nallow: /x", says("a", "-/xy -/x")},
	{"a pattern without slash", "user-agent: a\ndisallow: x\nallow: ?", says("a", "+/x +/?x")},
	{"index.html stands for its folder", "User-Agent: *\nAllow: /allowed-slash/index.html\nDisallow: /", says("foobot", "+/allowed-slash/ -/allowed-slash/index.htm +/allowed-slash/index.html -/anyother-url -/allowed-slash/x")},
	{"index.htm and what begins so", "User-Agent: *\nAllow: /1/index.htm\nAllow: /2/index.html5\nAllow: /*/3/index.html\nDisallow: /", says("a", "+/1/ +/1/index.html +/2/ -/2/index.html +/x/3/ -/3/")},
	{"index.html forbids only itself", "User-Agent: *\nDisallow: /d/index.html", says("a", "+/d/ -/d/index.html")},
	{"a line too long", "user-agent: a\ndisallow: " + longA + "/qux\n", says("a", "+/fux -"+longA+"/fux")},
	{"a line too long, allow", "user-agent: a\ndisallow: /\nallow: " + longB + "/qux\n", says("a", "-/ +"+longB+"/qux +"+longB+"/fux")},
	{"/fish", "user-agent: a\ndisallow: /\nallow: /fish", says("a", "-/bar +/fish +/fish.html +/fish/salmon.html +/fishheads +/fishheads/yummy.html +/fish.html?id=anything -/Fish.asp -/catfish -/?id=fish")},
	{"/fish*", "user-agent: a\ndisallow: /\nallow: /fish*", says("a", "-/bar +/fish +/fish.html +/fish/salmon.html +/fishheads +/fishheads/yummy.html +/fish.html?id=anything -/Fish.bar -/catfish -/?id=fish")},
	{"/fish/", "user-agent: a\ndisallow: /\nallow: /fish/", says("a", "-/bar +/fish/ +/fish/salmon +/fish/?salmon +/fish/salmon.html +/fish/?id=anything -/fish -/fish.html -/Fish/Salmon.html -/animals/fish/")},
	{"/*.php", "user-agent: a\ndisallow: /\nallow: /*.php", says("a", "-/bar +/filename.php +/folder/filename.php +/folder/filename.php?parameters +//folder/any.php.file.html +/filename.php/ +/index?f=filename.php/ -/php/ -/index?php -/windows.PHP")},
	{"/*.php$", "user-agent: a\ndisallow: /\nallow: /*.php$", says("a", "-/bar +/filename.php +/folder/filename.php -/filename.php?parameters -/filename.php/ -/filename.php5 -/php/ -/filename?php -/aaaphpaaa -//windows.PHP")},
	{"/fish*.php", "user-agent: a\ndisallow: /\nallow: /fish*.php", says("a", "-/bar +/fish.php +/fishheads/catfish.php?parameters -/Fish.PHP")},
	{"precedence: /p", "user-agent: a\nallow: /p\ndisallow: /", says("a", "+http://example.com/page")},
	{"precedence: /folder", "user-agent: a\nallow: /folder\ndisallow: /folder", says("a", "+http://example.com/folder/page")},
	{"precedence: /*.htm", "user-agent: a\nallow: /page\ndisallow: /*.htm", says("a", "-http://example.com/page.htm")},
	{"precedence: /*.ph", "user-agent: a\nallow: /page\ndisallow: /*.ph", says("a", "+http://example.com/page.php5")},
	{"precedence: /$", "user-agent: a\nallow: /$\ndisallow: /", says("a", "+http://example.com/ -http://example.com/page.htm +http://example.com +http://example.com#a/b")},
	{"documentation: most specific group", "user-agent: googlebot-news\ndisallow: /1\n\nuser-agent: *\ndisallow: /2\n\nuser-agent: googlebot\ndisallow: /3", append(append(says("googlebot-news", "-/1 +/2 +/3"), says("googlebot", "+/1 +/2 -/3")...), says("otherbot", "+/1 -/2 +/3")...)},
	{"documentation: grouping", "user-agent: a\nuser-agent: b\ndisallow: /c\n\nuser-agent: e\nuser-agent: f\ndisallow: /g\n\nuser-agent: h\n", append(append(says("a", "-/c +/g"), says("f", "+/c -/g")...), says("h", "+/c +/g")...)},
	{"path parameters", "user-agent: a\ndisallow: /;p\nallow: /a;", says("a", "-http://h;p -http://h/;p +http://h/a;p")},
	{"what a URL's path is", "user-agent: a\ndisallow: /a", says("a", "-h.example/a -//h.example/a -http://h.example/a?u=http://x/b +http://h.example?/a +http://h.example//a")},
	{"only the first mark counts", "\xEF\xBB\xBF\xEF\xBB\xBFuser-agent: a\ndisallow: /", says("a", "+/")},
	{"returns alone, mixed", "user-agent: a\rdisallow: /1\n\rdisallow: /2\r\n\r\ndisallow: /3", says("a", "-/1 -/2 -/3")},
}

func TestGoogleCases(t *testing.T) {
	t.Parallel()
	n := 0
	for _, c := range googleCases {
		for _, e := range c.want {
			n++
			f := Parse([]byte(c.robots), e.agent)
			if got := f.Allowed(Target(e.url)); got != e.allowed {
				t.Errorf("%s: %s for %s: %v", c.name, e.url, e.agent, got)
			}
			if got := googleAllows(c.robots, e.agent, e.url); got != e.allowed {
				t.Errorf("%s: %s for %s: %v by Google's way", c.name, e.url, e.agent, got)
			}
		}
	}
	if n < 200 {
		t.Errorf("only %d expectations", n)
	}
}

// RFC 9309, sections 2.2.2 and 2.2.3: what compares as equal. Google compares what is
// written, and allows all of these.
func TestEscapesOfRFC(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rules, target string
		allowed       bool
	}{
		{"disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", false},
		{"disallow: /foo/bar/baz", "/foo/bar/%62%61%7a", false},
		{"disallow: /foo/bar/ツ", "/foo/bar/ツ", false},
		{"disallow: /foo/bar/ツ", "/foo/bar/%e3%83%84", false},
		{"disallow: /foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", false},
		{"disallow: /foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", false},
		{"disallow: /foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https://foo.bar", false},
		{"disallow: /a%2Fb", "/a/b", true},
		{"disallow: /a/b", "/a%2Fb", true},
		{"disallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html", false},
		{"disallow: /path/file-with-a-%2A.html", "/path/file-with-a-x.html", true},
		{"disallow: /path/foo-%24", "/path/foo-$", false},
		{"disallow: /path/foo-%24", "/path/foo-", true},
		{"disallow: /a$b", "/a%24b", false},
		{"disallow: /a*b$", "/a%2Ab", false},
		{"disallow: /%7Ejoe/\nallow: /%7Ejoe/public", "/~joe/public", true},
		{"disallow: /%7Ejoe/\nallow: /%7Ejoe/public", "/~joe/x", false},
		{"disallow: /%zz%7", "/%zz%7", false},
		{"disallow: /", "/robots.txt", true},
		{"disallow: /", "/robots.txt/", false},
	}
	for _, tt := range tests {
		f := Parse([]byte("user-agent: *\n"+tt.rules), "bot")
		if d := f.Decide(tt.target); d.Allow != tt.allowed || f.Allowed(tt.target) != tt.allowed || !d.Allow && d.Line == 0 {
			t.Errorf("%s with %s: %+v", tt.target, tt.rules, d)
		}
	}
}

// The bounds of RFC 9309, section 2.5, and of ours.
func TestSize(t *testing.T) {
	t.Parallel()
	head := "user-agent: *\ndisallow: /x\n"
	rule := "disallow: /y/z"
	fill := strings.Repeat("#\n", (MaxSize-len(head)-len(rule))/2)
	for _, tt := range []struct {
		file, target string
		want         bool
	}{
		{head + fill + rule, "/y/z", false},            // 500 KiB or a byte less
		{head + fill + "#\n#\n" + rule, "/y/z", true},  // beyond
		{head + fill + "#\n#\n" + rule, "/x", false},   // what is before it holds
		{head + fill + "\n\n" + rule, "/y", true},      // half a rule is none
		{strings.Repeat("#\n", MaxSize), "/", true},    // nothing in it
		{strings.Repeat("\x00", 2*MaxSize), "/", true}, // one line, cut
	} {
		if got := Parse([]byte(tt.file), "bot").Allowed(tt.target); got != tt.want {
			t.Errorf("%d bytes, %s: %v", len(tt.file), tt.target, got)
		}
	}
}
