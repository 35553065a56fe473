// Package score judges a robot from the truth log of a test web: what it found,
// what it wasted, how polite and how fresh it was, and in which order it came.
//
// Nothing of the robot itself is needed, so the same card is made for any of
// them. Orders are judged twice, by the PageRank gathered along the crawl (Cho,
// Garcia-Molina and Page 1998) and by Kendall's tau against the order of
// PageRank: the two can disagree (Boldi, Santini and Vigna 2004).
package score

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/freshet/freshet/lab/testweb/truth"
)

// Graph is the link graph of the web that was served.
type Graph interface {
	Nodes() uint64
	Successors(u uint64, buf []uint64) []uint64
}

// Card is the score card of a robot.
type Card struct {
	Agents   map[string]int `json:"agents"` // requests by user agent
	Requests int            `json:"requests"`
	Visits   int            `json:"visits,omitempty"` // of the web's own visitors, which are not judged
	Seconds  float64        `json:"seconds"`          // from the first request to the end of the last answer
	Bytes    int64          `json:"bytes"`
	Statuses map[string]int `json:"statuses"`
	Kinds    map[string]int `json:"kinds"` // what stood behind the answers

	Pages     int     `json:"pages"`           // different pages that were shown
	Hosts     int     `json:"hosts"`           // hosts with a page shown
	Exist     uint64  `json:"exist"`           // pages of the web, 0 if the log does not say
	Seeds     int     `json:"seeds,omitempty"` // pages that the robot asked for before any page that links to them, or a sitemap of their host
	Reachable uint64  `json:"reachable,omitempty"`
	Coverage  float64 `json:"coverage"` // share of the pages that exist
	// CoverageReachable is the share of the pages that links lead to from the seeds.
	CoverageReachable float64 `json:"coverage_reachable,omitempty"`
	// Obtainable is the number of pages that a perfect robot gets from there that
	// obeys robots.txt and nofollow; a disobedient one may get more.
	Obtainable uint64 `json:"obtainable,omitempty"`

	Duplicates int `json:"duplicates"` // pages shown again under another address, or exact copies of others
	NearCopies int `json:"near_copies"`
	TrapPages  int `json:"trap_pages"`
	Soft404    int `json:"soft404"`
	DeadLinks  int `json:"dead_links"` // 404 and 410

	Overlaps         int     `json:"overlaps"`     // requests to a host while another to it ran
	MinInterval      float64 `json:"min_interval"` // least time between two requests to a host, seconds; -1 if no host was asked twice
	MedianInterval   float64 `json:"median_interval"`
	RobotsViolations int     `json:"robots_violations"`
	RobotsUnread     int     `json:"robots_unread"` // hosts asked for something else before robots.txt
	DelayViolations  int     `json:"delay_violations"`

	Revisits    int              `json:"revisits"`     // pages asked for again under the same address
	NotModified int              `json:"not_modified"` // of them answered 304
	WastedBytes int64            `json:"wasted_bytes"`
	Wasted      map[string]int64 `json:"wasted"` // by reason

	FreshnessMean float64   `json:"freshness_mean"` // share of the existing pages of which the robot had the current version, over time
	FreshnessEnd  float64   `json:"freshness_end"`
	Freshness     []float64 `json:"freshness"` // at equal steps from the first request to the end

	Found      []float64          `json:"found"`                 // share of the existing pages that had been shown, at the same steps
	PageRankAt map[string]float64 `json:"pagerank_at"`           // PageRank gathered with so great a share of the pages
	KendallTau *float64           `json:"kendall_tau,omitempty"` // of the order of first visits and PageRank, 1: the best first

	Cut bool `json:"log_cut,omitempty"` // the log ends within a line
}

// Options say what is judged.
type Options struct {
	Agent string // only requests whose user agent contains this
	Graph Graph  // nil: no order quality
	// Obtainable counts the pages that a perfect, obedient robot gets from some;
	// nil: not known.
	Obtainable func(from []uint64) uint64
	Pages      uint64 // that exist, where the log does not say
}

// freshnessSteps is the number of points of Card.Freshness.
const freshnessSteps = 20

// Read judges the log that r reads.
func Read(ctx context.Context, r *truth.Reader, opt Options) (*Card, error) {
	b := newBook()
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case rec.Agent == truth.Visitor:
			b.card.Visits++
		case strings.Contains(rec.Agent, opt.Agent):
			b.addRecord(&rec)
		}
	}
	if b.card.Requests == 0 {
		return nil, fmt.Errorf("truth log: no request%s", ofAgent(opt.Agent))
	}
	c := &b.card
	c.Cut = r.Cut()
	c.Exist = r.Head.Pages
	if c.Exist == 0 {
		c.Exist = opt.Pages
	}
	if c.Exist == 0 && opt.Graph != nil {
		c.Exist = opt.Graph.Nodes()
	}
	b.closeBook()
	if opt.Graph != nil {
		if err := b.judgeOrder(ctx, opt); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func ofAgent(agent string) string {
	if agent == "" {
		return ""
	}
	return fmt.Sprintf(" of an agent with %q in its name", agent)
}

// book is what is kept while a log is read.
type book struct {
	card   Card
	pages  map[int64]*holding
	copies map[int64]bool // texts seen, by the page they are the original text of
	hosts  map[string]*host
	urls   map[string]bool // addresses of pages, to tell revisits from duplicates
	held   []span          // times in which the robot had the current version of a page
	first  time.Time
	last   time.Time
}

// holding is the robot's copy of a page.
type holding struct {
	firstAt time.Time
	mapped  bool      // a sitemap of its host was read before
	at      time.Time // when the copy was fetched or confirmed
	version uint64
	until   time.Time // zero: for ever
}

// span is a time from the first request on, in seconds.
type span struct{ from, to float64 }

// host is what was asked of a host.
type host struct {
	asked  []span
	first  time.Time // first request for anything but robots.txt
	read   time.Time // first request for robots.txt, zero if none
	delay  float64
	shown  bool
	mapped bool // a sitemap was read
}

func newBook() *book {
	return &book{
		card: Card{
			Agents: map[string]int{}, Statuses: map[string]int{}, Kinds: map[string]int{},
			Wasted: map[string]int64{}, PageRankAt: map[string]float64{},
		},
		pages: map[int64]*holding{}, copies: map[int64]bool{}, hosts: map[string]*host{}, urls: map[string]bool{},
	}
}

// addRecord enters a record.
func (b *book) addRecord(r *truth.Record) {
	c := &b.card
	c.Requests++
	c.Agents[r.Agent]++
	c.Bytes += r.Bytes
	c.Statuses[fmt.Sprint(r.Status)]++
	c.Kinds[string(r.Kind)]++
	if b.first.IsZero() || r.Time.Before(b.first) {
		b.shiftStart(r.Time)
	}
	if end := r.Time.Add(time.Duration(r.Duration * float64(time.Second))); end.After(b.last) {
		b.last = end
	}
	h := b.addHostRequest(r)
	switch r.Kind {
	case truth.Page:
		b.addPageAnswer(r, h)
	case truth.Trap:
		c.TrapPages++
		b.countWaste("traps", r)
	case truth.Soft404:
		c.Soft404++
		b.countWaste("soft404", r)
	case truth.Missing:
		c.DeadLinks++
		b.countWaste("dead links", r)
	case truth.Forbidden:
		b.countWaste("forbidden", r)
	}
}

// shiftStart moves the beginning of time: a log is in the order in which answers
// ended, so an earlier request may come later.
func (b *book) shiftStart(to time.Time) {
	if !b.first.IsZero() {
		d := b.first.Sub(to).Seconds()
		for i := range b.held {
			b.held[i].from += d
			b.held[i].to += d
		}
		for _, h := range b.hosts {
			for i := range h.asked {
				h.asked[i].from += d
				h.asked[i].to += d
			}
		}
	}
	b.first = to
}

func (b *book) secondsSince(t time.Time) float64 { return t.Sub(b.first).Seconds() }

func (b *book) countWaste(why string, r *truth.Record) {
	b.card.Wasted[why] += r.Bytes
	b.card.WastedBytes += r.Bytes
}

// addHostRequest enters a request into the account of its host.
func (b *book) addHostRequest(r *truth.Record) *host {
	key := strings.ToLower(r.Host)
	h := b.hosts[key]
	if h == nil {
		h = new(host)
		b.hosts[key] = h
	}
	from := b.secondsSince(r.Time)
	h.asked = append(h.asked, span{from, from + r.Duration})
	h.delay = max(h.delay, r.CrawlDelay)
	h.mapped = h.mapped || r.Kind == truth.Sitemap
	switch {
	case r.Kind == truth.Robots || r.Path == "/robots.txt": // a broken answer is an attempt, too
		if h.read.IsZero() || r.Time.Before(h.read) {
			h.read = r.Time
		}
	case h.first.IsZero() || h.first.After(r.Time):
		h.first = r.Time
	}
	if r.Disallowed {
		b.card.RobotsViolations++
	}
	return h
}

// addPageAnswer enters an answer that showed a page, or said that it had not changed.
func (b *book) addPageAnswer(r *truth.Record, h *host) {
	c := &b.card
	if r.Method == "HEAD" {
		return
	}
	switch r.Status {
	case 200, 304:
	case 403, 404, 500:
		b.addGoneAnswer(r)
		return
	default:
		return
	}
	h.shown = true
	url := r.Host + r.Path
	again := b.urls[url]
	b.urls[url] = true
	p := b.pages[r.Page]
	if again {
		c.Revisits++
	}
	if r.Status == 304 {
		c.NotModified++
		if p != nil && p.version == r.Version { // else the server's word was false
			b.closeHolding(p, b.secondsSince(r.Time))
			p.at, p.until = r.Time, r.FreshUntil
		}
		return
	}
	b.countRepeated(r, p, again)
	if p == nil {
		p = &holding{firstAt: r.Time, mapped: h.mapped}
		b.pages[r.Page] = p
	} else {
		b.closeHolding(p, b.secondsSince(r.Time))
	}
	p.at, p.version, p.until = r.Time, r.Version, r.FreshUntil
}

// addGoneAnswer enters the answer that a page, by its history, cannot be had: a robot
// that had it knows its present state. A page that was never had stays unknown.
func (b *book) addGoneAnswer(r *truth.Record) {
	if p := b.pages[r.Page]; p != nil && r.Version != 0 {
		b.closeHolding(p, b.secondsSince(r.Time))
		p.at, p.version, p.until = r.Time, r.Version, r.FreshUntil
	}
}

// countRepeated counts what a robot could have spared itself.
func (b *book) countRepeated(r *truth.Record, p *holding, again bool) {
	c := &b.card
	text := r.Page
	if r.CopyOf > 0 && r.Similarity >= 1 {
		text = r.CopyOf - 1
	}
	switch {
	case p != nil && !again, p == nil && b.copies[text]:
		c.Duplicates++
		b.countWaste("duplicates", r)
	case p != nil && p.version == r.Version:
		b.countWaste("unchanged", r)
	case r.CopyOf > 0 && r.Similarity < 1 && !again:
		c.NearCopies++
	}
	b.copies[text] = true
}

// closeHolding closes the account of a copy: it was current until its version ended or
// the next visit came.
func (b *book) closeHolding(p *holding, next float64) {
	to := next
	if !p.until.IsZero() {
		to = min(to, b.secondsSince(p.until))
	}
	if from := b.secondsSince(p.at); to > from {
		b.held = append(b.held, span{from, to})
	}
}
