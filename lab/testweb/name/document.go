package name

// minLetters is the least length of a document's name: aaaa.html.
const minLetters = 4

// suffix ends every document's name.
const suffix = ".html"

// AppendDocument appends the path of a document, "/aaaa.html" for 0: the number
// in base 26, padded to four letters, longer from 26^4 = 456,976 on.
func AppendDocument(dst []byte, doc uint64) []byte {
	var buf [16]byte
	i := len(buf)
	for n := 0; n < minLetters || doc > 0; n++ {
		i--
		buf[i] = 'a' + byte(doc%26)
		doc /= 26
	}
	dst = append(dst, '/')
	dst = append(dst, buf[i:]...)
	return append(dst, suffix...)
}

// Document returns the path of a document.
func Document(doc uint64) string { return string(AppendDocument(nil, doc)) }

// ParseDocument returns the document number of a path. Exactly the paths that
// Document makes have one, so no page has two.
func ParseDocument(path string) (doc uint64, ok bool) {
	n := len(path) - 1 - len(suffix)
	if n < minLetters || n > 13 || path[0] != '/' || path[1+n:] != suffix {
		return 0, false
	}
	letters := path[1 : 1+n]
	if n > minLetters && letters[0] == 'a' {
		return 0, false
	}
	for _, c := range []byte(letters) {
		if c < 'a' || c > 'z' {
			return 0, false
		}
		doc = doc*26 + uint64(c-'a')
	}
	return doc, true
}
