package main

import (
	"os"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/lab/testweb"
)

// defaultConfig is the configuration without a file.
func defaultConfig() (*config.Config, error) { return config.Load("", os.Environ(), nil) }

// startDemo serves the demo web on loopback ports and makes some of its sites
// the sources. Only the robot's own dialler knows where its hosts are.
func startDemo(cfg *config.Config, o *app.Options) (stop func(), err error) {
	web := testweb.Demo()
	web.HTTP = "127.0.0.1:0"
	s, err := testweb.New(web)
	if err != nil {
		return nil, err
	}
	o.Dial = s.DialContext
	for _, u := range s.Seeds(8) {
		cfg.Sources = append(cfg.Sources, config.Source{URL: u, Scope: "any"})
	}
	if cfg.Agent.Contact == "" {
		cfg.Agent.Contact = "http://" + cfg.Console.Listen + "/"
	}
	cfg.Console.Title = "Freshet demo"
	cfg.Crawl.Delay, cfg.Crawl.MinRevisit, cfg.Crawl.MaxRevisit = new(100*time.Millisecond), 5*time.Second, 30*time.Second
	return func() { _ = s.Close() }, nil
}
