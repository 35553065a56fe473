package spell

import "testing"

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"agnets", "agents", 2}, {"same", "same", 0}} {
		if got := Distance(tt.a, tt.b); got != tt.want || Distance(tt.b, tt.a) != got {
			t.Errorf("%q, %q: %d, want %d both ways", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	known := []string{"delay", "agents"}
	for name, want := range map[string]string{"agnets": ` (did you mean "agents"?)`, "xyzzyxyzzy": " (known here: agents, delay)"} {
		if got := Suggest(name, known); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
