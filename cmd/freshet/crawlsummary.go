package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/internal/usage"
	"github.com/freshet/freshet/store"
)

// crawlSummary is the JSON that a crawl ends with.
type crawlSummary struct {
	Pages         int64            `json:"pages"`
	URLsSeen      int64            `json:"urls_seen"`
	Hosts         int64            `json:"hosts"`
	Errors        map[string]int64 `json:"errors"`
	Bytes         int64            `json:"bytes"`
	Seconds       float64          `json:"seconds"`
	PagesSecond   float64          `json:"pages_per_second"`
	Unchanged     int64            `json:"unchanged"`
	Rendered      int64            `json:"rendered"`
	OnlyRendering int64            `json:"urls_only_by_rendering"`
	Waiting       int64            `json:"waiting_for_browser"`
	Skipped       map[string]int64 `json:"skipped"`
	robots        int64            // pages that robots.txt forbids
	Indexed       int64            `json:"indexed"`
	CPU           float64          `json:"cpu_seconds"` // of this process
	Million       float64          `json:"cost_per_million_pages,omitempty"`

	states map[store.State]int64 // URLs of the store
}

// summarizeCrawl makes the summary of a crawl's report.
func summarizeCrawl(r *app.CrawlReport, prices usage.Prices) *crawlSummary {
	s := &r.Robot
	out := &crawlSummary{
		Pages: s.Pages, URLsSeen: r.Store.URLs, Hosts: r.Store.Hosts, Errors: s.Errors, Bytes: s.Bytes, Unchanged: s.Unchanged, Rendered: s.Rendered, OnlyRendering: s.Gained, Waiting: s.Waiting,
		Skipped: s.SkippedTexts(), robots: s.Skipped[store.ReasonRobotsRefused], Indexed: r.Indexed, Seconds: r.Elapsed.Seconds(), states: r.Store.States, CPU: usage.CPUSeconds(),
	}
	for _, t := range s.Traps {
		out.Skipped["trap: "+string(t.Kind)] += t.Count
	}
	out.PagesSecond = float64(s.Pages) / out.Seconds
	out.Million = prices.PerMillion(usage.Crawl{
		Pages: s.Pages, CPUSeconds: out.CPU, MemoryBytes: int64(usage.PeakMemory() * 1e6), Seconds: out.Seconds, Bytes: s.Bytes,
	})
	return out
}

// remedies say what may be done where nothing could be fetched.
var remedies = []struct{ kind, say string }{
	{string(fetch.Private), "loopback and private addresses need --allow-private"},
	{string(fetch.DNS), "the name does not resolve: is it written right?"},
	{string(fetch.Refused), "nobody listens at that host and port"},
	{string(fetch.Unreached), "no way leads to that host"},
	{string(fetch.Timeout), "no answer in time"},
	{string(fetch.TLS), "no valid certificate"},
	{string(fetch.Protocol), "what answers there does not speak HTTP"},
}

// printAdvice tells why a crawl has fetched nothing. It is no failure of the command:
// the report says what the hosts answered.
func (s *crawlSummary) printAdvice(w io.Writer) {
	if s.Pages > 0 {
		return
	}
	for _, r := range remedies {
		if s.Errors[r.kind] > 0 {
			fmt.Fprintf(w, "freshet: nothing was fetched (%s): %s\n", r.kind, r.say)
		}
	}
	if len(s.Errors) == 0 && s.robots > 0 {
		fmt.Fprintln(w, "freshet: nothing was fetched: robots.txt forbids it (freshet robots tells by which line)")
		return
	}
	for _, r := range answers {
		if len(s.Errors) == 0 && s.states[r.state] > 0 {
			fmt.Fprintln(w, "freshet: nothing was fetched:", r.say)
			return
		}
	}
}

// answers say why pages that were asked for gave none.
var answers = []struct {
	state store.State
	say   string
}{
	{store.Gone, "the server says that there is no such page (404 or 410): is the address written right?"},
	{store.Blocked, "the server refuses it (401 or 403)"},
	{store.Redirect, "it redirects to where --scope does not reach"},
}

func (s *crawlSummary) printSummary(w io.Writer) {
	fmt.Fprintf(w, "%d pages (%d unchanged) of %d URLs on %d hosts in %.1f s, %.1f pages/s, %d bytes\n", s.Pages, s.Unchanged, s.URLsSeen, s.Hosts, s.Seconds, s.PagesSecond, s.Bytes)
	if s.Million > 0 {
		fmt.Fprintf(w, "%.1f s of CPU; a million such pages cost %.4g\n", s.CPU, s.Million)
	}
	if s.Indexed > 0 {
		fmt.Fprintf(w, "%d documents in the index: freshet search WORDS\n", s.Indexed)
	}
	if s.Rendered+s.Waiting > 0 {
		fmt.Fprintf(w, "%d pages rendered, %d URLs found only by that; %d pages wait for a browser\n", s.Rendered, s.OnlyRendering, s.Waiting)
	}
	for _, l := range []struct {
		name string
		m    map[string]int64
	}{{"errors", s.Errors}, {"left out", s.Skipped}} {
		keys := make([]string, 0, len(l.m))
		for k := range l.m {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			fmt.Fprintf(w, "%s: %s %d\n", l.name, k, l.m[k])
		}
	}
}
