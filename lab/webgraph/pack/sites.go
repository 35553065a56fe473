package pack

import "sort"

// sites are the first pages of sites, and the end. Without any, each page is a
// site of its own.
type sites []uint32

// siteIndex returns the site of page u.
func (s sites) siteIndex(u uint32) int {
	if len(s) == 0 {
		return int(u)
	}
	return sort.Search(len(s), func(i int) bool { return s[i] > u }) - 1
}

// siteSpan returns the first page of a site and the first after it.
func (s sites) siteSpan(i int) (lo, hi uint32) {
	if len(s) == 0 {
		return uint32(i), uint32(i) + 1
	}
	return s[i], s[i+1]
}
