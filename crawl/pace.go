package crawl

import (
	"time"

	"github.com/freshet/freshet/weburl"
)

// pace is how fast a host may be asked, by the configuration and by the sources that
// name it.
type pace struct {
	delay       time.Duration // least delay, before popularity
	fixed       bool          // delay is a source's own: popularity does not change it
	noPause     bool          // the operator lets the robot ask without any pause
	connections int           // requests at once; above 1 only with noPause
}

// paceOf returns the pace of a host. Where several scopes name the host, the longest
// delay and the fewest connections hold.
func (r *Robot) paceOf(host string) pace {
	c := &r.config
	p := pace{delay: c.Delay, connections: 1}
	if Loopback(weburl.Hostname(host)) && !c.DelayGiven {
		p.delay, p.noPause = 0, true
	}
	r.scopesMu.RLock()
	named := c.Scopes.naming(host)
	r.scopesMu.RUnlock()
	if len(named) == 0 {
		return p
	}
	connections := 0
	for _, sc := range named {
		if sc.Delay != nil && (!p.fixed || *sc.Delay > p.delay) {
			p.delay, p.fixed, p.noPause = *sc.Delay, true, false
		}
		own := sc.Connections
		if own <= 0 {
			own = c.Connections
		}
		if connections == 0 || own < connections {
			connections = own
		}
	}
	if p.delay == 0 && (p.fixed || c.DelayGiven) {
		p.noPause = true
	}
	if p.noPause {
		p.connections = max(connections, 1)
	}
	return p
}

// naming returns the scopes that name a host: those of the host and of its domain, and
// others that begin there.
func (s *Scopes) naming(host string) (named []*Scope) {
	u, err := weburl.Parse("http://" + host + "/")
	if err != nil {
		return nil
	}
	named = append(named, s.host[host]...)
	if s.domain != nil {
		named = append(named, s.domain[u.Domain()]...)
	}
	for _, sc := range s.others {
		if sc.Seed.Host() == host {
			named = append(named, sc)
		}
	}
	return named
}

// leastDelay is the least delay of a host with so many pages.
func (r *Robot) leastDelay(p pace, pages int64) time.Duration {
	if p.noPause || p.fixed {
		return p.delay
	}
	return r.config.floor(pages)
}

// delayAfter is the delay of a host with so many pages that takes so long to answer.
func (r *Robot) delayAfter(p pace, pages int64, response time.Duration) time.Duration {
	if p.noPause {
		return 0
	}
	c := &r.config
	return min(max(r.leastDelay(p, pages), time.Duration(c.DelayFactor*float64(response))), c.MaxDelay)
}

// connectionsTo is how many requests may be under way at once to a host.
func (r *Robot) connectionsTo(host string) int { return r.paceOf(host).connections }

// ownPace returns the pace of the agent's host.
func (a *agent) ownPace() pace {
	if a.pace == nil {
		p := a.robot.paceOf(a.host.Name)
		a.pace = &p
	}
	return *a.pace
}
