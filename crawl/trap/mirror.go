package trap

import (
	"maps"
	"strings"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/weburl"
)

// mirrorCandidate counts how many pages of a host are the pages of another host.
type mirrorCandidate struct {
	host                 string
	of                   *mirrorCandidate
	exact, near, visited int
	standing             Standing
	since                time.Time // when it turned out to be a copy
}

// Standing is what decides which of two equal hosts is the copy.
type Standing struct {
	IsSource bool  // the operator named the host: it is never set aside
	Pages    int64 // kept pages of the host
}

// yieldsTo reports whether a host is set aside for another: a source never is, and a host
// with more pages is not set aside for one with fewer, which may have copied it.
func (s Standing) yieldsTo(other Standing) bool {
	return !s.IsSource && (other.IsSource || s.Pages <= other.Pages)
}

// MirrorAge is how long a host that looks like a copy is set aside, and how long a page
// that was not seen again counts as the original. Then the host is judged again: the
// original may have been the copy, or be gone.
const MirrorAge = 30 * 24 * time.Hour

// originalPage is the first page that was seen with its path, title and text.
type originalPage struct {
	on      *mirrorCandidate
	simhash uint64
	path    uint64 // hash of the path
	seen    time.Time
}

const (
	// mirrorPages is the number of pages after which a host is judged, mirrorShare the part
	// of them that must be on the other host under the same path.
	mirrorPages = 25
	mirrorShare = .95
)

// MirrorText is the length of text a page must have to tell hosts apart.
const MirrorText = 200

// MirrorOf notes a page's content and returns the host whose copy this host has turned out
// to be, or "". Pages count as equal if path and title are equal (except for the host's name
// in the title) and the simhashes of their texts differ in at most three bits (Manku, Jain,
// Das Sarma: Detecting near-duplicates for web crawling, 2007). Of four parts of 16 bits one
// is then equal, so a page is remembered under each of the four. If the table is full, every
// other path is forgotten and ignored from then on: the same paths for all hosts, so that
// copies are still noticed.
func (d *Detector) MirrorOf(u weburl.URL, title string, simhash uint64, own Standing, now time.Time) string {
	path, host := appendHash(hashStart, u.Target()), u.Host()
	name := appendHash(appendHash(path, "\x00"), withoutHostName(title, u.Hostname()))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.candidates == nil || d.isFull(len(d.candidates)) {
		d.originals, d.candidates, d.sampleBits = map[uint64]originalPage{}, map[string]*mirrorCandidate{}, 0
	}
	for d.isFull(2 * (len(d.originals) + simhashParts)) {
		d.sampleBits++
		maps.DeleteFunc(d.originals, func(_ uint64, o originalPage) bool { return !d.isSampled(o.path) })
	}
	c := d.candidates[host]
	if c == nil {
		c = &mirrorCandidate{host: strings.Clone(host)} // not the whole URL
		d.candidates[c.host] = c
	}
	c.standing = own
	if !d.isSampled(path) {
		return c.copyOf(now)
	}
	c.visited++
	original, known := d.findOriginal(name, simhash, now)
	if !known || original.on == c {
		d.rememberOriginal(originalPage{c, simhash, path, now}, name)
		return ""
	}
	if c.of == nil {
		c.of = original.on
	}
	if c.of == original.on {
		c.near++
		if original.simhash == simhash {
			c.exact++
		}
	}
	if c.isCopy() && !c.standing.yieldsTo(c.of.standing) {
		c.changeRoles()
	}
	return c.copyOf(now)
}

// ConfirmPage notes that a page is still there, so that it remains an original.
func (d *Detector) ConfirmPage(u weburl.URL, title string, simhash uint64, now time.Time) {
	path, host := appendHash(hashStart, u.Target()), u.Host()
	name := appendHash(appendHash(path, "\x00"), withoutHostName(title, u.Hostname()))
	d.mu.Lock()
	defer d.mu.Unlock()
	if original, known := d.findOriginal(name, simhash, now); known && original.on.host == host {
		original.seen = now
		d.rememberOriginal(original, name)
	}
}

// CopyOf returns the host whose copy a host has turned out to be, or "".
func (d *Detector) CopyOf(host string, now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.candidates[host]; c != nil {
		return c.copyOf(now)
	}
	return ""
}

// MirrorKind returns the kind of trap of a host that is a copy: Mirror or NearDuplicate.
func (d *Detector) MirrorKind(host string) Kind {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.candidates[host]; c != nil && float64(c.exact) < mirrorShare*float64(c.visited) {
		return NearDuplicate
	}
	return Mirror
}

// changeRoles makes the host that was seen first the copy of c, unless that host is not set
// aside either.
func (c *mirrorCandidate) changeRoles() {
	of := c.of
	if of.standing.yieldsTo(c.standing) {
		of.of, of.exact, of.near, of.visited, of.since = c, c.exact, c.near, c.visited, time.Time{}
	}
	c.of, c.exact, c.near, c.visited = nil, 0, 0, 0
}

func (c *mirrorCandidate) isCopy() bool {
	return c.of != nil && c.visited >= mirrorPages && float64(c.near) >= mirrorShare*float64(c.visited)
}

// copyOf returns the host whose copy c is, or "". After MirrorAge c is judged again.
func (c *mirrorCandidate) copyOf(now time.Time) string {
	if !c.isCopy() {
		return ""
	}
	if c.since.IsZero() {
		c.since = now
	}
	if now.Sub(c.since) >= MirrorAge {
		c.of, c.exact, c.near, c.visited, c.since = nil, 0, 0, 0, time.Time{}
		return ""
	}
	return c.of.host
}

// rememberOriginal keeps an original under each part of its simhash. The caller holds mu.
func (d *Detector) rememberOriginal(o originalPage, name uint64) {
	for i := range simhashParts {
		d.originals[originalKey(name, o.simhash, i)] = o
	}
}

// findOriginal returns the original of a page. The caller holds mu.
func (d *Detector) findOriginal(name, simhash uint64, now time.Time) (o originalPage, ok bool) {
	for i := range simhashParts {
		if o, ok = d.originals[originalKey(name, simhash, i)]; ok && now.Sub(o.seen) < MirrorAge && extract.Distance(o.simhash, simhash) < simhashParts {
			return o, true
		}
	}
	return originalPage{}, false
}

// isSampled reports whether pages of a path are remembered. The caller holds mu.
func (d *Detector) isSampled(path uint64) bool { return path*goldenRatio>>(64-d.sampleBits) == 0 }

// simhashParts is the number of keys of a page: by the pigeonhole principle one of them is
// equal for two simhashes that differ in fewer bits.
const simhashParts = 4

const goldenRatio = 0x9e3779b97f4a7c15 // spreads the bits that FNV leaves together

// originalKey returns a page's key by one quarter of its simhash.
func originalKey(name, simhash uint64, i int) uint64 {
	quarter := simhash >> (16 * i) & 0xffff
	h := (name ^ (quarter<<2|uint64(i))*goldenRatio) * goldenRatio
	return h ^ h>>32
}

// withoutHostName returns a title without the words that name the host ("Rivers - mirror1" on
// mirror1.example.org), in which copies differ. A title with few other letters is returned
// as it is: without the name it could be the title of any page.
func withoutHostName(title, hostname string) string {
	var out []byte
	copied, otherLetters := 0, 0 // of title: up to where it is in out; letters of words that stay
	for at := 0; at < len(title); {
		end := len(title)
		if i := strings.IndexAny(title[at:], " |:,()/"); i >= 0 {
			end = at + i
		}
		if namesHost(title[at:end], hostname) {
			out, copied = append(out, title[copied:at]...), end
		} else {
			otherLetters += end - at
		}
		at = end + 1
	}
	if copied == 0 || otherLetters < minOtherLetters { // most titles: nothing is copied
		return title
	}
	return string(append(out, title[copied:]...))
}

// minOtherLetters is how many letters a title must have besides the host's name.
const minOtherLetters = 4

// namesHost reports whether a word is a host's name or one of its labels. The last label and
// short ones do not count: they are words of any title.
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
