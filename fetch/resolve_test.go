package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/freshet/freshet/internal/testport"
)

// zone is a name server on a loopback port, over UDP and TCP.
type zone struct {
	asked   atomic.Int64
	address atomic.Value // string
	ttl     uint32
	cut     bool // answers over UDP are truncated
}

// ServeDNS implements dns.Handler.
func (z *zone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg)
	m.SetReply(q)
	name, kind := q.Question[0].Name, q.Question[0].Qtype
	if kind == dns.TypeA {
		z.asked.Add(1)
	}
	_, udp := w.RemoteAddr().(*net.UDPAddr)
	soa := &dns.SOA{Hdr: dns.RR_Header{Name: "test.", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 900}, Ns: "ns.test.", Mbox: "root.test.", Minttl: 20}
	switch {
	case name == "missing.test.":
		m.Rcode, m.Ns = dns.RcodeNameError, []dns.RR{soa}
	case kind != dns.TypeA:
		m.Ns = []dns.RR{soa}
	case z.cut && udp:
		m.Truncated = true
	case name == "alias.test.":
		m.Answer = []dns.RR{
			&dns.CNAME{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: 7}, Target: "host.test."},
			&dns.A{Hdr: dns.RR_Header{Name: "host.test.", Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: z.ttl}, A: net.ParseIP(z.address.Load().(string))},
		}
	default:
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: z.ttl}, A: net.ParseIP(z.address.Load().(string))}}
	}
	_ = w.WriteMsg(m)
}

func (z *zone) serve(t *testing.T) string {
	t.Helper()
	z.address.CompareAndSwap(nil, "127.0.0.1")
	free, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", free)
	pc, err := net.ListenPacket("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: pc, Handler: z}, {Listener: l, Handler: z}} {
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return pc.LocalAddr().String()
}

// An answer holds as long as its TTL says, within bounds; of a chain the least
// counts, of a missing name the zone's SOA record.
func TestTTL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		host string
		ttl  uint32
		cut  bool
		want time.Duration
	}{
		{"as told", "host.test", 300, false, 300 * time.Second},
		{"over TCP", "host.test", 300, true, 300 * time.Second},
		{"zero", "host.test", 0, false, leastTTL},
		{"a year", "host.test", 365 * 24 * 3600, false, mostTTL},
		{"chain", "alias.test", 300, false, 7 * time.Second},
		{"no such name", "missing.test", 300, false, 20 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z := &zone{ttl: tt.ttl, cut: tt.cut}
			r := newResolver(z.serve(t))
			before := time.Now()
			_, err := r.lookup(t.Context(), tt.host)
			if err != nil && tt.host != "missing.test" {
				t.Fatal(err)
			}
			got := r.cache[tt.host].until
			if early, late := before.Add(tt.want), time.Now().Add(tt.want); got.Before(early) || got.After(late) {
				t.Errorf("holds %v, want %v", got.Sub(before), tt.want)
			}
			asked := z.asked.Load()
			_, again := r.lookup(t.Context(), tt.host)
			if within := time.Now().Before(got); (again == nil) != (err == nil) || within && z.asked.Load() != asked {
				t.Errorf("asked again within the TTL: %v", again)
			}
		})
	}
}

// A name that had a public address and now has a private one is refused: what
// is checked is the address that is dialled, each time.
func TestRebinding(t *testing.T) {
	t.Parallel()
	z := &zone{ttl: 0}
	z.address.Store("127.0.0.1")
	d := newDialer(Config{Resolver: z.serve(t)})
	d.names.cache["host.test"] = answer{addrs: []netip.Addr{netip.MustParseAddr("8.8.8.8")}, until: time.Now().Add(-time.Second)}
	if _, err := d.dial(t.Context(), "tcp", "host.test:80", false); !errors.Is(err, errPrivate) {
		t.Errorf("dial after the name moved to 127.0.0.1: %v, want %v", err, errPrivate)
	}
	if z.asked.Load() != 1 {
		t.Errorf("asked %d times, want 1", z.asked.Load())
	}
}

// Messages of any bytes are survived.
func FuzzHeard(f *testing.F) {
	m := new(dns.Msg)
	m.SetQuestion("host.test.", dns.TypeA)
	m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "host.test.", Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5}, A: net.ParseIP("127.0.0.1")}}
	b, err := m.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var h heard
		h.message(b)
		if d := h.ttl(); d < 0 {
			t.Errorf("TTL %v", d)
		}
	})
}
