package politeness

import (
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/store"
)

// The cache of rules is bounded in bytes.
func TestRulesCacheBounded(t *testing.T) {
	t.Parallel()
	var c rulesCache
	body := []byte(strings.Repeat("Disallow: /x\n", 30_000))
	for i := range 200 {
		c.compile(strings.Repeat("h", i+1), &store.Robots{Status: 200, Body: body, Fetched: time.Unix(int64(i), 0)}, "bot")
		if n := len(c.origins) * len(body); n > maxCachedRulesBytes {
			t.Fatalf("%d bytes of robots.txt are kept", n)
		}
	}
}
