package crawl

import (
	"context"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// waste remembers, for all agents, how many URLs of one shape each host has,
// which hosts say the same under the same paths, and which answers a host gives
// again and again. Its memory is bounded: a table that is full starts anew.
type waste struct {
	most int // entries of a table; 0 is maxEntries

	mu     sync.Mutex
	shapes map[uint64]int32
	pages  map[uint64]original // path, title and part of the simhash -> who had it first
	sample uint                // of 2^sample paths one is remembered
	equal  map[string]*twin
	alike  map[uint64]int32 // host and digest -> pages
	odd    map[string]bool  // hosts that answered different URLs alike
}

// twin counts how often a host repeats another.
type twin struct {
	host                 string
	of                   *twin
	exact, near, visited int
}

// original is a page that was the first of its kind.
type original struct {
	at      *twin
	simhash uint64
	path    uint64 // its hash
}

const (
	maxEntries = 1 << 20
	// mirrorPages is after how many pages a host is judged, mirrorShare how many
	// of them must stand on the other host under the same path.
	mirrorPages = 25
	mirrorShare = .95
	// deepSegments is from which depth of folders on a host gets few URLs.
	deepSegments = 8
)

// shape counts a URL that is about to be visited for the first time, and
// reports the kind of trap it looks like where the host has had more of its
// shape than the traps allow: URLs that differ in numbers only, deep folders. depth is
// the number of links from a start.
func (w *waste) shape(u weburl.URL, depth int, t *Traps) string {
	path := u.Path()
	host := hash(begun, u.Host())
	k, all := hashShape(host, path, u.Query()), hash(host, "\x00all")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full(len(w.shapes)) || w.shapes == nil {
		w.shapes = map[uint64]int32{}
	}
	limit, kind := int32(t.Shape), "one shape"
	switch {
	case strings.Count(path, "/") > deepSegments:
		limit, kind, k = min(max(int32(t.Deep), w.shapes[all]/8), max(deepFree, w.shapes[all]/2)), "deep folders", hash(host, "\x00deep")
	case dated(path):
		free := int32(datedFree)
		if depth > chainDepth {
			free = chainedFree
		}
		limit, kind = min(int32(t.Dated), max(free, w.shapes[all])), "calendar"
	default:
		w.shapes[all]++
		if u.Query() == "" && !strings.ContainsAny(path, "0123456789") {
			return "" // there is one such URL
		}
	}
	if w.shapes[k] >= limit {
		return kind
	}
	w.shapes[k]++
	return ""
}

// begun is the hash of nothing, by FNV-1a of 64 bits.
const begun = 0xcbf29ce484222325

const fnvPrime = 0x100000001b3

// hash goes on with a hash. The library's has to be given the whole name, made for
// it.
func hash(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}

// full reports whether a table with n entries takes no more. The caller holds
// mu.
func (w *waste) full(n int) bool {
	if w.most > 0 {
		return n >= w.most
	}
	return n >= maxEntries
}

// hashShape goes on with a hash by a path with its numbers made equal, and by the
// names of the query's parameters.
func hashShape(h uint64, path, query string) uint64 {
	number := false
	for i := range len(path) {
		switch again := number; {
		case !digit(path[i]):
			number, h = false, (h^uint64(path[i]))*fnvPrime
		default:
			if number = true; !again {
				h = (h ^ '#') * fnvPrime
			}
		}
	}
	for query != "" {
		var part string
		part, query, _ = strings.Cut(query, "&")
		name, _, _ := strings.Cut(part, "=")
		h = hash(hash(h, "&"), name)
	}
	return h
}

// dated reports whether a path ends in a year and a month, with a day or
// without: a page of a calendar, not an article filed under its date.
func dated(path string) bool {
	for i := 0; i+7 <= len(path); i++ {
		if (path[i] == '1' || path[i] == '2') && (i == 0 || !digit(path[i-1])) && digit(path[i+1]) && digit(path[i+2]) && digit(path[i+3]) &&
			(path[i+4] == '/' || path[i+4] == '-') && digit(path[i+5]) && digit(path[i+6]) && (i+7 == len(path) || !digit(path[i+7])) {
			return strings.Trim(path[i+7:], "0123456789/-") == "" || strings.Trim(path[i+7:], "0123456789/-") == ".html"
		}
	}
	return false
}

// mirror notes a page's content and returns the host whose copy this host has
// turned out to be, or "". Pages count as the same where path and title are the
// same, but for the host's name in it, and the simhashes of their texts differ in at most three bits (Manku, Jain,
// Das Sarma: Detecting near-duplicates for web crawling, 2007): of four parts of
// 16 bits one is then the same, and a page is remembered under each of the four.
// When the table is full, every other path is forgotten and not looked at any
// more: the same ones for all hosts, so that copies are still noticed.
func (w *waste) mirror(u weburl.URL, title string, simhash uint64) string {
	path, host := hash(begun, u.Target()), u.Host()
	name := hash(hash(path, "\x00"), anonymous(title, u.Hostname()))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.equal == nil || w.full(len(w.equal)) {
		w.pages, w.equal, w.sample = map[uint64]original{}, map[string]*twin{}, 0
	}
	for w.full(2 * (len(w.pages) + parts)) {
		w.sample++
		maps.DeleteFunc(w.pages, func(_ uint64, o original) bool { return !w.sampled(o.path) })
	}
	t := w.equal[host]
	if t == nil {
		t = &twin{host: strings.Clone(host)} // not the whole URL
		w.equal[t.host] = t
	}
	if !w.sampled(path) {
		return t.copyOf()
	}
	t.visited++
	first, known := w.original(name, simhash)
	if !known {
		for i := range parts {
			w.pages[part(name, simhash, i)] = original{t, simhash, path}
		}
		return ""
	}
	if first.at == t {
		return ""
	}
	if t.of == nil {
		t.of = first.at
	}
	if t.of == first.at {
		t.near++
		if first.simhash == simhash {
			t.exact++
		}
	}
	return t.copyOf()
}

// anonymous is a title without the words that name the host ("Rivers - mirror1" on
// mirror1.example.org), by which copies differ. A title that has few other letters
// stays as it is: it would be that of any page.
func anonymous(title, hostname string) string {
	var out []byte
	kept, left := 0, 0 // of title: up to where it is in out; letters of words that stay
	for at := 0; at < len(title); {
		end := len(title)
		if i := strings.IndexAny(title[at:], " |:,()/"); i >= 0 {
			end = at + i
		}
		if namesHost(title[at:end], hostname) {
			out, kept = append(out, title[kept:at]...), end
		} else {
			left += end - at
		}
		at = end + 1
	}
	if kept == 0 || left < anonymousLeast { // most titles: nothing is copied
		return title
	}
	return string(append(out, title[kept:]...))
}

// anonymousLeast is how many letters a title has beside the host's name.
const anonymousLeast = 4

// namesHost reports whether a word is a host's name or one of its labels, but for
// the last and for short ones: those are words of any title.
func namesHost(word, hostname string) bool {
	if len(word) < 4 || len(word) > len(hostname) {
		return false
	}
	if strings.EqualFold(word, hostname) || strings.EqualFold(word, strings.TrimPrefix(hostname, "www.")) {
		return true
	}
	for label, rest, more := strings.Cut(hostname, "."); more; label, rest, more = strings.Cut(rest, ".") {
		if strings.EqualFold(word, label) {
			return true
		}
	}
	return false
}

// parts is how many keys a page has: by the pigeonhole principle one of them is
// the same for two simhashes that differ in fewer bits.
const parts = 4

const golden = 0x9e3779b97f4a7c15 // spreads what FNV leaves together

// part is a page's key by one quarter of its simhash.
func part(name, simhash uint64, i int) uint64 {
	quarter := simhash >> (16 * i) & 0xffff
	h := (name ^ (quarter<<2|uint64(i))*golden) * golden
	return h ^ h>>32
}

// original returns the first page like this one. The caller holds mu.
func (w *waste) original(name, simhash uint64) (o original, ok bool) {
	for i := range parts {
		if o, ok = w.pages[part(name, simhash, i)]; ok && extract.Distance(o.simhash, simhash) < parts {
			return o, true
		}
	}
	return original{}, false
}

// sampled reports whether pages of a path are remembered. The caller holds mu.
func (w *waste) sampled(path uint64) bool { return path*golden>>(64-w.sample) == 0 }

// copyOf is the host whose copy this one is, or "".
func (t *twin) copyOf() string {
	if t.visited >= mirrorPages && float64(t.near) >= mirrorShare*float64(t.visited) {
		return t.of.host
	}
	return ""
}

// mirrorKind names the trap of a host that is a copy.
func (w *waste) mirrorKind(host string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.equal[host]; t != nil && float64(t.exact) < mirrorShare*float64(t.visited) {
		return "near-duplicate host"
	}
	return "mirror host"
}

// copyOf is the host whose copy a host has turned out to be, or "".
func (w *waste) copyOf(host string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.equal[host]; t != nil {
		return t.copyOf()
	}
	return ""
}

// answered counts a host's answer and reports whether different URLs had it.
func (w *waste) answered(host string, digest [16]byte) bool {
	k := hash(begun, host)
	for _, c := range digest {
		k = (k ^ uint64(c)) * fnvPrime
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alike == nil || w.full(len(w.alike)) {
		w.alike = map[uint64]int32{}
	}
	w.alike[k]++
	return w.alike[k] >= softSeen
}

// suspect marks a host to be asked for a page that cannot exist, or no more.
func (w *waste) suspect(host string, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !yes {
		delete(w.odd, host)
		return
	}
	if w.odd == nil || w.full(len(w.odd)) {
		w.odd = map[string]bool{}
	}
	w.odd[strings.Clone(host)] = true
}

func (w *waste) suspected(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.odd[host]
}

// notFoundAge is how long what a host answers for nonsense is believed.
const notFoundAge = 7 * 24 * time.Hour

// soft reports whether a page is the host's way of saying that there is none
// with status 200. A host is asked for a page that cannot exist once it has
// answered three different URLs alike; its answer is kept with the host. Where
// the host must rest first, the next agent asks. A page that is as it was before
// is no further URL.
func (a *agent) soft(ctx context.Context, u weburl.URL, before *store.Page, page *extract.Page, now time.Time) bool {
	if page.Sitemap || u.Path() == "/" || page.Length < softText {
		return false
	}
	w := &a.robot.waste
	if page.Digest != before.Digest && w.answered(a.host.Name, page.Digest) && now.Sub(a.host.Probed) > notFoundAge {
		if time.Until(a.host.Next) > patience {
			w.suspect(a.host.Name, true)
		} else {
			a.probe(ctx, u, now)
		}
	}
	return a.host.NotFound != 0 && extract.Distance(a.host.NotFound, page.Simhash) <= softDistance
}

// softSeen is how many URLs a host must have answered alike to be asked.
const softSeen = 3

// softText is how much text an apology has at least; pages with less are alike
// because they are empty.
const softText = 40

// softDistance is how many bits of a simhash the answers for nonsense differ
// in: they may name the address.
const softDistance = 3

// probe fetches a page that cannot exist, when the host's time has come.
func (a *agent) probe(ctx context.Context, u weburl.URL, now time.Time) {
	a.robot.waste.suspect(a.host.Name, false)
	name := fnv.New64a()
	_, _ = name.Write([]byte(u.Origin() + now.String()))
	at, err := weburl.Parse(u.Origin() + "/" + hex.EncodeToString(name.Sum(nil)) + ".html")
	if err != nil || a.rules == nil || !a.rules.Allowed(at.Target()) {
		return
	}
	res, err := a.beside(ctx, fetch.Request{URL: at})
	if ctx.Err() != nil || errors.Is(err, errBudget) {
		return
	}
	if err != nil {
		a.host.Probed = now.Add(time.Hour - notFoundAge) // in an hour again
		return
	}
	a.host.Probed, a.host.NotFound = now, 0
	if res.Status == http.StatusOK {
		a.host.NotFound = extract.Document(res.Body, res.Header.Get("Content-Type"), at, extract.Options{}).Simhash
	}
}
