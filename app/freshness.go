package app

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/crawl/politeness"
	"github.com/freshet/freshet/freshness"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// newPlanner makes what decides when pages are visited: the planner, the
// scheduler where a budget is divided, and the estimator.
func (n *Node) newPlanner(c config.Crawl) (plan freshness.Planner, err error) {
	n.importance.Clicks = &n.clicks
	if n.indexer != nil {
		n.importance.Popularity = n.indexer.Popularity
	}
	plan, n.scheduler, err = freshness.NewPlanner(freshness.SchedulerConfig{
		Policy: c.Policy, Budget: c.Budget, BudgetBytes: float64(c.BudgetBytes) / 86400, MinRevisit: c.MinRevisit, Store: n.parts.Store, Start: n.started, Log: n.log,
		Importance: n.importance.Of, PlansHost: func(host string) bool { return n.plansHost(host) && n.policyOf(host) == "" }, Shared: n.parts.Cluster.IsShared(), Rates: n.options.Rates,
	})
	if err != nil {
		return nil, err
	}
	n.estimator = &freshness.Estimator{
		Store: n.parts.Store, Log: n.log, Start: n.started, Scheduler: n.scheduler, Importance: n.importance.Of, PlansHost: n.plansHost, BudgetBytes: c.BudgetBytes > 0, Rates: n.options.Rates,
	}
	return n.withSourcePolicies(plan), nil
}

// withSourcePolicies lets the pages of sources that have a policy of their own be planned
// by it.
func (n *Node) withSourcePolicies(plan freshness.Planner) freshness.Planner {
	if !slices.ContainsFunc(n.config.Sources, func(s config.Source) bool { return s.Policy != "" }) {
		return plan
	}
	own := map[string]freshness.Planner{freshness.HalfChangePolicy: freshness.HalfChange{}, freshness.AdaptivePolicy: freshness.Adaptive{}}
	return freshness.ByHost{Planner: plan, Of: func(host string) freshness.Planner { return own[n.policyOf(host)] }}
}

// policyOf returns the policy of the source that names a host, "" for that of all.
func (n *Node) policyOf(host string) string {
	if r := n.ready.Load(); r != nil {
		return r.PolicyOf(host)
	}
	return ""
}

// plansHost reports whether this process plans for a host: of the processes that
// share a database and serve, each host has one that does (rendezvous hashing). A
// process that only crawls has no console, and no plans.
func (n *Node) plansHost(host string) bool {
	score := func(name string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(name + "\x00" + host))
		return h.Sum64()
	}
	own := score(n.parts.Cluster.Name())
	for _, o := range n.member.Others() {
		if o.Address != "" && score(o.Name) > own {
			return false
		}
	}
	return true
}

// freshnessStatus fills in what the estimator last reported.
func (n *Node) freshnessStatus(s *console.Status) {
	r := n.estimator.Report()
	s.Freshness, s.Age = r.Freshness, r.Age
	for _, needed := range r.Needed {
		s.Needed = append(s.Needed, console.Needed(needed))
	}
	for i := range r.Hosts {
		s.Top = append(s.Top, hostRow(&r.Hosts[i]))
	}
}

func hostRow(h *freshness.HostReport) console.Host {
	row := console.Host{
		Name: h.Host.Name, Pages: h.Pages, Queue: h.Queue, Freshness: h.Freshness, Age: h.Age, Delay: h.Host.Delay, Failing: h.Host.Error, Robots: robotsWaits(h),
	}
	if len(row.Robots) > 0 && h.Host.Reason == store.ReasonRobotsNoAnswer { // the list says more
		row.Failing = ""
	}
	return row
}

// robotsWaits lists the robots.txt files of a host for which pages wait.
func robotsWaits(h *freshness.HostReport) (waits []console.RobotsWait) {
	for i := range h.Host.Robots {
		rb := &h.Host.Robots[i]
		if h.RobotsWaits[rb.Scheme] == 0 || !rb.Failed() {
			continue
		}
		w := console.RobotsWait{URL: rb.Scheme + "://" + h.Host.Name + "/robots.txt", Why: rb.Why, Pages: h.RobotsWaits[rb.Scheme], Since: rb.Since, Next: politeness.RobotsNext(rb)}
		if rb.Status != 0 {
			w.Why = "status " + strconv.Itoa(rb.Status)
		}
		waits = append(waits, w)
	}
	return waits
}

// clickPatience is how long the store may take to find a clicked page.
const clickPatience = time.Second

// Clicked counts that somebody opened a result of a search, if it is a page that
// the robot knows.
func (n *Node) Clicked(address string) {
	u, err := weburl.Parse(address)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), clickPatience)
	defer cancel()
	p, err := n.parts.Store.Page(ctx, u)
	if err != nil {
		return
	}
	n.clicks.Add(p.URL, time.Now())
}
