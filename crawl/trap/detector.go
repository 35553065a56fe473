package trap

import (
	"strings"
	"sync"

	"github.com/freshet/freshet/weburl"
)

// Detector remembers, for all agents, how many URLs of one shape each host has, which
// hosts show the same pages under the same paths, and which answers a host repeats. Its
// memory is bounded: a full table begins empty again. The zero value is ready to use.
type Detector struct {
	maxTable int // entries of a table; 0 is maxEntries

	mu             sync.Mutex
	shapes         map[uint64]int32            // host and shape -> URLs
	originals      map[uint64]originalPage     // path, title and part of the simhash -> first page
	sampleBits     uint                        // one of 2^sampleBits paths is remembered
	candidates     map[string]*mirrorCandidate // by host
	answers        map[uint64]int32            // host and digest -> pages
	soft404Suspect map[string]bool             // hosts that gave different URLs the same answer
}

// maxEntries bounds a table of a Detector.
const maxEntries = 1 << 20

// isFull reports whether a table with n entries takes no more. The caller holds mu.
func (d *Detector) isFull(n int) bool {
	if d.maxTable > 0 {
		return n >= d.maxTable
	}
	return n >= maxEntries
}

// deepSegments is the number of folders in a path above which a host gets few URLs.
const deepSegments = 8

// CountShape counts a URL that is about to be visited for the first time. It returns the
// kind of trap if its host has had more URLs of the same shape than the limits allow: URLs
// that differ in numbers only, dates, deep folders. depth is the number of links from a start.
func (d *Detector) CountShape(u weburl.URL, depth int, limits *Limits) Kind {
	path := u.Path()
	host := appendHash(hashStart, u.Host())
	shape, all := hashShape(host, path, u.Query()), appendHash(host, "\x00all")
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isFull(len(d.shapes)) || d.shapes == nil {
		d.shapes = map[uint64]int32{}
	}
	limit, kind := int32(limits.Shape), OneShape
	switch {
	case strings.Count(path, "/") > deepSegments:
		shape, kind = appendHash(host, "\x00deep"), DeepFolders
		limit = min(max(int32(limits.Deep), d.shapes[all]/8), max(deepFree, d.shapes[all]/2))
	case endsInDate(path):
		free := int32(datedFree)
		if depth > chainDepth {
			free = chainedFree
		}
		limit, kind = min(int32(limits.Dated), max(free, d.shapes[all])), Calendar
	default:
		d.shapes[all]++
		if u.Query() == "" && !strings.ContainsAny(path, "0123456789") {
			return "" // there is one such URL
		}
		if depth > longChainDepth { // each was found on the one before
			limit = min(limit, max(longChain, d.shapes[all]-d.shapes[shape]))
		}
	}
	if d.shapes[shape] >= limit {
		if kind == OneShape {
			d.shapes[all]-- // it is not visited
		}
		return kind
	}
	d.shapes[shape]++
	return ""
}

// hashStart is the FNV-1a hash, 64 bits, of the empty string.
const hashStart = 0xcbf29ce484222325

const fnvPrime = 0x100000001b3

// appendHash continues the hash h with text, without an allocation.
func appendHash(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}

// hashShape continues the hash h with a path, in which all numbers count as equal, and with
// the names of the query's parameters.
func hashShape(h uint64, path, query string) uint64 {
	inNumber := false
	for i := range len(path) {
		switch continued := inNumber; {
		case !isDigit(path[i]):
			inNumber, h = false, (h^uint64(path[i]))*fnvPrime
		default:
			if inNumber = true; !continued {
				h = (h ^ '#') * fnvPrime
			}
		}
	}
	for query != "" {
		var parameter string
		parameter, query, _ = strings.Cut(query, "&")
		name, _, _ := strings.Cut(parameter, "=")
		h = appendHash(appendHash(h, "&"), name)
	}
	return h
}

// endsInDate reports whether a path ends in a year and a month, with or without a day: a
// page of a calendar, not an article filed under its date.
func endsInDate(path string) bool {
	for i := 0; i+7 <= len(path); i++ {
		if (path[i] == '1' || path[i] == '2') && (i == 0 || !isDigit(path[i-1])) && isDigit(path[i+1]) && isDigit(path[i+2]) && isDigit(path[i+3]) &&
			(path[i+4] == '/' || path[i+4] == '-') && isDigit(path[i+5]) && isDigit(path[i+6]) && (i+7 == len(path) || !isDigit(path[i+7])) {
			rest := strings.Trim(path[i+7:], "0123456789/-")
			return rest == "" || rest == ".html"
		}
	}
	return false
}
