// Package term says what terms mean in the index of pages: a byte for the
// field, then the text. Words have positions, all others have not.
package term

// Field is the first byte of a term.
type Field byte

// The fields, in the order of the dictionary.
const (
	Host Field = iota + 1 // a host or a domain above it
	Type
	Lang
	Kind
	Word // a folded word
	Stem // the folded stem of words in the language of their document
)

// HasPositions reports whether the lists of a field have positions.
func (f Field) HasPositions() bool { return f == Word }

// Key returns the term of a text.
func Key(f Field, text string) []byte { return append([]byte{byte(f)}, text...) }

// AppendKey appends the term of a text to dst.
func AppendKey(dst []byte, f Field, text string) []byte { return append(append(dst, byte(f)), text...) }
