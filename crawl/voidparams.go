package crawl

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/weburl"
)

// A void parameter is a query parameter that changes nothing on its host, such as one
// that scripts add to every link. Pairs of pages whose URLs differ in one parameter only
// teach it: the evidence is in store.Host, and variantTable has what it is compared with.
//
// Stripping a parameter that matters would lose pages. So agreements must come from
// different URLs with different texts (an empty shell or an apology is equal everywhere),
// a share of variants is fetched all the same, and what was stripped is queued again when
// one of them contradicts.

// Bounds of the evidence and of the memory.
const (
	minVariantText = 200            // bytes of text; shorter pages are alike by chance
	maxVariantAge  = 24 * time.Hour // two visits further apart may see a change of the page
	maxVariants    = 1 << 18        // pages that are remembered
	maxStripped    = 1 << 16        // stripped URLs that are remembered
	maxParameters  = 64             // of a host
	maxNameBytes   = 64
	maxPageParams  = 8
	checkedBases   = 16 // of so many bases one has its first variant fetched
	checkedValues  = 3  // the second and third value of one base are fetched, too
	promotedPairs  = 4  // pairs of one parameter that go to the front of the render queue
)

// variantContent is what is compared of two variants of a page.
type variantContent struct {
	title   uint64
	simhash uint64
	paths   uint64 // sum of the hashes of the links without their queries
	length  int
}

// goneContent stands for a page that does not exist.
var goneContent = variantContent{length: -1}

func contentOf(page *extract.Page) variantContent {
	c := variantContent{title: appendHash(hashStart, page.Title), simhash: page.Simhash, length: page.Length}
	for i := range page.Links {
		u := page.Links[i].URL
		c.paths += appendHash(appendHash(hashStart, u.Host()), u.Path())
	}
	return c
}

// compare reports whether two texts are near-duplicates, and whether they are equal with the
// paths of all links.
func (c variantContent) compare(d variantContent) (near, equal bool) {
	near = c.title == d.title && (c.length < 0) == (d.length < 0) && extract.Distance(c.simhash, d.simhash) <= 3
	return near, near && c.simhash == d.simhash && c.length == d.length && c.paths == d.paths
}

// variant is a page that others are compared with.
type variant struct {
	key     weburl.Key
	name    string // of the parameter that its base does not have
	value   uint64 // its hash
	at      time.Time
	content variantContent
}

// strippedBase is a URL to which variants were stripped.
type strippedBase struct {
	host, name string
	values     []uint64 // the first ones
	waiting    []strippedURL
}

// strippedURL is queued if the parameter turns out to matter.
type strippedURL struct {
	url   weburl.URL
	depth int
}

// variantTable remembers, for all agents, pages to compare variants with, and what was
// stripped. Its memory is bounded: a table that is full starts empty again.
type variantTable struct {
	mu       sync.Mutex
	pages    map[uint64]variant
	void     map[string][]string // by host
	bases    map[uint64]*strippedBase
	stripped int            // URLs in bases
	promoted map[uint64]int // pairs that were promoted, by host and parameter
}

// withoutParameter returns u without a parameter, and the parameter's value.
func withoutParameter(u weburl.URL, name string) (base weburl.URL, value string, ok bool) {
	var kept, values []string
	for part := range strings.SplitSeq(u.Query(), "&") {
		n, v, _ := strings.Cut(part, "=")
		if n == name {
			values = append(values, v)
		} else {
			kept = append(kept, part)
		}
	}
	if values == nil {
		return u, "", false
	}
	s := u.Origin() + u.Path()
	if kept != nil {
		s += "?" + strings.Join(kept, "&")
	}
	base, err := weburl.Parse(s)
	return base, strings.Join(values, "&"), err == nil
}

// parameterNames are the names in a query, each once; nil if there are too many.
func parameterNames(u weburl.URL) (names []string) {
	if u.Query() == "" {
		return nil
	}
	for part := range strings.SplitSeq(u.Query(), "&") {
		n, _, _ := strings.Cut(part, "=")
		if n != "" && len(n) <= maxNameBytes && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) > maxPageParams {
		return nil
	}
	return names
}

// variantPair is a page and one with the same URL but for one parameter.
type variantPair struct {
	name   string
	base   uint64
	values [2]uint64
	other  variant
}

const absentValue = 1 // hash of the value of a parameter that is not there

// note remembers a page and returns those that differ from it in one parameter. kind keeps
// pages as fetched and as rendered apart.
func (t *variantTable) note(u weburl.URL, kind string, c variantContent, now time.Time) (pairs []variantPair) {
	names := parameterNames(u)
	if names == nil && u.Query() != "" {
		return nil
	}
	own := appendHash(appendHash(hashStart, kind), u.String())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pages == nil || len(t.pages) > maxVariants {
		t.pages = map[uint64]variant{}
	}
	fresh := func(v variant, ok bool) bool { return ok && now.Sub(v.at) < maxVariantAge }
	if v, ok := t.pages[appendHash(own, "?")]; fresh(v, ok) { // a variant came before its base
		pairs = append(pairs, variantPair{name: v.name, base: own, values: [2]uint64{absentValue, v.value}, other: v})
	}
	for _, name := range names {
		b, text, ok := withoutParameter(u, name)
		if !ok {
			continue
		}
		base, value := appendHash(appendHash(hashStart, kind), b.String()), appendHash(hashStart, text)
		if v, ok := t.pages[base]; fresh(v, ok) {
			pairs = append(pairs, variantPair{name: name, base: base, values: [2]uint64{absentValue, value}, other: v})
		}
		first, ok := t.pages[appendHash(base, "?")]
		if fresh(first, ok) && first.name == name && first.value != value {
			pairs = append(pairs, variantPair{name: name, base: base, values: [2]uint64{first.value, value}, other: first})
		}
		if !fresh(first, ok) || first.name == name && first.value == value {
			t.pages[appendHash(base, "?")] = variant{key: u.Key(), name: strings.Clone(name), value: value, at: now, content: c}
		}
	}
	t.pages[own] = variant{key: u.Key(), at: now, content: c}
	return pairs
}

// publish makes the void parameters of a host known to those who do not own it.
func (t *variantTable) publish(host string, names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(names) == 0 {
		delete(t.void, host)
		return
	}
	if t.void == nil || len(t.void) > maxVariants {
		t.void = map[string][]string{}
	}
	t.void[strings.Clone(host)] = names
}

// voidParameter returns the void parameter of a URL, or "".
func (t *variantTable) voidParameter(u weburl.URL) string {
	if u.Query() == "" {
		return ""
	}
	t.mu.Lock()
	names := t.void[u.Host()]
	t.mu.Unlock()
	for _, n := range names {
		if _, _, ok := withoutParameter(u, n); ok {
			return n
		}
	}
	return ""
}

// strips reports whether a variant is taken for its base, and remembers it until then. The
// answer for one URL stays the same. Of each base the second and third value are not, of
// some the first is not either: they are fetched, and compared with the base.
func (t *variantTable) strips(u, base weburl.URL, name, value string, depth int) bool {
	k := appendHash(appendHash(appendHash(hashStart, name), "="), base.String())
	v := appendHash(hashStart, value)
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.bases[k]
	if b == nil {
		if t.bases == nil || len(t.bases) >= maxVariants {
			t.bases, t.stripped = map[uint64]*strippedBase{}, 0
		}
		b = &strippedBase{host: strings.Clone(u.Host()), name: strings.Clone(name)}
		t.bases[k] = b
	}
	i := slices.Index(b.values, v)
	if i < 0 && len(b.values) < checkedValues {
		i = len(b.values)
		b.values = append(b.values, v)
	}
	if i > 0 || i == 0 && k*hashSpread>>32%checkedBases == 0 {
		return false
	}
	if t.stripped < maxStripped && !slices.ContainsFunc(b.waiting, func(s strippedURL) bool { return s.url == u }) {
		b.waiting = append(b.waiting, strippedURL{u, depth})
		t.stripped++
	}
	return true
}

// takeStripped returns what was stripped of a host's parameter, and forgets it.
func (t *variantTable) takeStripped(host, name string) (urls []strippedURL) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, b := range t.bases {
		if b.host == host && b.name == name {
			urls = append(urls, b.waiting...)
			t.stripped -= len(b.waiting)
			delete(t.bases, k)
		}
	}
	return urls
}

// promotes reports whether one more pair of a parameter may go before others.
func (t *variantTable) promotes(host string, name string) bool {
	k := appendHash(appendHash(appendHash(hashStart, host), "\x00"), name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.promoted == nil || len(t.promoted) >= maxVariants {
		t.promoted = map[uint64]int{}
	}
	t.promoted[k]++
	return t.promoted[k] <= promotedPairs
}

// Hashes of texts: FNV-1a, 64 bits. hashSpread spreads what FNV leaves together.
const (
	hashStart  = 0xcbf29ce484222325
	hashPrime  = 0x100000001b3
	hashSpread = 0x9e3779b97f4a7c15
)

// appendHash continues the hash h with text.
func appendHash(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * hashPrime
	}
	return h
}
