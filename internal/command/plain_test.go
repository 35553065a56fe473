package command

import (
	"strings"
	"testing"
)

// Whatever a page's title holds, a terminal shows letters and obeys nothing.
func TestPlainText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"title \x1b]0;PWNED\x07\x1b[2J":  "title ]0;PWNED[2J",
		"C1 \u009b31m \u009d0;x\u009c":   "C1 31m 0;x",
		"raw C1 \x9b31m":                 "raw C1 \ufffd31m",
		"back\b\b\r over":                "back over",
		"safe\u202egpj.exe\u2066x\u2069": "safegpj.exex",
		"\u200emark\u061c":               "mark",
		"žąsis 東京 👩‍👩‍👧 ﷽\n\tnext":       "žąsis 東京 👩‍👩‍👧 ﷽\n\tnext",
		"\x00\x7f": "",
	} {
		if got := PlainText(in); got != want {
			t.Errorf("PlainText(%q) = %q, want %q", in, got, want)
		}
	}
	var b strings.Builder
	if n, err := (plainWriter{&b}).Write([]byte("a\x1bb")); n != 3 || err != nil || b.String() != "ab" {
		t.Errorf("wrote %d, %v, %q", n, err, b.String())
	}
	if w := ForReader(&b); w != &b {
		t.Error("what is no terminal is changed")
	}
}
