package node

import (
	"context"
	"time"

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
	descFreshness = prometheus.NewDesc("freshet_freshness", "Estimated share of pages that are up to date.", nil, nil)
	descAge       = prometheus.NewDesc("freshet_age_seconds", "Estimated mean age of pages.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := (*Node)(c).Status(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(descPages, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(descPages, float64(s.Pages))
	gauge(descURLs, float64(s.URLs))
	gauge(descQueue, float64(s.Queue))
	gauge(descHosts, float64(s.Hosts))
	gauge(descReady, float64(s.HostsWaiting))
	gauge(descNodes, float64(1+len(s.Nodes)))
	gauge(descOwn, float64(len((*Node)(c).robot.Status().Agents)))
	gauge(descAgents, float64(s.Agents.Fetch))
	gauge(descLimit, float64(s.Agents.FetchLimit))
	count(descRendered, s.Render.Rendered)
	gauge(descGained, float64(s.Render.Gained))
	gauge(descWaiting, float64(s.Render.Waiting))
	gauge(descIndexed, float64(s.Indexed))
	gauge(descLag, float64(s.IndexQueue))
	gauge(descFreshness, s.Freshness)
	gauge(descAge, s.Age.Seconds())
	count(descFetches, s.Fetches)
	count(descUnchanged, s.Unchanged)
	count(descBytes, s.Bytes)
	for kind, n := range s.Errors {
		count(descErrors, n, kind)
	}
}
