package postings

// fieldCap bounds the counts of title and URL within a code.
const fieldCap = 3

// maxTotal bounds the total of a code; a document has fewer words.
const maxTotal = 1<<20 - 1

// PackCode returns the code of a term with total occurrences in a document, of
// which title are in the title and url in the URL. Most terms of a document
// stand in its body alone, so these take one bit more than the frequency:
//
//	even   2 (total - 1): in the body only
//	odd    1 | min(url,3) << 1 | min(title,3) << 3 | total << 5
//
// The total counts every position, so a reader knows how many there are.
func PackCode(total, title, url uint32) uint32 {
	total = min(total, maxTotal)
	if title|url == 0 {
		return (total - 1) << 1
	}
	return 1 | min(url, fieldCap)<<1 | min(title, fieldCap)<<3 | total<<5
}

// UnpackCode returns what PackCode was given; counts of title and URL are at
// most 3.
func UnpackCode(c uint32) (total, title, url uint32) {
	if c&1 == 0 {
		return min(c>>1+1, maxTotal), 0, 0
	}
	return min(c>>5, maxTotal), c >> 3 & fieldCap, c >> 1 & fieldCap
}

// AddCodes returns the code of two terms of one document taken as one.
func AddCodes(a, b uint32) uint32 {
	ta, wa, ua := UnpackCode(a)
	tb, wb, ub := UnpackCode(b)
	return PackCode(ta+tb, wa+wb, ua+ub)
}
