package app

import (
	"errors"
	"fmt"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/render"
	"github.com/freshet/freshet/store"
)

// renderConfig is how the browser of a configuration is started.
func renderConfig(r *config.Render) render.Config {
	return render.Config{
		Path: r.Chromium, Remote: r.Remote, NoSandbox: r.NoSandbox, Timeout: r.Timeout,
		MaxBytes: int64(r.MaxBytes), MaxMemory: int64(r.MaxMemory), MaxAge: r.MaxAge, MaxPages: r.MaxPages,
	}
}

// renderOff returns why nothing is rendered by a configuration, or nil.
func renderOff(r *config.Render) error {
	c := renderConfig(r)
	switch {
	case r.Mode == "off":
		return errors.New("rendering is off: set render.mode to auto or all")
	case c.NeedsSandbox():
		return fmt.Errorf("rendering is off: %w", render.ErrSandbox)
	}
	return nil
}

// renderRules returns which pages are rendered. That every page is to be and none can
// be for want of a sandbox is an error.
func renderRules(r *config.Render) (render.Rules, error) {
	if err := renderOff(r); err != nil && r.Mode == "all" {
		return render.Rules{}, fmt.Errorf("render.mode: all: %w", err)
	}
	return render.ParseRules(r.Always, r.Never, render.Rules{All: r.Mode == "all", Cost: r.Cost, LinksOnly: r.LinksOnly})
}

// newRenderer makes the renderer of a configuration, or nil where rendering is
// off. The browser connects as client does.
func newRenderer(c *config.Config, st store.Store, client *fetch.Client) (*render.Renderer, error) {
	r := &c.Render
	rules, err := renderRules(r)
	if err != nil || renderOff(r) != nil {
		return nil, err
	}
	tabs := r.Agents
	if tabs == 0 {
		tabs = -1 // none for now
	}
	pc := renderConfig(r)
	pc.Client, pc.UserAgent, pc.Insecure, pc.Tabs = client, userAgent(c), c.Crawl.Insecure, tabs
	pool := render.NewPool(pc)
	return &render.Renderer{Chooser: render.NewChooser(st, rules), Pool: pool, Token: c.Agent.Name}, nil
}

// renderHook is the renderer as the robot takes it: a nil one is none.
func renderHook(r *render.Renderer) crawl.Renderer {
	if r == nil {
		return nil
	}
	return r
}

// renderStatus tells of the browser and of the pages that wait for it.
func (n *Node) renderStatus(s *console.Status, r crawl.Status) {
	s.Render = console.RenderStatus{Waiting: r.Waiting, Rendered: r.Rendered, Gained: r.Gained}
	for _, w := range r.Waits {
		s.Render.Hosts = append(s.Render.Hosts, console.RenderWait(w))
	}
	if n.render == nil {
		if err := renderOff(&n.config.Render); err != nil {
			s.Render.Why = err.Error()
		}
		return
	}
	busy, _, limit := n.render.Pool.Tabs()
	s.Agents.Render, s.Agents.RenderLimit = busy, limit
	if err := n.render.Ready(); err != nil {
		s.Render.Why = err.Error()
		return
	}
	s.Render.Available = true
}
