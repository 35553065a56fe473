package invert

import (
	"strings"

	"github.com/freshet/freshet/index/analysis"
)

// formID is the number of a form of a word; 0 is no word.
type formID = uint32

// vocabularyLimit is the number of forms from which on a vocabulary is begun
// again after a flush: spam brings new words without end.
const vocabularyLimit = 1 << 20

// form is a word in lower case. Forms with accents and without share a word.
type form struct {
	word  string   // folded
	lower string   // as a stemmer takes it
	stems []uint32 // by language, number of the stem + 1; 0 is not looked up yet
}

// vocabulary numbers forms. It lives longer than a buffer, so most words of a
// text cost a lookup. All tables hash with a random seed, so nobody can choose
// words that collide.
type vocabulary struct {
	short shortWords        // ASCII words of up to 16 bytes in lower case
	raw   map[string]formID // other words as they are written
	lower map[string]formID // the same in lower case
	forms []form            // by number; the first is unused

	stemNumber map[string]uint32
	stemTexts  []string
}

func newVocabulary() *vocabulary {
	return &vocabulary{
		short: newShortWords(), raw: map[string]formID{}, lower: map[string]formID{}, forms: make([]form, 1),
		stemNumber: map[string]uint32{},
	}
}

// isFull reports whether the vocabulary should be begun again.
func (v *vocabulary) isFull() bool {
	return len(v.forms) > vocabularyLimit || len(v.raw) > vocabularyLimit || len(v.stemTexts) > vocabularyLimit
}

// asciiLower gives the lower case of ASCII letters and digits, 0 for other
// bytes below 128, and joins for bytes that may belong to a longer word.
var asciiLower = func() (t [256]byte) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z':
			t[c] = byte(c)
		case c >= 'A' && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		case c == '\'', c >= 0x80:
			t[c] = joins
		}
	}
	return t
}()

const joins = 1

// appendWords appends the number of each word of text to row, at most limit
// numbers in all; 0 stands for a word that is too long to be indexed.
func (v *vocabulary) appendWords(row []formID, text string, limit int) []formID {
	for i := 0; i < len(text) && len(row) < limit; {
		c := asciiLower[text[i]]
		if c == 0 || c == joins && text[i] == '\'' {
			i++
			continue
		}
		start := i
		var key [2]uint64
		for c > joins && i-start < 16 {
			key[(i-start)>>3] |= uint64(c) << ((i - start) & 7 * 8)
			if i++; i == len(text) {
				c = 0
				break
			}
			c = asciiLower[text[i]]
		}
		if c == 0 {
			id := v.short.findWord(key)
			if id == 0 {
				id = v.addShort(key, text[start:i])
			}
			row = append(row, id)
			continue
		}
		end, isSpaceless := analysis.ScanWord(text, start)
		if end == start { // a sign, or invalid UTF-8
			i = start + signLength(text[start:])
			continue
		}
		i = end
		row = append(row, v.longWordID(text[start:end], isSpaceless))
	}
	return row
}

func signLength(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

func (v *vocabulary) addShort(key [2]uint64, word string) formID {
	w := strings.ToLower(strings.Clone(word))
	id := v.addForm(form{word: w, lower: w})
	v.short.addWord(key, id)
	return id
}

func (v *vocabulary) addForm(f form) formID {
	v.forms = append(v.forms, f)
	return formID(len(v.forms) - 1)
}

// longWordID returns the number of a word that is long or not ASCII.
func (v *vocabulary) longWordID(word string, isSpaceless bool) formID {
	if len(word) > analysis.MaxWord {
		return 0
	}
	if id, ok := v.raw[word]; ok {
		return id
	}
	word = strings.Clone(word)
	f := form{word: word, lower: word}
	if !isSpaceless {
		f.lower = analysis.Lower(word)
		f.word = analysis.Fold(f.lower)
	}
	id, ok := v.lower[f.lower]
	if !ok {
		if id = 0; f.word != "" {
			id = v.addForm(f)
		}
		v.lower[f.lower] = id
	}
	v.raw[word] = id
	return id
}

// stemOf returns the number of the stem of a form in a language, from 1 on; 0
// for none.
func (v *vocabulary) stemOf(id formID, language int, a analysis.Analyzer) uint32 {
	f := &v.forms[id]
	for len(f.stems) <= language {
		f.stems = append(f.stems, 0)
	}
	n := f.stems[language]
	if n == 0 {
		n = v.numberOfStem(a.Stem(f.lower))
		f.stems[language] = n
	}
	return n - 1
}

// numberOfStem returns the number of a stem + 1; 1 is the empty one.
func (v *vocabulary) numberOfStem(text string) uint32 {
	if text == "" {
		return 1
	}
	n, ok := v.stemNumber[text]
	if !ok {
		v.stemTexts = append(v.stemTexts, text)
		n = uint32(len(v.stemTexts)) + 1
		v.stemNumber[text] = n
	}
	return n
}

// stemText is the text of a stem of stemOf.
func (v *vocabulary) stemText(n uint32) string { return v.stemTexts[n-1] }
