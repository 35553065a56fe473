// Package spell finds the name that was probably meant by a misspelt one.
package spell

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest returns what an error about an unknown name adds: ` (did you mean
// "agents"?)`, or all the known names where none is near.
func Suggest(name string, known []string) string {
	best, least := "", len(name)/2+2
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := Distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return " (known here: " + strings.Join(slices.Sorted(slices.Values(known)), ", ") + ")"
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// Distance is Levenshtein's: how many bytes must be put in, left out or changed
// to make b of a.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
