package trap

import (
	"strings"
	"testing"
)

// Deep nesting is not confused with a page that is merely long.
func TestDeepNesting(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		want bool
	}{
		"open":         {strings.Repeat("<div class='a'>", maxNesting), true},
		"closed":       {strings.Repeat("<b>", maxNesting) + strings.Repeat("</b>", maxNesting), true},
		"side by side": {strings.Repeat("<div><span>x</span></div>", maxNesting), false},
		"no end tags":  {strings.Repeat("<tr><td><p>x<br><img src=x><circle r='1'/>", maxNesting), false},
		"no tags":      {strings.Repeat("1 < 2 <", maxNesting), false},
		"cut":          {strings.Repeat("<div>", maxNesting-1) + "<", false},
	} {
		if got := isDeeplyNested([]byte(tt.body)); got != tt.want {
			t.Errorf("%s: deeply nested %v, want %v", name, got, tt.want)
		}
	}
}
