package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A process names its predecessors in the data directory, oldest first and no more
// than maxKeptRuns with itself; a process in a copy of the directory is none of them.
func TestRunsOfDataDirectory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file string
		kept       []string // of those in the file
	}{
		{"new directory", "", nil},
		{"one predecessor", "first\n", []string{"first"}},
		{"file without a line's end", "first\nsecond", []string{"first", "second"}},
		{"empty lines, and ends of lines of Windows", "\r\nfirst\r\n\r\nsecond\r\n", []string{"first", "second"}},
		{"one less than is kept", numberedRuns(maxKeptRuns - 1), strings.Fields(numberedRuns(maxKeptRuns - 1))},
		{"as many as are kept", numberedRuns(maxKeptRuns), strings.Fields(numberedRuns(maxKeptRuns))[1:]},
		{"many more", numberedRuns(10 * maxKeptRuns), strings.Fields(numberedRuns(10 * maxKeptRuns))[9*maxKeptRuns+1:]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), runsFile)
			if tt.file != "" {
				if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			runs, err := appendRun(path)
			if err != nil {
				t.Fatal(err)
			}
			own := runs[len(runs)-1]
			if got := runs[:len(runs)-1]; !slices.Equal(got, tt.kept) || len(own) < 20 || slices.Contains(tt.kept, own) {
				t.Fatalf("predecessors %q and own name %q, want %q and a random name", got, own, tt.kept)
			}
			copied, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			other := filepath.Join(t.TempDir(), runsFile)
			if err := os.WriteFile(other, copied, 0o600); err != nil {
				t.Fatal(err)
			}
			inCopy, err := appendRun(other)
			if err != nil {
				t.Fatal(err)
			}
			next, err := appendRun(path)
			if err != nil || !slices.Contains(next, own) || slices.Contains(next, inCopy[len(inCopy)-1]) || len(next) > maxKeptRuns {
				t.Errorf("the next process names %q (%v), want %q among them, the process in the copy %q not, and %d at most", next, err, own, inCopy[len(inCopy)-1], maxKeptRuns)
			}
		})
	}
	if _, err := appendRun(t.TempDir()); err == nil {
		t.Error("a directory in place of the file: no error")
	}
}

func numberedRuns(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("run" + string(rune('A'+i%26)) + strings.Repeat("x", i) + "\n")
	}
	return b.String()
}
