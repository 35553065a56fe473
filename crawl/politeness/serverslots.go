package politeness

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/cluster"
	"github.com/freshet/freshet/weburl"
)

// serverSlots keep a delay between the requests to one server to which links led under many
// names. Of the hosts of one registrable domain at one IP address one is asked at a time,
// and the next when its delay has passed: whatever names and ports lead there, to their
// operator they are one server. Hosts of different domains share the slots of their address
// (cluster.AddressLimit), each of which stays taken for the least delay: a content network is still
// asked at the number of its slots a delay.
type serverSlots struct {
	mu      sync.Mutex
	waiting map[string]map[string]time.Time // by slot, the hosts put off, until when
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

// serverSlot is a slot that requests to a host need.
type serverSlot struct {
	cluster.AddressSlot
	isServer bool          // of a domain at an address: its hosts are one server
	gap      time.Duration // about the time after which the next host may come
	rest     time.Duration // for which it stays taken after its release; -1 is as long as the host rests
}

// heldSlots are the slots that an agent or a request holds. A nil heldSlots holds none.
type heldSlots struct {
	client  *Client
	slots   []serverSlot
	release func(ctx context.Context, rests []time.Duration)
}

func (h *heldSlots) has(address string) bool {
	return h != nil && slices.ContainsFunc(h.slots, func(s serverSlot) bool { return s.Address == address })
}

// releaseAll gives the slots back, each when its server has rested. hostRest is how long
// the host rests, 0 if it was not asked.
func (h *heldSlots) releaseAll(ctx context.Context, hostRest time.Duration) {
	if h == nil || len(h.slots) == 0 {
		return
	}
	rests := make([]time.Duration, len(h.slots))
	for i, s := range h.slots {
		rest := s.rest
		if rest < 0 || hostRest == 0 {
			rest = hostRest
		}
		rests[i] = max(0, min(rest, h.client.config.Delays.MaxDelay))
	}
	h.release(context.WithoutCancel(ctx), rests)
	h.slots = nil
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
		slots = append(slots, serverSlot{AddressSlot: cluster.AddressSlot{Address: "new " + domain, Max: newHostsBurst}, gap: newHostsGap, rest: newHostsBurst * newHostsGap})
	}
	addresses := c.config.Fetch.Addresses(ctx, u.Hostname(), c.config.Sources.PermitsHost(u))
	slices.Sort(addresses)
	for _, ip := range slices.Compact(addresses) {
		slots = append(slots,
			serverSlot{AddressSlot: cluster.AddressSlot{Address: ip + " " + domain, Max: 1}, isServer: true, gap: delay, rest: -1},
			serverSlot{AddressSlot: cluster.AddressSlot{Address: ip, Max: perAddress}, gap: least / time.Duration(perAddress), rest: least})
	}
	return slots
}

// acquireSlots takes all slots, or none: then wait is the time after which the host may try
// again. Slots that the caller holds already are left out.
func (c *Client) acquireSlots(ctx context.Context, host string, slots []serverSlot, already *heldSlots, ttl time.Duration) (h *heldSlots, wait time.Duration, err error) {
	h = &heldSlots{client: c, slots: slices.DeleteFunc(slices.Clone(slots), func(s serverSlot) bool { return already.has(s.Address) })}
	wanted := make([]cluster.AddressSlot, len(h.slots))
	for i := range h.slots {
		wanted[i] = h.slots[i].AddressSlot
	}
	release, blocked, err := c.config.AddressLimit.EnterAddresses(ctx, wanted, ttl)
	if err != nil {
		return nil, 0, err
	}
	if release == nil {
		s := &h.slots[blocked]
		return nil, c.servers.putOff(s.Address, host, s.gap, time.Now()), nil
	}
	for i := range h.slots {
		c.servers.stopWaiting(h.slots[i].Address, host)
	}
	h.release = release
	return h, 0, nil
}
