package fetch

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// resolver looks names up with a cache that keeps an answer as long as its TTL
// says. Go's resolver does the work (hosts file, search lists, retries over
// TCP) but tells no TTL: it is read from the messages that pass by.
type resolver struct {
	ask *net.Resolver

	mu    sync.Mutex
	cache map[string]answer
}

type answer struct {
	addrs []netip.Addr
	err   error
	until time.Time
}

// How long names are remembered at least and at most, whatever the TTL, and
// where none is seen (the hosts file).
const (
	leastTTL     = 5 * time.Second // a TTL of 0 would ask for every connection
	mostTTL      = 24 * time.Hour
	unknownTTL   = time.Minute
	mostNoName   = 15 * time.Minute
	cachedNames  = 100_000
	resolveLimit = 10 * time.Second
)

// newResolver asks the server at address:port, or the system's.
func newResolver(server string) *resolver {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if server != "" {
			address = server
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		heard, _ := ctx.Value(heardKey{}).(*heard)
		switch {
		case heard == nil:
			return c, nil
		case network[0] == 'u':
			if udp, ok := c.(*net.UDPConn); ok {
				return &packets{udp, heard}, nil
			}
			return c, nil
		}
		return &stream{Conn: c, heard: heard}, nil
	}
	return &resolver{ask: &net.Resolver{PreferGo: true, Dial: dial}, cache: map[string]answer{}}
}

// lookup returns the addresses of a host from the cache or by asking.
func (r *resolver) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	now := time.Now()
	r.mu.Lock()
	a, ok := r.cache[host]
	r.mu.Unlock()
	if ok && now.Before(a.until) {
		return a.addrs, a.err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	h := &heard{}
	a = answer{}
	a.addrs, a.err = r.ask.LookupNetIP(context.WithValue(ctx, heardKey{}, h), "ip", host)
	for i := range a.addrs {
		a.addrs[i] = a.addrs[i].Unmap()
	}
	most := mostTTL
	if a.err != nil {
		if ctx.Err() != nil {
			return nil, a.err // says nothing about the name
		}
		most = mostNoName
	}
	a.until = now.Add(min(max(h.ttl(), leastTTL), most))
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, ok := r.cache[host]; ok && !h.some && now.Before(other.until) {
		return a.addrs, a.err // we shared the question of another, who heard the TTL
	}
	if len(r.cache) >= cachedNames {
		clear(r.cache)
	}
	r.cache[host] = a
	return a.addrs, a.err
}

// heard is the least TTL among the answers to one question, and for a name that
// does not exist that of the zone's SOA record (RFC 2308).
type heard struct {
	mu    sync.Mutex
	least time.Duration
	some  bool
}

type heardKey struct{}

func (h *heard) ttl() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.some {
		return unknownTTL
	}
	return h.least
}

func (h *heard) note(seconds uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := time.Duration(seconds) * time.Second; !h.some || d < h.least {
		h.least, h.some = d, true
	}
}

// message reads the TTLs of a message; what cannot be read is left to the
// resolver to complain of.
func (h *heard) message(b []byte) {
	var p dnsmessage.Parser
	head, err := p.Start(b)
	if err != nil || p.SkipAllQuestions() != nil {
		return
	}
	answered := false
	for {
		r, err := p.AnswerHeader()
		if err != nil {
			break
		}
		h.note(r.TTL)
		answered = true
		if p.SkipAnswer() != nil {
			return
		}
	}
	if answered || head.RCode != dnsmessage.RCodeNameError && head.RCode != dnsmessage.RCodeSuccess {
		return
	}
	for {
		r, err := p.AuthorityHeader()
		if err != nil {
			return
		}
		if r.Type != dnsmessage.TypeSOA {
			if p.SkipAuthority() != nil {
				return
			}
			continue
		}
		soa, err := p.SOAResource()
		if err != nil {
			return
		}
		// A name that has one kind of address often lacks the other: that says
		// nothing of how long the one holds.
		if head.RCode == dnsmessage.RCodeNameError {
			h.note(min(r.TTL, soa.MinTTL))
		}
	}
}

// packets is a UDP socket whose messages are heard. It stays a net.PacketConn,
// by which the resolver knows not to expect lengths.
type packets struct {
	*net.UDPConn
	heard *heard
}

// Read implements net.Conn.
func (c *packets) Read(b []byte) (int, error) {
	n, err := c.UDPConn.Read(b)
	if err == nil {
		c.heard.message(b[:n])
	}
	return n, err
}

// stream is a TCP connection whose messages, each behind its length in two
// bytes, are heard.
type stream struct {
	net.Conn
	heard *heard
	got   []byte
}

// Read implements net.Conn.
func (c *stream) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.got = append(c.got, b[:n]...); len(c.got) > 2 {
		if size := int(binary.BigEndian.Uint16(c.got)); len(c.got) >= 2+size {
			c.heard.message(c.got[2 : 2+size])
			c.got = c.got[2+size:]
		}
	}
	return n, err
}

var (
	_ net.PacketConn = (*packets)(nil)
	_ io.Reader      = (*stream)(nil)
)
