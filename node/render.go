package node

import (
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/render"
	"github.com/freshet/freshet/store"
)

// NewRenderer makes the renderer of a configuration, or nil where rendering is
// off. The browser connects as client does.
func NewRenderer(c *config.Config, st store.Store, client *fetch.Client, insecure bool) (*render.Renderer, error) {
	r := &c.Render
	if r.Mode == "off" {
		return nil, nil
	}
	rules, err := render.ParseRules(r.Always, r.Never, render.Rules{All: r.Mode == "all", Cost: r.Cost, LinksOnly: r.LinksOnly})
	if err != nil {
		return nil, err
	}
	tabs := r.Agents
	if tabs == 0 {
		tabs = -1 // none for now
	}
	pool := render.NewPool(render.Config{
		Client: client, Proxy: c.Crawl.Proxy, UserAgent: UserAgent(c), Insecure: insecure, Path: r.Chromium, Remote: r.Remote, Tabs: tabs,
		Timeout: r.Timeout, MaxBytes: int64(r.MaxBytes), MaxMemory: int64(r.MaxMemory), MaxAge: r.MaxAge, MaxPages: r.MaxPages,
	})
	return &render.Renderer{Chooser: render.NewChooser(st, rules), Pool: pool, Token: c.Agent.Name}, nil
}

// Hook is the renderer as the robot takes it: a nil one is none.
func Hook(r *render.Renderer) crawl.Renderer {
	if r == nil {
		return nil
	}
	return r
}

// renderStatus tells of the browser and of the pages that wait for it.
func (n *Node) renderStatus(s *console.Status, r crawl.Status) {
	s.Render = console.RenderStatus{Waiting: r.Waiting, Rendered: r.Rendered, Gained: r.Gained}
	if n.render == nil {
		s.Render.Why = "rendering is off (render.mode)"
		return
	}
	busy, waiting, limit := n.render.Pool.Tabs()
	s.Agents.Render, s.Agents.RenderLimit = busy, limit
	s.Render.Waiting += int64(waiting)
	if err := n.render.Ready(); err != nil {
		s.Render.Why = err.Error()
		return
	}
	s.Render.Available = true
}
