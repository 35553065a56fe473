// Package crawl is the track on which robots are compared: a closed synthetic
// site on loopback that counts what it serves, and a way to run a robot as a
// process of its own and read what it cost.
package crawl

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/freshet/freshet/internal/rng"
)

// Site is a closed web: pages 0 to Pages-1, spread over hosts that share one
// port, each with links to other pages of the site. From the first page of
// every host all others can be reached. It is an http.Handler; GET /stats
// tells what was served, POST /reset forgets it.
type Site struct {
	Pages int
	Hosts int
	Links int // of a page; at least 3
	Bytes int // of a page, about
	Port  int
	HTTPS bool // URLs are https

	mu     sync.Mutex
	served []uint16
	other  int64
	filler string
}

// Served is what a robot fetched.
type Served struct {
	Requests  int64 `json:"requests"` // of pages
	Distinct  int64 `json:"distinct"` // pages asked for at least once
	Other     int64 `json:"other"`    // robots.txt and what does not exist
	Repeats   int64 `json:"repeats"`  // pages asked for more than once
	MostOften int64 `json:"most_often"`
}

// NewSite returns a site.
func NewSite(pages, hosts, links, size int) *Site {
	s := &Site{Pages: pages, Hosts: hosts, Links: max(3, links), Bytes: size, served: make([]uint16, pages)}
	// Words as in a language: few are frequent (Zipf), so that text compresses
	// about as well as text does.
	r := rng.New(1, "bench", "words")
	syllables := strings.Fields("an be ca do en fo ga hi in jo ka lu ma ne or pa qui ro se ta un va wi xe yo za stra plen kor mun tal ver")
	words := make([]string, 8000)
	for i := range words {
		for range 1 + r.IntN(3) {
			words[i] += syllables[r.IntN(len(syllables))]
		}
	}
	var b strings.Builder
	for b.Len() < 1<<20 {
		b.WriteString(words[int(math.Exp(r.Float64()*math.Log(float64(len(words)))))-1])
		b.WriteByte(' ')
	}
	s.filler = b.String()
	return s
}

// URL returns the address of a page: host 127.0.0.1, 127.0.0.2 ...
func (s *Site) URL(page int) string {
	return fmt.Sprintf("%s://127.0.0.%d:%d/section-%d/page-%d.html", s.scheme(), 1+page%s.Hosts, s.Port, page%13, page)
}

func (s *Site) scheme() string {
	if s.HTTPS {
		return "https"
	}
	return "http"
}

// Seeds returns the first page of every host.
func (s *Site) Seeds() []string {
	out := make([]string, s.Hosts)
	for h := range out {
		out[h] = s.URL(h)
	}
	return out
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stats":
		st := s.Stats()
		fmt.Fprintf(w, `{"requests":%d,"distinct":%d,"other":%d,"repeats":%d,"most_often":%d}`, st.Requests, st.Distinct, st.Other, st.Repeats, st.MostOften)
		return
	case "/reset":
		s.mu.Lock()
		clear(s.served)
		s.other = 0
		s.mu.Unlock()
		return
	}
	i := strings.LastIndexByte(r.URL.Path, '-')
	n, err := strconv.Atoi(strings.TrimSuffix(r.URL.Path[i+1:], ".html"))
	known := err == nil && n >= 0 && n < s.Pages
	s.mu.Lock()
	if known {
		s.served[n]++
	} else {
		s.other++
	}
	s.mu.Unlock()
	if !known {
		http.NotFound(w, r)
		return
	}
	body := s.sitePage(n)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

// sitePage writes a page: a tree (so that all pages are reached, each host's first
// page being a root) and random links, between words.
func (s *Site) sitePage(n int) []byte {
	links := make([]int, 0, s.Links)
	for _, k := range []int{2*n + s.Hosts, 2*n + s.Hosts + 1} {
		if k < s.Pages {
			links = append(links, k)
		}
	}
	x := uint64(n)
	for len(links) < s.Links {
		x = rng.Mix(x, uint64(len(links)))
		links = append(links, int(x%uint64(s.Pages)))
	}
	words := s.Bytes/len(links) - 60
	b := make([]byte, 0, s.Bytes+2000)
	b = fmt.Appendf(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><title>Page %d of the track</title><meta charset=\"utf-8\"></head>\n<body><h1>Page %d</h1>\n", n, n)
	for _, k := range links {
		x = rng.Mix(x, 7)
		at := int(x % uint64(len(s.filler)-max(words, 1)-1))
		b = append(b, "<p class=\"text\">"...)
		b = append(b, s.filler[at:at+max(words, 0)]...)
		b = append(b, ` <a href="`...)
		if k%s.Hosts == n%s.Hosts {
			b = fmt.Appendf(b, "/section-%d/page-%d.html", k%13, k)
		} else {
			b = append(b, s.URL(k)...)
		}
		b = fmt.Appendf(b, "\">page %d</a></p>\n", k)
	}
	return append(b, "</body></html>\n"...)
}

// Stats counts what was served since the last reset.
func (s *Site) Stats() Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Served{Other: s.other}
	for _, n := range s.served {
		st.Requests += int64(n)
		if n > 0 {
			st.Distinct++
		}
		if n > 1 {
			st.Repeats++
		}
		st.MostOften = max(st.MostOften, int64(n))
	}
	return st
}
