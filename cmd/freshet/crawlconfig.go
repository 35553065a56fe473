package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/weburl"
)

// readSeeds reads the arguments and the file of seeds; each bad URL is named.
func (c *crawlCmd) readSeeds() ([]string, error) {
	raw := slices.Clone(c.URLs)
	for _, s := range raw {
		if _, err := weburl.Parse(s); err != nil {
			return nil, command.Usagef("%q: %w (a web address is written with http:// or https://)", s, err)
		}
	}
	if c.Seeds == "" {
		return raw, nil
	}
	f, err := os.Open(c.Seeds)
	if err != nil {
		return nil, command.Usagef("seeds: %w", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := weburl.Parse(line); err != nil {
			return nil, command.Usagef("%s:%d: %q: %w", c.Seeds, n, line, err)
		}
		raw = append(raw, line)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.Seeds, err)
	}
	return raw, nil
}

// loadConfig reads the configuration and overrides it by the flags.
func (c *crawlCmd) loadConfig() (*config.Config, error) {
	environ := os.Environ()
	if c.Config == "" { // one crawl has no browser unless it is asked for
		environ = append([]string{"FRESHET_RENDER_MODE=off"}, environ...)
	}
	cfg, err := config.Load(c.Config, environ, c.Set)
	if err != nil {
		return nil, command.UsageError{Err: err}
	}
	urls, err := c.readSeeds()
	if err != nil {
		return nil, err
	}
	if len(urls) > 0 {
		cfg.Sources = nil
	}
	for _, u := range urls {
		cfg.Sources = append(cfg.Sources, config.Source{URL: u})
	}
	cfg.Sources = slices.DeleteFunc(cfg.Sources, func(s config.Source) bool { return s.Share() })
	if len(cfg.Sources) == 0 {
		return nil, command.Usagef("crawl: no URL to start from: give one, --seeds FILE, or --config FILE with a web site among its sources")
	}
	if err := c.overrideConfig(cfg); err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, command.UsageError{Err: err}
	}
	return cfg, nil
}

// setIfGiven sets a key by a flag that was given.
func setIfGiven[T any](key, flag *T) {
	if flag != nil {
		*key = *flag
	}
}

// setIfNotEmpty sets a key by a flag that is not empty.
func setIfNotEmpty(key *string, flag string) {
	if flag != "" {
		*key = flag
	}
}

// overrideConfig sets the keys of the configuration for which there are flags.
func (c *crawlCmd) overrideConfig(cfg *config.Config) error {
	k := &cfg.Crawl
	setIfGiven(&k.Agents, c.Agents)
	setIfGiven(&k.Connections, c.Connections)
	setIfGiven(&k.Budget, c.Budget)
	setIfGiven(&k.Timeout, c.Timeout)
	setIfGiven(&cfg.Lease, c.Lease)
	setIfGiven(&cfg.Render.Agents, c.Tabs)
	setIfNotEmpty(&k.Ordering, c.Ordering)
	setIfNotEmpty(&k.Resolver, c.Resolver)
	setIfNotEmpty(&k.Proxy, c.Proxy)
	setIfNotEmpty(&k.CACert, c.CACert)
	setIfNotEmpty(&cfg.Agent.Name, c.AgentName)
	setIfNotEmpty(&cfg.Agent.Contact, c.Contact)
	setIfNotEmpty(&cfg.Database, c.Database)
	setIfNotEmpty(&cfg.Node, c.Node)
	setIfNotEmpty(&cfg.Archive.Dir, c.Warc)
	setIfNotEmpty(&cfg.Archive.Bucket, c.Bucket)
	setIfNotEmpty(&cfg.Archive.Packing, c.Packing)
	setIfNotEmpty(&cfg.Render.Mode, c.Render)
	if c.Delay != nil {
		k.Delay, k.DelayPopular = c.Delay, *c.Delay // popular hosts, too
	}
	if len(c.Types) > 0 {
		k.Types = c.Types
	}
	k.Insecure = k.Insecure || c.Insecure
	cfg.Render.NoSandbox = cfg.Render.NoSandbox || c.NoBox
	if strings.Contains(c.Chromium, "://") {
		cfg.Render.Remote = c.Chromium
	} else {
		setIfNotEmpty(&cfg.Render.Chromium, c.Chromium)
	}
	for i := range cfg.Sources {
		if err := c.overrideSource(&cfg.Sources[i]); err != nil {
			return err
		}
	}
	for _, size := range []struct {
		flag, value string
		key         *config.Bytes
	}{{"--max-body", c.MaxBody, &k.MaxBody}, {"--min-free", c.MinFree, &cfg.MinFree}} {
		if size.value == "" {
			continue
		}
		n, err := config.ParseBytes(size.value)
		if err != nil {
			return command.Usagef("%s: %w", size.flag, err)
		}
		*size.key = n
	}
	return c.checkCrawl(cfg)
}

// overrideSource sets the keys of a source for which there are flags.
func (c *crawlCmd) overrideSource(s *config.Source) error {
	setIfNotEmpty(&s.Scope, c.Scope)
	setIfGiven(&s.Depth, c.Depth)
	if len(c.Include) > 0 {
		s.Include = c.Include
	}
	if len(c.Exclude) > 0 {
		s.Exclude = c.Exclude
	}
	if c.Delay != nil {
		s.Delay = nil
	}
	if c.Connections != nil {
		s.Connections = 0
	}
	s.AllowPrivate = s.AllowPrivate || c.AllowPrivate
	setIfNotEmpty(&s.UserAgent, c.UserAgent)
	setIfNotEmpty(&s.Hours, c.Hours)
	return c.overrideLogin(s)
}

// overrideLogin sets the headers and the login of a source for which there are flags.
func (c *crawlCmd) overrideLogin(s *config.Source) error {
	if len(c.Header) > 0 {
		s.Headers = maps.Clone(s.Headers)
	}
	for _, text := range c.Header {
		key, value, err := config.ParseHeader(text)
		if err != nil {
			return command.Usagef("--header: %w", err)
		}
		if s.Headers == nil {
			s.Headers = config.Headers{}
		}
		s.Headers[key] = value
	}
	if c.User != "" {
		user, password, _ := strings.Cut(c.User, ":")
		if user == "" {
			return command.Usagef("--user: the name is missing; it is written as NAME or NAME:PASSWORD")
		}
		s.User, s.Password, s.PasswordFile = user, password, ""
	}
	if c.PasswordFile != "" {
		s.Password, s.PasswordFile = "", c.PasswordFile
	}
	return nil
}

// checkCrawl refuses numbers with which a single crawl cannot work.
func (c *crawlCmd) checkCrawl(cfg *config.Config) error {
	switch {
	case cfg.Lease < time.Second:
		return command.Usagef("--lease %v: at least a second is needed", cfg.Lease)
	case cfg.Crawl.Agents < 1:
		return command.Usagef("--agents %d: at least one agent is needed", cfg.Crawl.Agents)
	case c.MaxPages < 0 || c.Depth != nil && *c.Depth < 0:
		return command.Usagef("--max-pages and --depth are not negative")
	case c.Delay != nil && *c.Delay < 0:
		return command.Usagef("--delay %v: a delay is not negative", *c.Delay)
	case cfg.Render.Agents < 1:
		return command.Usagef("--render-agents %d: at least one is needed; --render off renders nothing", cfg.Render.Agents)
	}
	return nil
}

// configVars adds the defaults of the configuration to the variables of help texts.
func configVars(vars kong.Vars) {
	d := config.Default()
	for key, value := range map[string]any{
		"agents": d.Crawl.Agents, "ordering": d.Crawl.Ordering, "tabs": d.Render.Agents, "connections": d.Crawl.Connections, "timeout": d.Crawl.Timeout,
		"max_body": d.Crawl.MaxBody, "min_free": d.MinFree, "agent_name": d.Agent.Name, "lease": d.Lease,
		"robots": d.Share.Robots, "part_time": d.Share.PartTime, "part_memory": d.Share.PartMemory, "share_timeout": d.Share.Timeout,
	} {
		vars[key] = fmt.Sprint(value)
	}
}
