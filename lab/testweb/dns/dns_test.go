package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/miekg/dns"
)

// zone is a web of 1000 hosts with a fault on each of the first five.
func zone() Zone {
	return Zone{Hosts: 1000, Fault: func(host uint64) Fault {
		switch host {
		case 0:
			return Fault{NXDomain: true}
		case 1:
			return Fault{ServFail: true}
		case 2:
			return Fault{Drop: true}
		case 3:
			return Fault{Delay: 150 * time.Millisecond}
		case 4:
			return Fault{CNAME: true}
		}
		return Fault{}
	}}
}

func listen(t testing.TB, z Zone) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", z)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask asks with another implementation of DNS.
func ask(t testing.TB, s *Server, network, qname string, qtype uint16) (*dns.Msg, error) {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(qname), qtype)
	m.SetEdns0(1232, false)
	c := dns.Client{Net: network, Timeout: time.Minute}
	if qname == dropped {
		c.Timeout = time.Second
	}
	r, _, err := c.Exchange(m, s.Addr())
	return r, err
}

// dropped is the name whose answers are lost.
const dropped = "www.01000002.cz"

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := listen(t, zone())
	tests := []struct {
		name  string
		qtype uint16
		rcode int
		want  string // the answer's data, or the owner of the SOA of an empty one
	}{
		{"www.0100000a.cz", dns.TypeA, dns.RcodeSuccess, "1.0.0.10"},
		{"WWW.0100000A.cz", dns.TypeA, dns.RcodeSuccess, "1.0.0.10"},
		{"www.0100000a.cz", dns.TypeAAAA, dns.RcodeSuccess, name.Addr6(10).String()},
		{"www.0100000a.cz", dns.TypeMX, dns.RcodeSuccess, "SOA cz."},
		{"www.0100000a.cz", dns.TypeANY, dns.RcodeSuccess, "1.0.0.10"},
		{"www.01000fff.cz", dns.TypeA, dns.RcodeNameError, "SOA cz."}, // host 4095 of 1000
		{"www.7f000001.cz", dns.TypeA, dns.RcodeNameError, "SOA cz."},
		{"example.com", dns.TypeA, dns.RcodeNameError, "SOA cz."},
		{"10.0.0.1.in-addr.arpa", dns.TypePTR, dns.RcodeSuccess, "www.0100000a.cz."},
		{"1.0.0.127.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, "SOA in-addr.arpa."},
		{"10.0.0.1.in-addr.arpa", dns.TypeA, dns.RcodeSuccess, "SOA in-addr.arpa."},
		{"cz", dns.TypeNS, dns.RcodeSuccess, "ns1.cz."},
		{"cz", dns.TypeSOA, dns.RcodeSuccess, "ns1.cz."},
		{"ns1.cz", dns.TypeA, dns.RcodeSuccess, "9.9.9.9"},
		{"localhost", dns.TypeA, dns.RcodeSuccess, "127.0.0.1"},
		{"www.01000000.cz", dns.TypeA, dns.RcodeNameError, "SOA cz."},
		{"www.01000001.cz", dns.TypeA, dns.RcodeServerFailure, ""},
		{"www.01000004.cz", dns.TypeA, dns.RcodeSuccess, "cdn-www.01000004.cz. 1.0.0.4"},
		{"cdn-www.01000004.cz", dns.TypeA, dns.RcodeSuccess, "1.0.0.4"},
		{"cdn-www.01000005.cz", dns.TypeA, dns.RcodeNameError, "SOA cz."},
	}
	for _, network := range []string{"udp", "tcp"} {
		for _, tt := range tests {
			r, err := ask(t, s, network, tt.name, tt.qtype)
			if err != nil {
				t.Fatalf("%s %s: %v", network, tt.name, err)
			}
			for _, rr := range append(r.Answer, r.Ns...) {
				if rr.Header().Ttl != DefaultTTL {
					t.Errorf("%s %s: time to live %d", network, tt.name, rr.Header().Ttl)
				}
			}
			if got := data(r); r.Rcode != tt.rcode || got != tt.want || !r.Authoritative || r.IsEdns0() == nil {
				t.Errorf("%s %s %s: %s %q, want %s %q", network, tt.name, dns.TypeToString[tt.qtype], dns.RcodeToString[r.Rcode], got, dns.RcodeToString[tt.rcode], tt.want)
			}
		}
	}
}

// data is the data of all answers, or where there are none the SOA's owner.
func data(r *dns.Msg) string {
	var d []string
	for _, rr := range r.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			d = append(d, rr.A.String())
		case *dns.AAAA:
			d = append(d, rr.AAAA.String())
		case *dns.PTR:
			d = append(d, rr.Ptr)
		case *dns.NS:
			d = append(d, rr.Ns)
		case *dns.SOA:
			d = append(d, rr.Ns)
		case *dns.CNAME:
			d = append(d, rr.Target)
		}
	}
	for _, rr := range r.Ns {
		d = append(d, "SOA "+rr.Header().Name)
	}
	return strings.Join(d, " ")
}

func TestReverseIPv6(t *testing.T) {
	t.Parallel()
	s := listen(t, zone())
	rev, err := dns.ReverseAddr(name.Addr6(77).String())
	if err != nil {
		t.Fatal(err)
	}
	r, err := ask(t, s, "udp", rev, dns.TypePTR)
	if err != nil || data(r) != "www.0100004d.cz." {
		t.Errorf("%v, %v", r, err)
	}
}

func TestDelayAndDrop(t *testing.T) {
	t.Parallel()
	s := listen(t, zone())
	began := time.Now()
	if _, err := ask(t, s, "udp", "www.01000003.cz", dns.TypeA); err != nil || time.Since(began) < 150*time.Millisecond {
		t.Errorf("slow host: %v after %v", err, time.Since(began))
	}
	if r, err := ask(t, s, "udp", dropped, dns.TypeA); err == nil {
		t.Errorf("lost answer arrived: %v", r)
	}
}

func TestOneAddressForAll(t *testing.T) {
	t.Parallel()
	z := zone()
	z.Answer = netip.MustParseAddr("127.0.0.1")
	s := listen(t, z)
	for qtype, want := range map[uint16]string{dns.TypeA: "127.0.0.1", dns.TypeAAAA: "SOA cz."} {
		if r, err := ask(t, s, "udp", "www.01000064.cz", qtype); err != nil || data(r) != want {
			t.Errorf("%v, %v", r, err)
		}
	}
}

// The standard library's resolver is an unmodified client too.
func TestGoResolver(t *testing.T) {
	t.Parallel()
	s := listen(t, zone())
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, s.Addr())
	}}
	got, err := r.LookupHost(t.Context(), "www.0100000b.cz")
	if err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	z := zone()
	two := new(dns.Msg)
	two.SetQuestion("www.01000064.cz.", dns.TypeA)
	two.Question = append(two.Question, two.Question[0])
	update := new(dns.Msg)
	update.SetUpdate("cz.")
	answer := new(dns.Msg)
	answer.SetQuestion("cz.", dns.TypeA)
	answer.Response = true
	for _, tt := range []struct {
		msg  *dns.Msg
		want int // rcode, -1: silence
	}{{two, dns.RcodeFormatError}, {update, dns.RcodeNotImplemented}, {answer, -1}} {
		q, err := tt.msg.Pack()
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := z.Reply(nil, q, false)
		if tt.want < 0 {
			if err == nil {
				t.Errorf("an answer to %v", tt.msg)
			}
			continue
		}
		r := new(dns.Msg)
		if err := r.Unpack(out); err != nil || r.Rcode != tt.want {
			t.Errorf("%v, %v; want %s", r, err, dns.RcodeToString[tt.want])
		}
	}
}

func TestLaterEDNS(t *testing.T) {
	t.Parallel()
	z := zone()
	m := new(dns.Msg)
	m.SetQuestion("www.01000064.cz.", dns.TypeA)
	m.SetEdns0(1232, false)
	m.IsEdns0().SetVersion(1)
	q, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := z.Reply(nil, q, false)
	if err != nil {
		t.Fatal(err)
	}
	r := new(dns.Msg)
	if err := r.Unpack(out); err != nil || r.Rcode != dns.RcodeBadVers || len(r.Answer) > 0 {
		t.Errorf("%v, %v; want BADVERS", r, err)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	s := listen(t, zone())
	if _, err := Listen(s.Addr(), zone()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("error %v", err)
	}
}

// Whatever comes, the answer is a message with the question's number.
func FuzzReply(f *testing.F) {
	for _, qtype := range []uint16{dns.TypeA, dns.TypePTR, dns.TypeSOA} {
		m := new(dns.Msg)
		m.SetQuestion("www.01000064.cz.", qtype)
		m.SetEdns0(4096, true)
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, qtype == dns.TypeA)
	}
	f.Add([]byte{0, 1, 0, 0, 0, 1}, false)
	z := zone()
	f.Fuzz(func(t *testing.T, query []byte, tcp bool) {
		out, _, err := z.Reply(nil, query, tcp)
		if err != nil {
			return
		}
		r := new(dns.Msg)
		if err := r.Unpack(out); err != nil {
			t.Fatalf("answer %x to %x: %v", out, query, err)
		}
		if out[0] != query[0] || out[1] != query[1] || !r.Response {
			t.Fatalf("answer %v to %x", r, query)
		}
	})
}

func BenchmarkReply(b *testing.B) {
	m := new(dns.Msg)
	m.SetQuestion("www.01000064.cz.", dns.TypeA)
	m.SetEdns0(1232, false)
	q, err := m.Pack()
	if err != nil {
		b.Fatal(err)
	}
	z := zone()
	out := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := z.Reply(out[:0], q, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUDP measures answers over loopback, 64 askers with an open question
// each on the same cores.
func BenchmarkUDP(b *testing.B) {
	s := listen(b, zone())
	m := new(dns.Msg)
	m.SetQuestion("www.01000064.cz.", dns.TypeA)
	q, err := m.Pack()
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("udp", s.Addr())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		buf := make([]byte, 1232)
		for pb.Next() {
			if _, err := conn.Write(q); err != nil {
				b.Error(err)
				return
			}
			if _, err := conn.Read(buf); err != nil {
				b.Error(fmt.Errorf("answer: %w", err))
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}
