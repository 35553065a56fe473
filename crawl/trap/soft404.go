package trap

import (
	"strings"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/weburl"
)

// NotFoundAge is how long a host's answer to a request for a page that cannot exist is
// taken as valid.
const NotFoundAge = 7 * 24 * time.Hour

const (
	// soft404Answers is how many URLs a host must have given the same answer before it is
	// asked for a page that cannot exist.
	soft404Answers = 3
	// soft404Text is the length of text an apology has at least. Pages with less are equal
	// because they are empty.
	soft404Text = 40
	// soft404Distance is how many bits of a simhash two apologies may differ in: they may
	// name the URL.
	soft404Distance = 3
)

// MayBeSoft404 reports whether a page may be its host's way of saying, with status 200, that
// there is no such page. A start page, a sitemap and a page with hardly any text is not.
func MayBeSoft404(u weburl.URL, page *extract.Page) bool {
	return !page.Sitemap && u.Path() != "/" && page.Length >= soft404Text
}

// EqualsNotFound reports whether a page is what its host answers to a request for a page that
// cannot exist. notFound is the simhash of that answer, 0 if there is none.
func EqualsNotFound(notFound, simhash uint64) bool {
	return notFound != 0 && extract.Distance(notFound, simhash) <= soft404Distance
}

// RepeatsAnswer counts a host's answer and reports whether soft404Answers URLs had it.
func (d *Detector) RepeatsAnswer(host string, digest [16]byte) bool {
	key := appendHash(hashStart, host)
	for _, c := range digest {
		key = (key ^ uint64(c)) * fnvPrime
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.answers == nil || d.isFull(len(d.answers)) {
		d.answers = map[uint64]int32{}
	}
	d.answers[key]++
	return d.answers[key] >= soft404Answers
}

// SuspectSoft404 notes that a host is to be asked for a page that cannot exist, or no more.
func (d *Detector) SuspectSoft404(host string, suspected bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !suspected {
		delete(d.soft404Suspect, host)
		return
	}
	if d.soft404Suspect == nil || d.isFull(len(d.soft404Suspect)) {
		d.soft404Suspect = map[string]bool{}
	}
	d.soft404Suspect[strings.Clone(host)] = true
}

// IsSoft404Suspect reports whether a host is to be asked for a page that cannot exist.
func (d *Detector) IsSoft404Suspect(host string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.soft404Suspect[host]
}
