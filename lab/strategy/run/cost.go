package run

// Cost is the model that turns an order of pages into time. A robot with so
// many connections fetches the pages in the order of the strategy: the
// connection that is free first takes the next page and waits until the page's
// server may be asked again; the fetch takes the latency and the page's size
// over the bandwidth; then the server is left alone for the delay.
type Cost struct {
	Latency     float64 // seconds a fetch
	Bandwidth   float64 // bytes a second of one connection
	Delay       float64 // seconds between the end of a fetch and the next on its server
	Connections int
}

// DefaultCost is a robot with 32 connections, 0.1 s of latency, 1 MB/s a
// connection and a second of politeness.
func DefaultCost() Cost { return Cost{Latency: 0.1, Bandwidth: 1e6, Delay: 1, Connections: 32} }

// clock keeps the simulated time.
type clock struct {
	cost  Cost
	free  []float64 // heap: when each connection is free
	ready []float64 // when each server may be asked again
	end   float64   // of the last fetch to end
}

func newClock(c Cost, servers int) *clock {
	return &clock{cost: c, free: make([]float64, max(1, c.Connections)), ready: make([]float64, max(1, servers))}
}

// nextFetchTime is when the robot can begin its next fetch.
func (c *clock) nextFetchTime() float64 { return c.free[0] }

// addFetch adds the fetch of a page and returns when it ends.
func (c *clock) addFetch(server int, bytes int64) float64 {
	start := max(c.free[0], c.ready[server])
	end := start + c.cost.Latency
	if c.cost.Bandwidth > 0 {
		end += float64(bytes) / c.cost.Bandwidth
	}
	c.ready[server] = end + c.cost.Delay
	c.end = max(c.end, end)
	c.free[0] = end
	c.sinkFirst()
	return end
}

// idleAll lets all connections rest until s seconds from now.
func (c *clock) idleAll(s float64) {
	until := c.nextFetchTime() + s
	for i := range c.free {
		c.free[i] = max(c.free[i], until)
	}
	for i := len(c.free)/2 - 1; i >= 0; i-- {
		c.sinkFrom(i)
	}
	c.end = max(c.end, until)
}

func (c *clock) sinkFirst() { c.sinkFrom(0) }

func (c *clock) sinkFrom(i int) {
	for {
		k := 2*i + 1
		if k >= len(c.free) {
			return
		}
		if k+1 < len(c.free) && c.free[k+1] < c.free[k] {
			k++
		}
		if c.free[i] <= c.free[k] {
			return
		}
		c.free[i], c.free[k] = c.free[k], c.free[i]
		i = k
	}
}
