package command

import (
	"io"
	"os"
	"strings"
	"unicode"
)

// PlainText returns text without what a terminal obeys or what changes the order of
// letters: titles, addresses and messages of foreign servers may hold it. Line
// breaks and tabs stay, bytes that are no UTF-8 become U+FFFD.
func PlainText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}

// plainWriter writes text by PlainText.
type plainWriter struct{ io.Writer }

// Write implements io.Writer.
func (w plainWriter) Write(b []byte) (int, error) {
	_, err := io.WriteString(w.Writer, PlainText(string(b)))
	return len(b), err
}

// IsTerminal reports whether a person reads what is written to w as it appears.
func IsTerminal(w io.Writer) bool {
	if p, ok := w.(plainWriter); ok {
		w = p.Writer
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// ForReader returns w, or, where it is a terminal, a writer to it of plain text.
func ForReader(w io.Writer) io.Writer {
	if IsTerminal(w) {
		return plainWriter{w}
	}
	return w
}
