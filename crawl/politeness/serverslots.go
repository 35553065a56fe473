package politeness

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/weburl"
)

// serverSlots keep a delay between the requests to one server to which links led under many
// names. Of the hosts of one registrable domain at one IP address one is asked at a time,
// and the next when its delay has passed: whatever names and ports lead there, to their
// operator they are one server. Hosts of different domains share the slots of their address
// (AddressSlots), each of which stays taken for the least delay: a content network is still
// asked at the number of its slots a delay.
type serverSlots struct {
	local localSlots // of registrable domains at an address, and of new hosts

	mu      sync.Mutex
	waiting map[string]map[string]time.Time // by slot, the hosts put off, until when
	cooling map[*time.Timer]func()          // releases of slots that stay taken for a while
	closed  bool
}

// minPutOff and maxPutOff bound how long a host is put off that found no slot. The hosts that
// wait for one slot come back one in minGap at most.
const (
	minPutOff = time.Second
	minGap    = 50 * time.Millisecond
	maxPutOff = time.Hour
)

// putOff returns how long a host waits that found no slot: the longer, the more hosts wait
// for the same slot, so that together they come back once in every gap.
func (s *serverSlots) putOff(key, host string, gap time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]map[string]time.Time{}
	}
	hosts := s.waiting[key]
	if hosts == nil {
		hosts = map[string]time.Time{}
		s.waiting[key] = hosts
	}
	if len(hosts)%64 == 63 { // some never come back: their pages were excluded
		for other, until := range hosts {
			if now.After(until.Add(time.Minute)) {
				delete(hosts, other)
			}
		}
	}
	hosts[host] = now // it counts itself
	wait := min(max(minPutOff, time.Duration(len(hosts))*max(gap, minGap)), maxPutOff)
	hosts[host] = now.Add(wait)
	return wait
}

// stopWaiting forgets a host that found its slot.
func (s *serverSlots) stopWaiting(key, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hosts := s.waiting[key]; hosts != nil {
		if delete(hosts, host); len(hosts) == 0 {
			delete(s.waiting, key)
		}
	}
}

// releaseAfter calls release after a time, or at the end of the run.
func (s *serverSlots) releaseAfter(rest time.Duration, release func()) {
	if rest <= 0 {
		release()
		return
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		release()
		return
	}
	defer s.mu.Unlock()
	if s.cooling == nil {
		s.cooling = map[*time.Timer]func(){}
	}
	var t *time.Timer
	t = time.AfterFunc(rest, func() {
		s.mu.Lock()
		_, mine := s.cooling[t]
		delete(s.cooling, t)
		s.mu.Unlock()
		if mine {
			release()
		}
	})
	s.cooling[t] = release
}

// close releases all slots that stay taken for a while.
func (s *serverSlots) close() {
	s.mu.Lock()
	releases := s.cooling
	s.cooling, s.closed = nil, true
	s.mu.Unlock()
	for t, release := range releases {
		t.Stop()
		release()
	}
}

// open keeps released slots taken for their time again.
func (s *serverSlots) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = false
}

// serverSlot is a slot that requests to a host need.
type serverSlot struct {
	key    string
	max    int
	shared bool          // by all processes
	gap    time.Duration // about the time after which the next host may come
	rest   time.Duration // for which it stays taken after its release; -1 is as long as the host rests
}

// heldSlots are the slots that an agent or a request holds. A nil heldSlots holds none.
type heldSlots struct {
	client  *Client
	slots   []serverSlot
	release []func(context.Context)
}

func (h *heldSlots) has(key string) bool {
	return h != nil && slices.ContainsFunc(h.slots, func(s serverSlot) bool { return s.key == key })
}

// releaseAll gives the slots back, each when its server has rested. hostRest is how long
// the host rests, 0 if it was not asked.
func (h *heldSlots) releaseAll(ctx context.Context, hostRest time.Duration) {
	if h == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	for i, release := range h.release {
		rest := h.slots[i].rest
		if rest < 0 || hostRest == 0 {
			rest = hostRest
		}
		h.client.servers.releaseAfter(min(rest, h.client.config.Delays.MaxDelay), func() { release(ctx) })
	}
	h.slots, h.release = nil, nil
}

// newHostsBurst is how many new hosts of one registrable domain may be asked at once,
// newHostsGap the time after which there may be a further one.
const (
	newHostsBurst = 10
	newHostsGap   = time.Second
)

// slotsOf returns the slots that requests to a host need. Hosts that a source names need
// none: their operator knows of the robot. Hosts to which links led need one of their domain
// at each address, and one of the address itself. Loopback hosts need none: many servers of
// this machine are many servers.
func (c *Client) slotsOf(ctx context.Context, host string, isNew bool, delay time.Duration) (slots []serverSlot) {
	perAddress, least := c.config.PerAddress, c.config.Delays.Delay
	u, err := weburl.Parse("http://" + host + "/")
	if err != nil || perAddress <= 0 || IsLoopback(u.Hostname()) || c.config.Sources.NamesHost(u) {
		return nil
	}
	delay = max(delay, least)
	domain := u.Domain()
	if isNew && least > 0 {
		slots = append(slots, serverSlot{key: "new " + domain, max: newHostsBurst, gap: newHostsGap, rest: newHostsBurst * newHostsGap})
	}
	for _, ip := range c.config.Fetch.Addresses(ctx, u.Hostname(), c.config.Sources.PermitsHost(u)) {
		slots = append(slots,
			serverSlot{key: ip + " " + domain, max: 1, gap: delay, rest: -1},
			serverSlot{key: ip, max: perAddress, shared: true, gap: least / time.Duration(perAddress), rest: least})
	}
	// All take them in one order, so that of two hosts that share slots one gets them.
	slices.SortStableFunc(slots, compareSlots)
	return slots
}

// compareSlots orders slots of this process, which cost nothing, before shared ones.
func compareSlots(a, b serverSlot) int {
	if a.shared != b.shared {
		if b.shared {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.key, b.key)
}

// acquireSlots takes all slots, or none: then wait is the time after which the host may try
// again. Slots that the caller holds already are left out.
func (c *Client) acquireSlots(ctx context.Context, host string, slots []serverSlot, already *heldSlots, ttl time.Duration) (h *heldSlots, wait time.Duration, err error) {
	h = &heldSlots{client: c}
	for _, s := range slots {
		if already.has(s.key) {
			continue
		}
		var from AddressSlots = &c.servers.local
		if s.shared {
			from = c.config.AddressSlots
		}
		release, err := from.Acquire(ctx, s.key, s.max, ttl)
		if err != nil || release == nil {
			for _, release := range h.release {
				release(context.WithoutCancel(ctx))
			}
			if err == nil {
				wait = c.servers.putOff(s.key, host, s.gap, time.Now())
			}
			return nil, wait, err
		}
		c.servers.stopWaiting(s.key, host)
		h.slots, h.release = append(h.slots, s), append(h.release, release)
	}
	return h, 0, nil
}
