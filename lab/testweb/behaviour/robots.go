package behaviour

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/freshet/freshet/lab/testweb/truth"
)

// robotsTxt gives hosts robots.txt files of all sorts, and pages with links into
// the part that every one of them disallows.
type robotsTxt struct {
	Scope    `yaml:",inline"`
	Variants []string `yaml:"variants"` // drawn by host
	Delay    float64  `yaml:"delay"`    // Crawl-delay of the variant delay, in seconds
}

// The variants of robotsTxt.
const (
	robotsNormal     = "normal"
	robotsMissing    = "missing"    // 404: all is allowed
	robotsFailing    = "5xx"        // 503: nothing is allowed (RFC 9309, 2.3.1.4)
	robotsHuge       = "huge"       // 700 KB, the rule stands first
	robotsRedirected = "redirected" // three redirects away
	robotsBOM        = "bom"        // begins with a byte order mark
	robotsDelay      = "delay"      // Crawl-delay
	robotsClosed     = "closed"     // nothing is allowed
)

func newRobotsTxt() *robotsTxt {
	return &robotsTxt{
		Scope:    Scope{Hosts: 1, Pages: .1},
		Variants: []string{robotsNormal, robotsNormal, robotsMissing, robotsFailing, robotsHuge, robotsRedirected, robotsBOM, robotsDelay, robotsClosed},
		Delay:    2,
	}
}

func (b *robotsTxt) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireKnown(b.Variants, newRobotsTxt().Variants), notNegative("delay", b.Delay))
}

const (
	robotsPath  = "/robots.txt"
	privatePath = "/private/"
	rules       = "User-agent: *\nDisallow: /private/\n"
)

// Apply implements Behaviour.
func (b *robotsTxt) Apply(q *Request, r *Reply) bool {
	if !b.ofHost(q) {
		return false
	}
	variant := b.Variants[b.drawBits(q, q.Host)>>32%uint64(len(b.Variants))]
	if variant == robotsDelay {
		r.CrawlDelay = b.Delay
	}
	if strings.HasPrefix(q.Path, robotsPath) {
		b.answerRobotsTxt(q, r, variant)
		return true
	}
	delay := r.CrawlDelay
	changed := false
	if strings.HasPrefix(q.Path, privatePath) {
		r.setExtraPage(q, truth.Forbidden, b.pathKey(q), "/")
		changed = true
	} else if r.Page != nil && b.ofPage(q) {
		r.addLink(q, fmt.Sprintf("%s%x.html", privatePath, b.pathKey(q)>>48), "")
		changed = true
	}
	r.CrawlDelay = delay
	switch variant {
	case robotsMissing:
		if r.Kind == truth.Forbidden {
			r.Kind = truth.Other // nothing forbids it
		}
	case robotsFailing, robotsClosed:
		r.Disallowed = true
	default:
		r.Disallowed = r.Kind == truth.Forbidden
	}
	return changed || r.Disallowed
}

// answerRobotsTxt answers a request for robots.txt or one of the stations before it.
func (b *robotsTxt) answerRobotsTxt(q *Request, r *Reply, variant string) {
	text := Reply{Kind: truth.Robots, Status: 200, Type: "text/plain", CrawlDelay: r.CrawlDelay}
	text.Body = []byte(rules)
	switch variant {
	case robotsMissing:
		text.Status, text.Body = 404, []byte("no such file\n")
	case robotsFailing:
		text.Status, text.Body = 503, []byte("try later\n")
	case robotsHuge:
		text.Body = append(text.Body, bytes.Repeat([]byte("# nothing to be read here, line after line after line after line\n"), 11000)...)
	case robotsBOM:
		text.Body = []byte("\ufeff" + rules)
	case robotsDelay:
		text.Body = fmt.Appendf(nil, "User-agent: *\nCrawl-delay: %g\nDisallow: /private/\n", b.Delay)
	case robotsClosed:
		text.Body = []byte("User-agent: *\nDisallow: /\n")
	case robotsRedirected:
		stations := []string{robotsPath, robotsPath + "/1", robotsPath + "/2", robotsPath + "/3"}
		if i := slices.Index(stations, q.Path); i >= 0 && i < len(stations)-1 {
			text = Reply{Kind: truth.Robots, Status: 302, Location: stations[i+1]}
		}
	}
	*r = text
}
