package query

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Each hostile query is refused with the bound that it exceeds; ordinary ones
// of people and of the search page's links are not.
func TestBounds(t *testing.T) {
	t.Parallel()
	join := func(n int, sep string, word func(i int) string) string {
		words := make([]string, n)
		for i := range words {
			words[i] = word(i)
		}
		return strings.Join(words, sep)
	}
	numbered := func(i int) string { return fmt.Sprintf("w%d", i) }
	letters := func(i int) string { return string(rune('a'+i%26)) + "*" }
	tests := []struct{ name, query, want string }{
		{"ordinary", `library -"greatest hits" host:lib.example size:>1mb madon*`, ""},
		{"a long sentence", join(40, " ", numbered), ""},
		{"a long phrase", `"` + join(90, " ", numbered) + `"`, ""},
		{"one Han character with a star", "東*", ""},
		{"two letters with a star", "жи*", ""},
		{"punctuation with a star", "!*", ""},
		{"nested as people do", "((a OR b) (c OR (d e)))", ""},
		{"thousand words", join(700, " ", numbered), "words and conditions: at most 64"},
		{"thousand alternatives", join(400, " OR ", numbered), "words and conditions: at most 64"},
		{"thousand exclusions", join(500, " -", numbered), "words and conditions: at most 64"},
		{"thousand filters", join(200, " ", func(i int) string { return fmt.Sprintf("host:h%d", i) }), "words and conditions: at most 64"},
		{"all letters", join(26, " OR ", letters), "26 words end with a star"},
		{"few letters", "a* OR b*", "a* stands for too many words"},
		{"a letter excluded", "x -a*", "a* stands for too many words"},
		{"a letter of a field", "title:a*", "a* stands for too many words"},
		{"a combined letter", "e\u0301*", "stands for too many words"},
		{"a letter in signs", "'a'*", "stands for too many words"},
		{"many prefixes", join(9, " ", func(i int) string { return fmt.Sprintf("word%d*", i) }), "9 words end with a star"},
		{"hyphens", join(500, "-", numbered), "500 words: at most 96"},
		{"Han text", strings.Repeat("東京", 100), "200 words: at most 96"},
		{"phrase of thousands", `"` + join(1000, " ", func(int) string { return "x" }) + `"`, "1000 words: at most 96"},
		{"deep", strings.Repeat("(", 500) + "a", "nested 500 deep"},
		{"deep with minus", strings.Repeat("-(", 500) + "a", "nested 500 deep"},
		{"deep, closed", strings.Repeat("(a OR ", 50) + "b" + strings.Repeat(")", 50), "nested 50 deep"},
		{"megabyte", strings.Repeat("a", 1<<20), "1048576 bytes: at most 4096"},
		{"invalid UTF-8", strings.Repeat("\xff", 100), ""},
		{"stars", strings.Repeat("*", 4000), ""},
		{"bars", strings.Repeat("|", 4000), ""},
		{"closing only", strings.Repeat(")", 4000), ""},
	}
	for _, tt := range tests {
		n, err := ParseBounded(tt.query, now)
		var bounds *BoundsError
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &bounds)):
			t.Errorf("%s: error %v, want %q (tree %.80v)", tt.name, err, tt.want, n)
		}
	}
}
