// Package fresh measures how fresh the real robot keeps a real site: pages that
// change at rates over four decades, an equal budget of requests for each
// policy, the same moments of change for all. The server knows when it told the
// robot what; beside it stands what theory predicts from the true rates.
package fresh

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/weburl"
)

// site serves pages that change at moments drawn before.
type site struct {
	began   time.Time
	hosts   int
	port    int
	rates   []float64   // changes a second
	changes [][]float64 // moments of each page, seconds since the beginning

	mu       sync.Mutex
	told     [][]delivery
	requests int
	bodies   int64
}

// delivery is one answer: when, and which version it told.
type delivery struct {
	at      float64
	version int
}

// newSite draws rates evenly on a logarithmic scale and moments for so many
// seconds.
func newSite(c Config) *site {
	s := &site{hosts: c.Hosts, rates: make([]float64, c.Pages), changes: make([][]float64, c.Pages)}
	for i := range s.rates {
		r := rng.New(c.Seed, "page", i)
		s.rates[i] = c.Slowest * math.Pow(10, 4*(float64(i)+r.Float64())/float64(c.Pages))
		for at := r.ExpFloat64() / s.rates[i]; at < c.Warm.Seconds()+c.Measure.Seconds()+10; at += r.ExpFloat64() / s.rates[i] {
			s.changes[i] = append(s.changes[i], at)
		}
	}
	return s
}

// restartHistory starts the history again.
func (s *site) restartHistory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.told, s.requests, s.bodies = time.Now(), make([][]delivery, len(s.rates)), 0, 0
}

// pageAddress of a page; hosts are 127.0.0.1, 127.0.0.2 ...
func (s *site) pageAddress(page int) string {
	return fmt.Sprintf("http://127.0.0.%d:%d/%d", 1+page%s.hosts, s.port, page)
}

// pageChangeRate is the change rate of a page; the lists of pages never change.
func (s *site) pageChangeRate(u weburl.URL) (float64, bool) {
	page, err := strconv.Atoi(strings.TrimPrefix(u.Target(), "/"))
	if err != nil || page < 0 || page >= len(s.rates) {
		return 1e-9, true
	}
	return s.rates[page], true
}

// versionAt counts the changes of a page up to a time.
func (s *site) versionAt(page int, at float64) int { return sort.SearchFloat64s(s.changes[page], at) }

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		http.Error(w, "loopback only", http.StatusForbidden)
		return
	}
	page, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if r.URL.Path == "/" {
		s.serveIndex(w, r)
		return
	}
	if err != nil || page < 0 || page >= len(s.rates) {
		http.NotFound(w, r)
		return
	}
	at := time.Since(s.began).Seconds()
	version := s.versionAt(page, at)
	s.mu.Lock()
	s.told[page] = append(s.told[page], delivery{at, version})
	s.requests++
	s.mu.Unlock()
	tag := fmt.Sprintf("%q", fmt.Sprint(version))
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	n, _ := fmt.Fprintf(w, "<!DOCTYPE html><title>Page %d</title><p>Version %d of page %d of the site that changes.", page, version, page)
	s.mu.Lock()
	s.bodies += int64(n)
	s.mu.Unlock()
}

// serveIndex lists the pages of the host that is asked.
func (s *site) serveIndex(w http.ResponseWriter, r *http.Request) {
	name, _, _ := net.SplitHostPort(r.Host)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("ETag", `"index"`)
	if r.Header.Get("If-None-Match") == `"index"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	for page := range s.rates {
		if fmt.Sprintf("127.0.0.%d", 1+page%s.hosts) == name {
			_, _ = fmt.Fprintf(w, "<a href=/%d>%d</a>\n", page, page)
		}
	}
}

// measureKnowledge returns the mean share of pages whose newest version the robot knew,
// and their mean age (time since the first change it did not know), between two
// moments.
func (s *site) measureKnowledge(from, to float64) (freshness, age float64, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for page := range s.rates {
		f, a := s.integratePage(page, from, to)
		freshness += f
		age += a
		for _, d := range s.told[page] {
			if d.at >= from && d.at < to {
				requests++
			}
		}
	}
	n := float64(len(s.rates))
	return freshness / n, age / n, requests
}

// integratePage integrates one page. Between two deliveries what the robot knows stays;
// it is fresh until the first change after that version, and then its age
// grows.
func (s *site) integratePage(page int, from, to float64) (freshness, age float64) {
	told := s.told[page]
	for i := 0; i <= len(told); i++ {
		begin, end, version := 0.0, to, -1 // before the first delivery nothing is known
		if i > 0 {
			begin, version = told[i-1].at, told[i-1].version
		}
		if i < len(told) {
			end = min(end, told[i].at)
		}
		begin = max(begin, from)
		if begin >= end {
			continue
		}
		stale := 0.0 // since when
		if version >= 0 {
			stale = end
			if version < len(s.changes[page]) {
				stale = min(end, s.changes[page][version])
			}
		}
		freshness += max(0, stale-begin)
		if first := max(begin, stale); first < end {
			age += (end-stale)*(end-stale)/2 - (first-stale)*(first-stale)/2
		}
	}
	return freshness / (to - from), age / (to - from)
}
