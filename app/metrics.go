package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics makes a registry that reads the node's status when it is scraped.
func (n *Node) metrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), (*collector)(n))
	return r
}

// collector is a Node as Prometheus sees it.
type collector Node

var (
	descUp        = prometheus.NewDesc("freshet_store_up", "1 while the store answers; 0: what it counts is missing here.", nil, nil)
	descPages     = prometheus.NewDesc("freshet_pages", "Pages fetched at least once and present.", nil, nil)
	descURLs      = prometheus.NewDesc("freshet_urls", "Known URLs.", nil, nil)
	descQueue     = prometheus.NewDesc("freshet_queue", "URLs never visited.", nil, nil)
	descHosts     = prometheus.NewDesc("freshet_hosts", "Known hosts.", nil, nil)
	descFetches   = prometheus.NewDesc("freshet_fetches_total", "Requests answered since the start.", nil, nil)
	descUnchanged = prometheus.NewDesc("freshet_unchanged_total", "Visits that found no change since the start.", nil, nil)
	descBytes     = prometheus.NewDesc("freshet_bytes_total", "Bytes of bodies downloaded since the start.", nil, nil)
	descErrors    = prometheus.NewDesc("freshet_errors_total", "Requests without a good answer since the start.", []string{"kind"}, nil)
	descReady     = prometheus.NewDesc("freshet_hosts_waiting", "Hosts that might be worked now and wait for an agent.", nil, nil)
	descNodes     = prometheus.NewDesc("freshet_nodes", "Living processes on the database, this one included.", nil, nil)
	descOwn       = prometheus.NewDesc("freshet_agents_own", "Agents at work in this process.", nil, nil)
	descAgents    = prometheus.NewDesc("freshet_agents", "Agents at work in all processes.", nil, nil)
	descLimit     = prometheus.NewDesc("freshet_agents_limit", "Agents allowed.", nil, nil)
	descRendered  = prometheus.NewDesc("freshet_rendered_total", "Pages built in a browser since the start.", nil, nil)
	descGained    = prometheus.NewDesc("freshet_urls_only_by_rendering", "URLs that only rendering found since the start.", nil, nil)
	descWaiting   = prometheus.NewDesc("freshet_render_waiting", "Pages that wait for a browser.", nil, nil)
	descIndexed   = prometheus.NewDesc("freshet_indexed", "Documents in the text index.", nil, nil)
	descLag       = prometheus.NewDesc("freshet_index_queue", "Changes waiting for the indexer.", nil, nil)
	descExcluded  = prometheus.NewDesc("freshet_index_excluded_total", "Pages whose bodies could not be indexed since the start: they are fetched again.", []string{"kind"}, nil)
	descFreshness = prometheus.NewDesc("freshet_freshness", "Estimated share of pages that are up to date.", nil, nil)
	descAge       = prometheus.NewDesc("freshet_age_seconds", "Estimated mean age of pages.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector. What the store counts is left out
// while it does not answer: the process's own numbers are wanted then most of all.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	r := (*Node)(c).robot.Status()
	gauge(descOwn, float64(len(r.Agents)))
	count(descFetches, r.Answers)
	count(descUnchanged, r.Unchanged)
	count(descBytes, r.Bytes)
	for kind, n := range r.Errors {
		count(descErrors, n, kind)
	}
	for kind, n := range (*Node)(c).indexer.Excluded() {
		count(descExcluded, n, kind)
	}
	s, err := (*Node)(c).Status(context.Background())
	if err != nil {
		(*Node)(c).log.Warn("metrics", "err", err)
		gauge(descUp, 0)
		return
	}
	gauge(descUp, 1)
	gauge(descPages, float64(s.Pages))
	gauge(descURLs, float64(s.URLs))
	gauge(descQueue, float64(s.Queue))
	gauge(descHosts, float64(s.Hosts))
	gauge(descReady, float64(s.HostsWaiting))
	gauge(descNodes, float64(1+len(s.Nodes)))
	gauge(descAgents, float64(s.Agents.Fetch))
	gauge(descLimit, float64(s.Agents.FetchLimit))
	count(descRendered, s.Render.Rendered)
	gauge(descGained, float64(s.Render.Gained))
	gauge(descWaiting, float64(s.Render.Waiting))
	gauge(descIndexed, float64(s.Indexed))
	gauge(descLag, float64(s.IndexQueue))
	gauge(descFreshness, s.Freshness)
	gauge(descAge, s.Age.Seconds())
}
