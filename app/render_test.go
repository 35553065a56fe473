package app

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/render"
)

// Root has no sandbox: nothing is rendered until the configuration allows that, a
// configuration that wants every page rendered is refused, and the texts name the key.
func TestRootRendersNothing(t *testing.T) {
	t.Parallel()
	isRoot := os.Geteuid() == 0
	for name, tt := range map[string]struct {
		set         config.Render
		off, broken bool
	}{
		"off":                   {config.Render{Mode: "off"}, true, false},
		"off, no sandbox":       {config.Render{Mode: "off", NoSandbox: true}, true, false},
		"auto":                  {config.Render{Mode: "auto"}, isRoot, false},
		"auto, no sandbox":      {config.Render{Mode: "auto", NoSandbox: true}, false, false},
		"auto, another machine": {config.Render{Mode: "auto", Remote: "ws://127.0.0.1:1/"}, false, false},
		"all":                   {config.Render{Mode: "all"}, isRoot, isRoot},
		"all, no sandbox":       {config.Render{Mode: "all", NoSandbox: true}, false, false},
		"all, another machine":  {config.Render{Mode: "all", Remote: "ws://127.0.0.1:1/"}, false, false},
	} {
		c := config.Default()
		tt.set.Cost, tt.set.Agents = c.Render.Cost, c.Render.Agents
		c.Render = tt.set
		if err := renderOff(&c.Render); (err != nil) != tt.off {
			t.Errorf("%s: off because of %v, want off %v", name, err, tt.off)
		}
		r, err := newRenderer(c, nil, nil)
		if (err != nil) != tt.broken || (r == nil) != tt.off {
			t.Errorf("%s: renderer %v, error %v; want none: %v, error: %v", name, r, err, tt.off, tt.broken)
		}
		if err != nil && (!errors.Is(err, render.ErrSandbox) || !strings.Contains(err.Error(), "render.no_sandbox")) {
			t.Errorf("%s: %v; want it to name render.no_sandbox", name, err)
		}
	}
}
