package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/crawl/trap"
	"github.com/freshet/freshet/crawl/visithours"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/render"
	"github.com/freshet/freshet/weburl"
)

// newClient returns the client of a configuration, for serve and crawl alike. permit
// says for which hosts and ports the browser may use private addresses; dial, if not
// nil, replaces dialling.
func newClient(c *config.Config, permit func(host, port string) bool, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*fetch.Client, error) {
	k := &c.Crawl
	fc := fetch.Config{
		UserAgent: userAgent(c), Timeout: k.Timeout, MaxBody: int64(k.MaxBody), Permit: permit, Resolver: k.Resolver, Insecure: k.Insecure, Dial: dial,
	}
	var err error
	if dial == nil || k.Proxy != "" {
		if fc.Proxy, err = proxiesOf(k).Func(); err != nil {
			return nil, fmt.Errorf("crawl.proxy: %w", err)
		}
	}
	if k.CACert != "" {
		if fc.RootCAs, err = readAuthorities(k.CACert); err != nil {
			return nil, fmt.Errorf("crawl.cacert: %w", err)
		}
	}
	if fc.Identities, err = identitiesOf(c.Sources); err != nil {
		return nil, err
	}
	return fetch.New(fc)
}

// proxiesOf returns the forward proxies of a configuration: its own, else those of the
// environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY).
func proxiesOf(k *config.Crawl) fetch.Proxies {
	switch k.Proxy {
	case config.NoProxy:
		return fetch.Proxies{}
	case "":
		env := httpproxy.FromEnvironment()
		return fetch.Proxies{HTTP: env.HTTPProxy, HTTPS: env.HTTPSProxy, Bypass: env.NoProxy + "," + strings.Join(k.ProxyBypass, ",")}
	}
	return fetch.Proxies{HTTP: k.Proxy, HTTPS: k.Proxy, Bypass: strings.Join(k.ProxyBypass, ",")}
}

// readAuthorities returns the system's certificate authorities and those of a PEM file.
func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate (PEM)", file)
	}
	return pool, nil
}

// crawlConfig returns the robot's configuration, for serve and crawl alike. The caller
// adds scopes, ordering, planner and limits of agents. r is nil where nothing is
// rendered.
func (p *Parts) crawlConfig(c *config.Config, client *fetch.Client, r *render.Renderer, log *slog.Logger) crawl.Config {
	k := &c.Crawl
	rc := crawl.Config{
		Store: p.Store, Fetch: client, Archive: p.Archive, Log: log, Node: p.Cluster.Name(), Token: c.Agent.Name, Agents: k.Agents, Lease: c.Lease,
		Types: k.Types, Canon: weburl.DefaultCanon, Traps: trap.Limits(k.Traps), Noise: k.Noise,
		Delay: config.DefaultDelay, DelayPopular: k.DelayPopular, DelayFactor: k.DelayFactor, MaxDelay: k.MaxDelay, PerAddress: k.PerAddress, Connections: k.Connections,
		MinRevisit: k.MinRevisit, MaxRevisit: k.MaxRevisit, MaxFailedAge: k.MaxFailedAge, HostBytesDay: int64(k.HostBytesDay),
		Budget: k.Budget, BudgetBytes: float64(k.BudgetBytes) / 86400,
		Space: p.Space.Check, Render: renderHook(r), ReadBody: p.Body, PDF: p.PDF,
	}
	if k.Delay != nil {
		rc.Delay, rc.DelayGiven = *k.Delay, true
	}
	limitRobot(&rc, p.Cluster)
	return rc
}

// scopeOfSource returns the scope of a source that is a web site.
func scopeOfSource(s *config.Source) (crawl.Scope, error) {
	u, err := weburl.Parse(s.URL)
	if err != nil {
		return crawl.Scope{}, fmt.Errorf("source %s: %w", weburl.Redact(s.URL), err)
	}
	sc, err := crawl.NewScope(u, s.Scope, s.Depth, s.Include, s.Exclude)
	if err != nil {
		return sc, fmt.Errorf("source: %w", err)
	}
	sc.Private, sc.Delay, sc.Connections, sc.Policy = s.AllowPrivate, s.Delay, s.Connections, s.Policy
	sc.Limits = crawl.HostLimits{BytesDay: int64(s.BudgetBytes), Pages: s.MaxPages, Body: int64(s.MaxBody)}
	if s.Hours != "" {
		if sc.Hours, err = visithours.Parse(s.Hours, s.TimeZone); err != nil {
			return sc, fmt.Errorf("source %s: %w", weburl.Redact(s.URL), err)
		}
	}
	return sc, nil
}

// newOncePlanner returns the planner of a single crawl. The policies that divide a budget
// plan at the next serve: a single crawl visits every page once.
func newOncePlanner(c *config.Config) (freshness.Planner, error) {
	if err := freshness.CheckPolicy(c.Crawl.Policy, c.Crawl.Budget > 0 || c.Crawl.BudgetBytes > 0); err != nil {
		return nil, err
	}
	if c.Crawl.Policy == freshness.AdaptivePolicy {
		return freshness.Adaptive{}, nil
	}
	return freshness.HalfChange{}, nil
}
