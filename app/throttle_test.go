package app

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/throttle"
)

// The robot asks for its limit with its lock held: the answer comes from memory.
func TestAgentLimitAsksNobody(t *testing.T) {
	t.Parallel()
	n := &Node{throttle: &throttle.Controller{}} // without an indexer: asking it would panic
	if got := n.throttleLimit(); got != unlimitedAgents {
		t.Errorf("without a policy: %d, want %d", got, unlimitedAgents)
	}
	if err := n.throttle.Set([]int{10}, []int{1, 8}); err != nil {
		t.Fatal(err)
	}
	for lag, want := range map[int64]int{0: 8, 10: 8, 11: 1} {
		n.lag.pages.Store(lag)
		if got := n.throttleLimit(); got != want {
			t.Errorf("lag %d: %d agents, want %d", lag, got, want)
		}
	}
}

// A policy that is wrong costs the policy, not the process.
func TestWrongThrottleIsIgnored(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	n := &Node{log: slog.New(slog.NewTextHandler(&log, nil))}
	n.newThrottle(&config.Config{Throttle: config.Throttle{Thresholds: []int{5, 1}, Modes: []int{1, 2, 3}}})
	if got := n.throttleLimit(); got != unlimitedAgents {
		t.Errorf("%d agents, want %d", got, unlimitedAgents)
	}
	if !strings.Contains(log.String(), "throttle.thresholds[1]: 1 is below the value before it, 5") {
		t.Errorf("log %q", log.String())
	}
}

// PUT /api/throttle takes every form of no thresholds and says which value is
// wrong.
func TestSetThrottleByAPI(t *testing.T) {
	t.Parallel()
	n, address := start(t, config.Default(), t.TempDir())
	for _, tt := range []struct {
		body string
		code int
		want string
	}{
		{`{"thresholds":[],"modes":[4]}`, 200, `"modes":[4]`},
		{`{"thresholds":null,"modes":[4]}`, 200, `"modes":[4]`},
		{`{"modes":[4]}`, 200, `"modes":[4]`},
		{`{"thresholds":[1,5],"modes":[1,2,3]}`, 200, `"thresholds":[1,5]`},
		{`{"thresholds":[5,1],"modes":[1,2,3]}`, 400, "throttle.thresholds[1]"},
		{`{"thresholds":[1],"modes":[-1,3]}`, 400, "throttle.modes[0]"},
		{`{"thresholds":[1]}`, 400, "throttle.modes"},
		{`{"thresholds":[1e9],"modes":[1,2]}`, 400, "Thresholds"},
		{`{}`, 200, `{`},
	} {
		code, body := put(t, n, address+"/api/throttle", tt.body)
		if code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.body, code, body, tt.code, tt.want)
		}
	}
}

func put(t *testing.T, n *Node, u, body string) (int, string) {
	t.Helper()
	token, err := OwnerToken(n.parts.Dir)
	if err != nil || token == "" {
		t.Fatalf("operator's token %q, %v", token, err)
	}
	return request(t, http.MethodPut, u, body, "Authorization", "Bearer "+token)
}
