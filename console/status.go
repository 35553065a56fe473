package console

import (
	"time"

	"github.com/freshet/freshet/cluster"
)

// Status is what the status page and GET /api/status show.
type Status struct {
	State   string    `json:"state"` // running, paused, draining
	Node    string    `json:"node,omitempty"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`

	Agents AgentCount `json:"agents"`

	Pages          int64            `json:"pages"`            // known and fetched at least once
	URLs           int64            `json:"urls"`             // known
	Queue          int64            `json:"queue"`            // not visited yet
	Hosts          int64            `json:"hosts"`            // known
	HostsWaiting   int64            `json:"hosts_waiting"`    // might be worked now
	Fetches        int64            `json:"fetches"`          // since start
	PagesPerSecond float64          `json:"pages_per_second"` // last minute
	Unchanged      int64            `json:"unchanged"`
	Bytes          int64            `json:"bytes"`
	Errors         map[string]int64 `json:"errors"`
	Skipped        map[string]int64 `json:"skipped,omitempty"`

	Indexed    int64  `json:"indexed"`     // documents in the index
	IndexQueue int64  `json:"index_queue"` // pages waiting for the indexer
	IndexError string `json:"index_error,omitempty"`
	// IndexExcluded counts, since start, pages whose bodies could not be indexed, by
	// kind: missing, damaged, unreadable, other page, elsewhere, extraction.
	IndexExcluded map[string]int64 `json:"index_excluded,omitempty"`

	// Freshness and Age are estimated over all pages: importance-weighted share
	// that is up to date, and mean time since the first unseen change.
	Freshness float64       `json:"freshness"`
	Age       time.Duration `json:"age_ns"`
	Needed    []Needed      `json:"needed,omitempty"`

	Render RenderStatus    `json:"render"`
	Shares []ShareStatus   `json:"shares,omitempty"`
	Traps  []Trap          `json:"traps,omitempty"`
	Failed []Failure       `json:"failed,omitempty"` // those of Errors, each with the last
	Work   []cluster.Agent `json:"work"`             // live agents
	Top    []Host          `json:"top_hosts,omitempty"`

	Signals  []Signals    `json:"signals,omitempty"` // what sources of signals were worth
	Nodes    []NodeStatus `json:"nodes,omitempty"`   // other processes on the same database
	Sources  []Source     `json:"sources"`
	Throttle *Throttle    `json:"throttle,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
}

// Files is how many files of shares are known.
func (s *Status) Files() int64 {
	var n int64
	for _, h := range s.Shares {
		n += h.Files
	}
	return n
}

// NodeStatus is one other process on the same database.
type NodeStatus struct {
	Name    string    `json:"name"`
	Address string    `json:"address,omitempty"`
	Since   time.Time `json:"since"`
	Agents  int       `json:"agents"`
}

// AgentCount is how many agents work and may work.
type AgentCount struct {
	Fetch       int `json:"fetch"`
	FetchLimit  int `json:"fetch_limit"`
	Render      int `json:"render"`
	RenderLimit int `json:"render_limit"`
}

// Needed is the budget that a wanted freshness would take.
type Needed struct {
	Freshness float64 `json:"freshness"`
	Rate      float64 `json:"requests_per_second"`
	Bytes     float64 `json:"bytes_per_day"`
}

// DayBytes is Bytes as a whole number.
func (n Needed) DayBytes() int64 { return int64(n.Bytes) }

// RenderStatus tells of the browser.
type RenderStatus struct {
	Available bool   `json:"available"`
	Why       string `json:"why,omitempty"` // why not
	Waiting   int64  `json:"waiting"`
	Rendered  int64  `json:"rendered"`
	Gained    int64  `json:"urls_only_by_rendering"`
	// Hosts are those with the most pages that wait for the browser.
	Hosts []RenderWait `json:"waiting_hosts,omitempty"`
}

// RenderWait tells of one host whose pages wait for the browser.
type RenderWait struct {
	Host  string `json:"host"`
	Pages int64  `json:"pages"`
	Why   string `json:"why"`
}

// Signals is what a source of signals was worth at a host.
type Signals struct {
	Host   string  `json:"host"`
	Source string  `json:"source"`
	Right  float64 `json:"right"`  // signals after which a visit found a change
	Wrong  float64 `json:"wrong"`  // ... found none
	Missed float64 `json:"missed"` // changes that it did not tell of
	// Recall is the share of changes that it tells of, Precision that of its
	// signals after which there is a change.
	Recall    float64 `json:"recall"`
	Precision float64 `json:"precision"`
}

// Trap is a kind of waste that was kept away, with an example.
type Trap struct {
	Kind    string `json:"kind"`
	Count   int64  `json:"count"`
	Example string `json:"example"`
}

// Failure is a kind of requests that failed, with the last of them.
type Failure struct {
	Kind    string    `json:"kind"`
	Count   int64     `json:"count"`
	Example string    `json:"example"` // its URL
	Message string    `json:"message"` // why it failed
	At      time.Time `json:"at"`
}

// Host is one host of the status page.
type Host struct {
	Name      string        `json:"name"`
	Pages     int64         `json:"pages"`
	Queue     int64         `json:"queue"`
	Freshness float64       `json:"freshness"`
	Age       time.Duration `json:"age_ns"`
	Delay     time.Duration `json:"delay_ns"`
	Failing   string        `json:"failing,omitempty"`
	Robots    []RobotsWait  `json:"waits_for_robots,omitempty"`
}

// RobotsWait is a robots.txt that cannot be had, for which pages wait.
type RobotsWait struct {
	URL   string    `json:"url"`
	Why   string    `json:"why,omitempty"`
	Pages int64     `json:"pages"`
	Since time.Time `json:"since,omitzero"` // the first try without an answer
	Next  time.Time `json:"next_try"`
}

// ShareStatus is one host with shares.
type ShareStatus struct {
	Host     string    `json:"host"`
	State    string    `json:"state"` // online, offline, scanning
	Files    int64     `json:"files"`
	Parts    int64     `json:"parts"`
	LastScan time.Time `json:"last_scan"`
	Error    string    `json:"error,omitempty"`
}

// Throttle is the setting of the controller and where it stands.
type Throttle struct {
	Thresholds []int `json:"thresholds"`
	Modes      []int `json:"modes"`
	Queue      int   `json:"queue"`
	Active     int   `json:"active"`
}

// Why tells what is known of a page and why it is as it is.
type Why struct {
	URL      string    `json:"url"`
	State    string    `json:"state"` // queued, ok, redirect, gone, blocked, failed, excluded
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
	Title    string    `json:"title,omitempty"`
	Depth    int       `json:"depth"`
	FoundOn  []string  `json:"found_on,omitempty"` // the page with the link, the page that led to that one ...
	Visited  time.Time `json:"visited,omitzero"`
	Changed  time.Time `json:"changed,omitzero"`
	Visits   float64   `json:"visits"` // that compared, the old ones faded
	Changes  float64   `json:"changes"`
	Rendered bool      `json:"rendered"`
	Waits    bool      `json:"waits_for_browser"`
	Reason   string    `json:"reason,omitempty"` // why rendered or not
	Next     time.Time `json:"next_visit,omitzero"`
}
