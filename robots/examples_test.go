package robots

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Files from the wild and from the RFC, each with what it says. Line endings are part
// of them.
func TestExamples(t *testing.T) {
	t.Parallel()
	unused := map[string]bool{}
	entries, err := os.ReadDir("testdata/examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		unused[e.Name()] = true
	}
	for _, tt := range examples() {
		delete(unused, tt.file)
		checkExample(t, tt)
	}
	for name := range unused {
		t.Errorf("%s has no expectation", name)
	}
}

// example is what one file says to an agent: says lists URLs with + if they are
// allowed and - if not.
type example struct {
	file, agent, says string
	delay             time.Duration
	sitemaps          string // "*": not compared
}

func checkExample(t *testing.T, tt example) {
	t.Helper()
	b, err := os.ReadFile("testdata/examples/" + tt.file)
	if err != nil {
		t.Fatal(err)
	}
	f := Parse(b, tt.agent)
	for _, v := range says(tt.agent, tt.says) {
		if got := f.Allowed(v.url); got != v.allowed {
			t.Errorf("%s: %s allowed for %s: got %v, want %v", tt.file, v.url, tt.agent, got, v.allowed)
		}
	}
	if f.Delay != tt.delay {
		t.Errorf("%s: delay for %s: got %v, want %v", tt.file, tt.agent, f.Delay, tt.delay)
	}
	if got := strings.Join(f.Sitemaps, " "); got != tt.sitemaps && tt.sitemaps != "*" {
		t.Errorf("%s: sitemaps: got %s, want %s", tt.file, got, tt.sitemaps)
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(f.Sitemaps))); len(unique) != len(f.Sitemaps) {
		t.Errorf("%s: sitemaps: got %q, want each once", tt.file, f.Sitemaps)
	}
}

func examples() []example {
	const newsweek = "-/login.aspx -/profile/x -/a/output/print +/ +/news"
	return []example{
		{"astore.amazon.com-robots.txt", "bot", "+/ +/x", 5 * time.Second, ""},
		{"crawl-delay-group-merging.txt", "mybot", "-/private/ +/login/ +/", 10 * time.Second, ""},
		{"crawl-delay-group-merging.txt", "yourbot", "-/private/ -/login/ +/", 0, ""},
		{"crawl-delay-group-merging.txt", "otherbot", "+/private/ +/login/ +/", 30 * time.Second, ""},
		{"directive-typos-robots.txt", "bot1", "+/desallow/ -/dissalow/", 0, ""},
		{"directive-typos-robots.txt", "bot2", "-/useragent/ -/useg-agent/ +/dissalow/", 0, ""}, // "useg-agent" is no key, so the rule is of the group before it
		{"directive-typos-robots.txt", "bot3", "+/useragent/ +/useg-agent/", 0, ""},
		{"directive-typos-robots.txt", "bot4", "-/useragent-no-colon/ +/useragent/", 0, ""},
		{"dos-line-endings.txt", "bot", "+/", time.Second, ""},
		{"extended-standard-robots.txt", "bot1", "+/", 0, ""},
		{"extended-standard-robots.txt", "bot4", "+/", 0, ""},
		{"extension-robots.txt", "mybot", "-/private/ +/secret/ +/admin/", 0, "/sitemap.xml"},
		{"extension-robots.txt", "otherbot", "+/private/ -/admin/", 0, "/sitemap.xml"},
		{"extension-robots.txt", "anybot", "+/private/ +/admin/", 0, "/sitemap.xml"},
		{"extensions-group-merging.txt", "mybot", "-/private/ -/login/ +/", 0, ""},
		{"extensions-group-merging.txt", "yourbot", "-/private/ -/login/ +/", 0, ""},
		{"extensions-group-merging.txt", "otherbot", "-/private/ -/ +/llms.txt", 0, ""},
		{"format-errors-robots.txt", "bot1", "-/whitespace-before-colon/ -/no-colon/ +/x", 0, "/sitemap.xml"},
		{"format-errors-robots.txt", "bot2", "-/no-colon-useragent/ +/x", 0, "/sitemap.xml"},
		{"format-errors-robots.txt", "bot3", "+/whitespace-before-colon -/x", 0, "/sitemap.xml"},
		{"malformed-path.txt", "bot", "-/wiki/Wikipedia_talk:Mediation_Committee/ -/wiki/Wikipedia_talk%3Mediation_Committee/ +/wiki/Wikipedia_talk:", 0, ""},
		{"many-user-agents.txt", "alexibot", "-/ -/x", 0, ""},
		{"many-user-agents.txt", "outfoxbot", "-/", 0, ""},
		{"many-user-agents.txt", "freshet", "+/ -/bot-trap/ -/lang/de/icons/x +/lang/de/", 0, ""},
		{"merge-rules.txt", "wget", "+/foo/bar -/tmp/bar +/ckh/bar +/x", 0, ""},
		{"merge-rules.txt", "curl", "-/ckh/bar", 0, ""},
		{"merge-rules.txt", "bot", "-/foo/bar -/tmp/bar +/ckh/bar", 0, ""},
		{"precedence-of-rules.txt", "testy", "-/foo -/foo/b +/foo/bar -/foo/buzz +/x", 0, ""}, // a tie of /foo/b* and /foo/bar
		{"precedence-of-rules.txt", "wget", "+/ -/x +/foo +/index.html", 0, ""},
		{"relative-sitemap-robots.txt", "bot", "-/cache/ +/", 0, "/sitemap.xml"},
		{"rfc9309-example-longest-match-robots.txt", "foobot", "-/example/page/disallowed.gif +/example/page/ +/x", 0, ""},
		{"rfc9309-example-rule-group-merging.txt", "ExampleBot", "-/foo -/bar -/baz +/x", 0, ""},
		{"rfc9309-example-rule-group-merging.txt", "BazBot", "+/foo +/bar -/baz", 0, ""},
		{"rfc9309-example-rule-group-merging.txt", "bot", "-/foo -/bar +/baz", 0, ""},
		{"rfc9309-example-simple-robots.txt", "foobot", "+/example/page.html +/example/allowed.gif -/example/ -/", 0, ""},
		{"rfc9309-example-simple-robots.txt", "barbot", "-/example/page.html +/example/allowed.gif +/x", 0, ""},
		{"rfc9309-example-simple-robots.txt", "BAZBOT", "-/example/page.html +/x.gif", 0, ""},
		{"rfc9309-example-simple-robots.txt", "quxbot", "+/example/page.html +/example/allowed.gif +/", 0, ""},
		{"rfc9309-example-simple-robots.txt", "bot", "-/a.gif +/a.gif?x -/example/page.html +/publications/ +/publications/a.gif +/", 0, ""},
		{"robots-with-utf16be-bom.txt", "bot", newsweek, 0, "http://www.newsweek.com/sitemap_index.xml"},
		{"robots-with-utf16le-bom.txt", "bot", newsweek, 0, "http://www.newsweek.com/sitemap_index.xml"},
		{"robots-with-utf8-bom.txt", "bot", newsweek, 0, "http://www.newsweek.com/sitemap_index.xml"},
		{"sitemap-robots-dedup.txt", "bot", "+/", 0, "http://example.org/sitemap.xml"},
		{"sitemap-robots.txt", "bot", "+/", 0, "http://domain.com/sitemap.xml http://domain.com/dir/MixedCased-sitemap.xml"},
		{"twitter.com-robots.txt", "googlebot", "-/x?y -/a/with_friends +/x", 0, ""},
		{"twitter.com-robots.txt", "slurp", "-/x?y +/x", time.Second, ""},
		{"twitter.com-robots.txt", "msnbot", "-/x?y +/x", 10 * time.Second, ""},
		{"twitter.com-robots.txt", "bot", "-/x?y +/x", 0, ""},
		{"wildcards.txt", "bot", "+/wishlist/universal1 -/wishlist/x -/gp/registry/wishlist/a/reserve -/x/gcrnsts +/x -/gp/cart/view.html", 0, "*"},
		{"wildcards.txt", "googlebot", "-/rss/people/a/reviews +/rss/people/reviews -/x/sim/B001132UEE", 0, "*"},
		{"wildcards.txt", "etaospider", "-/x", 0, "*"},
		{"www.flot.com-robots.txt", "bot", "-/bitrix/ -/img/x +/", 0, "http://flot.com/sitemap_index.xml"},
	}
}
