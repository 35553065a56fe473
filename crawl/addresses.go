package crawl

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/weburl"
)

// Places bounds how many hosts of one IP address are worked at once: a server
// with a thousand names is one machine.
type Places interface {
	// Enter takes one of most places at an address until leave is called, or ttl
	// has passed; leave is nil when there is none.
	Enter(ctx context.Context, ip string, most int, ttl time.Duration) (leave func(context.Context), err error)
}

// addresses are the places of one process.
type addresses struct {
	mu   sync.Mutex
	busy map[string]int
}

// Enter implements Places.
func (a *addresses) Enter(_ context.Context, ip string, most int, _ time.Duration) (leave func(context.Context), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy == nil {
		a.busy = map[string]int{}
	}
	if a.busy[ip] >= most {
		return nil, nil
	}
	a.busy[ip]++
	return func(context.Context) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.busy[ip]--; a.busy[ip] <= 0 {
			delete(a.busy, ip)
		}
	}, nil
}

// serverGates keep a delay between the requests to one server that the robot was led
// to under many names. Of the hosts of one registrable domain at one IP address one is
// worked at a time, and the next when its delay has passed: they are one server to its
// operator, whatever names and ports lead there. Hosts of different domains share an
// address by places (Places), each of which stays taken for the least delay: a content
// network goes on at their number of requests a delay.
type serverGates struct {
	places addresses // of registrable domains at an address, and of new hosts

	mu      sync.Mutex
	waiting map[string]map[string]time.Time // by place, hosts that were put off, until when
	resting map[*time.Timer]func()          // places that stay taken for a while
	closed  bool
}

// minPutOff and maxPutOff bound how long a host is put off for which its server has no
// place; of those that wait for one place, one comes in minGap at most.
const (
	minPutOff = time.Second
	minGap    = 50 * time.Millisecond
	maxPutOff = time.Hour
)

// putOff returns for how long a host waits that found no place: longer the more hosts
// wait for the same, so that together they come once in every gap.
func (s *serverGates) putOff(place, host string, gap time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]map[string]time.Time{}
	}
	all := s.waiting[place]
	if all == nil {
		all = map[string]time.Time{}
		s.waiting[place] = all
	}
	if len(all)%64 == 63 { // some never came again: their pages were left out
		for other, until := range all {
			if now.After(until.Add(time.Minute)) {
				delete(all, other)
			}
		}
	}
	all[host] = now // it counts itself
	wait := min(max(minPutOff, time.Duration(len(all))*max(gap, minGap)), maxPutOff)
	all[host] = now.Add(wait)
	return wait
}

// came notes that a host has found its place.
func (s *serverGates) came(place, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.waiting[place]; all != nil {
		if delete(all, host); len(all) == 0 {
			delete(s.waiting, place)
		}
	}
}

// after calls leave when a place has rested, or at the end of the run.
func (s *serverGates) after(rest time.Duration, leave func()) {
	if rest <= 0 {
		leave()
		return
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		leave()
		return
	}
	defer s.mu.Unlock()
	if s.resting == nil {
		s.resting = map[*time.Timer]func(){}
	}
	var t *time.Timer
	t = time.AfterFunc(rest, func() {
		s.mu.Lock()
		_, mine := s.resting[t]
		delete(s.resting, t)
		s.mu.Unlock()
		if mine {
			leave()
		}
	})
	s.resting[t] = leave
}

// close gives all places back.
func (s *serverGates) close() {
	s.mu.Lock()
	all := s.resting
	s.resting, s.closed = nil, true
	s.mu.Unlock()
	for t, leave := range all {
		t.Stop()
		leave()
	}
}

// open takes places again.
func (s *serverGates) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = false
}

// serverPlace is a place that a host needs.
type serverPlace struct {
	key    string
	max    int
	shared bool          // by all processes
	gap    time.Duration // after which the next host may come, about
	rest   time.Duration // for which it stays taken afterwards; -1 is as long as the host rests
}

// held are the places that an agent or a request has.
type held struct {
	robot *Robot
	of    []serverPlace
	leave []func(context.Context)
}

// has reports whether a place is among those held.
func (h *held) has(key string) bool {
	return h != nil && slices.ContainsFunc(h.of, func(p serverPlace) bool { return p.key == key })
}

// release gives the places back, each when its server has rested.
// hostRest is how long the host rests; 0 if it was not asked.
func (h *held) release(ctx context.Context, hostRest time.Duration) {
	if h == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	for i, leave := range h.leave {
		rest := h.of[i].rest
		if rest < 0 || hostRest == 0 {
			rest = hostRest
		}
		h.robot.servers.after(min(rest, h.robot.config.MaxDelay), func() { leave(ctx) })
	}
	h.of, h.leave = nil, nil
}

// newHostsBurst is how many new hosts of one registrable domain may be asked at once,
// newHostsGap after what time there may be a further one.
const (
	newHostsBurst = 10
	newHostsGap   = time.Second
)

// serverPlaces returns the places that requests to a host need. Hosts that a source
// names have none: their operator knows of us. Those that the robot was led to need
// one of their domain at each address, and one of the address itself. Loopback hosts
// have none: many servers of this machine are many servers.
func (r *Robot) serverPlaces(ctx context.Context, host string, isNew bool, delay time.Duration) (places []serverPlace) {
	c := &r.config
	u, err := weburl.Parse("http://" + host + "/")
	if err != nil || c.PerAddress <= 0 || Loopback(u.Hostname()) || r.isSourceHost(u) {
		return nil
	}
	delay = max(delay, c.Delay)
	domain := u.Domain()
	if isNew && c.Delay > 0 {
		places = append(places, serverPlace{key: "new " + domain, max: newHostsBurst, gap: newHostsGap, rest: newHostsBurst * newHostsGap})
	}
	for _, ip := range c.Fetch.Addresses(ctx, u.Hostname(), r.PermitsURL(u)) {
		places = append(places,
			serverPlace{key: ip + " " + domain, max: 1, gap: delay, rest: -1},
			serverPlace{key: ip, max: c.PerAddress, shared: true, gap: c.Delay / time.Duration(c.PerAddress), rest: c.Delay})
	}
	// In one order for all, so that of two hosts that share places one gets them.
	slices.SortStableFunc(places, func(a, b serverPlace) int { return cmpPlaces(&a, &b) })
	return places
}

func cmpPlaces(a, b *serverPlace) int {
	switch {
	case a.shared != b.shared && b.shared: // places of this process first: they cost nothing
		return -1
	case a.shared != b.shared:
		return 1
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return 0
}

// enterServers takes all of the places, or none: then wait says after what time the
// host may try again. Those that by holds are left out.
func (r *Robot) enterServers(ctx context.Context, host string, places []serverPlace, by *held, ttl time.Duration) (h *held, wait time.Duration, err error) {
	h = &held{robot: r}
	for _, p := range places {
		if by.has(p.key) {
			continue
		}
		var from Places = &r.servers.places
		if p.shared {
			from = r.config.Places
		}
		leave, err := from.Enter(ctx, p.key, p.max, ttl)
		if err != nil || leave == nil {
			for _, l := range h.leave {
				l(context.WithoutCancel(ctx))
			}
			if err == nil {
				wait = r.servers.putOff(p.key, host, p.gap, time.Now())
			}
			return nil, wait, err
		}
		r.servers.came(p.key, host)
		h.of, h.leave = append(h.of, p), append(h.leave, leave)
	}
	return h, 0, nil
}

// enter takes the places that the agent's host needs. Without them wait says for how
// long the host is put off.
func (a *agent) enter(ctx context.Context, slice time.Duration) (h *held, wait time.Duration, err error) {
	places := a.robot.serverPlaces(ctx, a.host.Name, a.host.Fetched == 0, a.host.Delay)
	// Longer than the agent works: by a page that takes its time.
	return a.robot.enterServers(ctx, a.host.Name, places, nil, slice+a.robot.config.Lease+5*time.Minute)
}

// enterAuxiliary takes the places of a host for one auxiliary request, waiting for
// them. A host that an agent of this process works has them already.
func (r *Robot) enterAuxiliary(ctx context.Context, u weburl.URL, g *hostGate, has *held, maxWait time.Duration) (leave func(rest time.Duration), err error) {
	g.mu.Lock()
	owned, delay := g.owned, g.delay
	g.mu.Unlock()
	if owned {
		return func(time.Duration) {}, nil
	}
	places := r.serverPlaces(ctx, u.Host(), false, delay)
	for end := time.Now().Add(maxWait); ; {
		h, wait, err := r.enterServers(ctx, u.Host(), places, has, maxWait+5*time.Minute)
		if err != nil {
			return nil, err
		}
		if h != nil {
			return func(rest time.Duration) { h.release(ctx, rest) }, nil
		}
		if time.Now().Add(wait).After(end) {
			return nil, ErrHostRests
		}
		if !pause(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// sameServer reports whether another host is at a server at which the agent has a
// place, so that a request to it is one to the agent's own host.
func (a *agent) sameServer(ctx context.Context, u weburl.URL) bool {
	if a.places == nil || len(a.places.of) == 0 {
		return false
	}
	return slices.ContainsFunc(a.robot.serverPlaces(ctx, u.Host(), false, 0), func(p serverPlace) bool { return !p.shared && a.places.has(p.key) })
}
