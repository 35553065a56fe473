package behaviour

// Kind is a behaviour that a configuration may name.
type Kind struct {
	Name string
	Doc  string
	make func() module
}

// module is a behaviour with options.
type module interface {
	Behaviour
	checkOptions() error
	setSalt(uint64)
}

// Kinds returns all behaviours, in the order in which they are applied: first
// what changes the pages, then what stands in their place, then what happens on
// the way; what comes later wins.
func Kinds() []Kind {
	return []Kind{
		{"mirror", "hosts that repeat the text of others", func() module { return newMirror() }},
		{"neardup", "pages that repeat others of their host to a known degree", func() module { return newNearDuplicate() }},
		{"canonical", "canonical addresses, and links with parameters that change nothing", func() module { return newCanonical() }},
		{"nofollow", "links and pages not to be followed", func() module { return newNoFollow() }},
		{"jslinks", "links built by JavaScript", func() module { return newJSLinks() }},
		{"session", "session numbers in all links", func() module { return newSession() }},
		{"calendar", "endless calendars", func() module { return newCalendar() }},
		{"depth", "endless folders", func() module { return newDepth() }},
		{"deadlinks", "links to documents that do not exist", func() module { return newDeadLinks() }},
		{"charset", "header, meta and bytes that disagree on the charset", func() module { return newCharset() }},
		{"validators", "lying or missing ETag and Last-Modified", func() module { return newValidators() }},
		{"robots", "robots.txt of all sorts, and links into the forbidden part", func() module { return newRobotsTxt() }},
		{"sitemap", "sitemaps with honest and lying dates", func() module { return newSitemap() }},
		{"bomb", "gzip bombs", func() module { return newBomb() }},
		{"redirect", "chains and loops of redirects", func() module { return newRedirect() }},
		{"errors", "4xx and 5xx", func() module { return newFailures() }},
		{"soft404", "200 for what does not exist", func() module { return newSoft404() }},
		{"ratelimit", "429 with Retry-After", func() module { return newRateLimit() }},
		{"latency", "time before the first byte", func() module { return newLatency() }},
		{"bandwidth", "bytes per second of hosts", func() module { return newBandwidth() }},
		{"drip", "pages that come byte by byte", func() module { return newDrip() }},
		{"reset", "connections broken within a page", func() module { return newReset() }},
		{"outage", "hosts that are down for a while", func() module { return newOutage() }},
		{"tls", "expired, foreign and self-signed certificates, refused handshakes", func() module { return newBadTLS() }},
		{"dns", "NXDOMAIN, SERVFAIL, slow and lost answers, aliases", func() module { return newBadDNS() }},
	}
}
