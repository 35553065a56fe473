// Package render builds pages in Chromium where that gains something.
//
// It has two halves that know nothing of each other. Pool drives browsers: it
// turns a fetched page into the document that its scripts make of it, bounded
// in time, bytes, requests and memory, and careful about where the browser
// connects. Chooser decides which pages are worth it: a render costs some
// hundred times as much as a fetch, and most pages gain nothing.
//
// # Time of a page
//
// A page is given its time as virtual time (Emulation.setVirtualTimePolicy of
// the DevTools protocol): its clock stands still while requests are under way
// and otherwise jumps from timer to timer. A page with a timer of two seconds
// is done in milliseconds, the same page comes out the same on a loaded
// machine, and the end of the budget is the moment at which the network is idle
// and nothing is due any more. After that the clock stands: a page that was
// rendered costs nothing while its tab waits for the next.
package render

import (
	"context"
	"net/http"
	"time"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// Config are the options of a Pool. Client must be given.
type Config struct {
	// Client dials for the browser: its addresses are checked as those of the
	// robot's own requests.
	Client    *fetch.Client
	UserAgent string // appended to the browser's own
	Insecure  bool   // accept certificates that do not verify

	Path   string // of Chromium; "" looks for it
	Remote string // debugging address (ws:// or http://) of a running Chromium instead
	// NoSandbox starts Chromium without its sandbox. Chromium refuses its sandbox to
	// root, so that a pool of root starts no browser of its own without NoSandbox.
	NoSandbox bool

	Tabs     int           // pages rendered at the same time; default 2
	Timeout  time.Duration // of one page; default 20 s
	Stall    time.Duration // without any byte after which requests are given up; default 5 s
	Budget   time.Duration // time by a page's own clock; default 5 s
	Answer   time.Duration // for the browser to answer a command; default 5 s
	MaxBytes int64         // received for one page; default 16 MiB
	MaxHTML  int           // length of the document; default 8 MiB
	Requests int           // of one page; default 300
	// ForeignRequests is how many of them may go to one host that is not the page's
	// own; default 30. ForeignRate is how many a second such a host gets from all
	// pages, beyond the first 30; default 5.
	ForeignRequests int
	ForeignRate     float64
	Scrolls         int           // to the end of a page that grows; default 8, -1 for none
	Routes          int           // hash routes of a page that are walked; default 16, -1 for none
	MaxAge          time.Duration // of a browser; default 30 min
	MaxPages        int           // of a browser; default 1000
	MaxMemory       int64         // of a browser, resident in all its processes; default 2 GiB
}

func (c Config) withRenderDefaults() Config {
	for _, d := range []struct {
		p *time.Duration
		v time.Duration
	}{{&c.Timeout, 20 * time.Second}, {&c.Stall, 5 * time.Second}, {&c.Budget, 5 * time.Second}, {&c.Answer, 5 * time.Second}, {&c.MaxAge, 30 * time.Minute}} {
		if *d.p <= 0 {
			*d.p = d.v
		}
	}
	for _, d := range []struct {
		p *int
		v int
	}{{&c.Tabs, 2}, {&c.MaxHTML, 8 << 20}, {&c.Requests, 300}, {&c.ForeignRequests, foreignBurst}, {&c.Scrolls, 8}, {&c.Routes, 16}, {&c.MaxPages, 1000}} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 16 << 20
	}
	if c.ForeignRate <= 0 {
		c.ForeignRate = foreignRate
	}
	if c.MaxMemory <= 0 {
		c.MaxMemory = 2 << 30
	}
	return c
}

// startTime is how long a browser may take to start.
const startTime = 30 * time.Second

// Page is what is to be rendered.
type Page struct {
	URL weburl.URL
	// Header and Body are the answer that the robot has. The browser gets it
	// instead of asking the server again.
	Header http.Header
	Body   []byte
	// Allowed, if not nil, is asked before each request that the page makes, and may
	// wait: the robots.txt of each host and the robot's budget hold for its browser,
	// too.
	Allowed func(ctx context.Context, u weburl.URL) bool
}

// Document is a page as the browser built it.
type Document struct {
	URL  string // at the end: scripts may have moved within the document
	HTML []byte
	// Links are addresses that do not stand in HTML: in shadow trees, of windows
	// that scripts wanted to open, of places they wanted to go to, and of entries
	// they made in the session history.
	Links []string

	Requests int   // that went out
	Blocked  int   // images, fonts, media, frames, workers, methods that change things, what Allowed refuses
	Refused  int   // beyond the bounds of bytes and requests
	Bytes    int64 // through the guard: what the page cost the network
	Cut      string
	Routes   int // hash routes walked
	Scrolls  int
	Took     time.Duration
}

// Reasons in Document.Cut for which a page was taken before it was done.
const (
	CutTime  = "time"
	CutStall = "stall"
	CutBytes = "bytes"
	CutHang  = "hang" // its script ran without end and was stopped
)
