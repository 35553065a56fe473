package politeness

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// oneSource is a source that names one host and permits everything.
type oneSource string

// PaceOf implements Sources.
func (oneSource) PaceOf(string) Pace { return Pace{Connections: 1} }

// NamesHost implements Sources.
func (s oneSource) NamesHost(u weburl.URL) bool { return u.Host() == string(s) }

// PermitsHost implements Sources.
func (oneSource) PermitsHost(weburl.URL) bool { return true }

// CheckPort implements Sources.
func (oneSource) CheckPort(weburl.URL) error { return nil }

func (oneSource) OpensAt(string, time.Time) time.Time { return time.Time{} }

// resolvingClient returns a client for which all names under .test are one address.
func resolvingClient(t *testing.T, address string) *fetch.Client {
	t.Helper()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		if name := q.Question[0].Name; q.Question[0].Qtype == dns.TypeA && strings.HasSuffix(name, ".test.") {
			a := &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: net.ParseIP(address)}
			m.Answer = []dns.RR{a, a} // an address twice is one server
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	client, err := fetch.New(fetch.Config{UserAgent: "freshet-test", Resolver: pc.LocalAddr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Hosts that find no slot come back the later the more of them wait, so that all
// together come once in a gap; a host that found its slot counts no more.
func TestPutOff(t *testing.T) {
	t.Parallel()
	var s serverSlots
	now := time.Now()
	for i := range 1000 {
		want := max(minPutOff, time.Duration(i+1)*100*time.Millisecond)
		if got := s.putOff("slot", fmt.Sprint(i), 100*time.Millisecond, now); got != want {
			t.Fatalf("host %d is put off for %v, want %v", i, got, want)
		}
	}
	if got := s.putOff("other", "1", time.Minute, now); got != time.Minute {
		t.Errorf("another slot: %v", got)
	}
	for i := range 1000 {
		s.stopWaiting("slot", fmt.Sprint(i))
	}
	if got := s.putOff("slot", "1", 0, now); got != minPutOff || len(s.waiting["slot"]) != 1 {
		t.Errorf("after all have come: %v, %d wait", got, len(s.waiting["slot"]))
	}
	for i := range 100_000 { // hosts that never come again
		s.putOff("gone", fmt.Sprint(i), 0, now.Add(time.Duration(i)*time.Second))
	}
	if n := len(s.waiting["gone"]); n > 5000 {
		t.Errorf("%d hosts that never came again are kept", n)
	}
}

// Hosts to which links led need slots at all their addresses.
func TestSlotsOf(t *testing.T) {
	t.Parallel()
	client := resolvingClient(t, "127.0.0.7")
	for _, tt := range []struct {
		host  string
		delay time.Duration
		isNew bool
		want  string
	}{
		{"www.source.test", time.Second, false, ""},
		{"other.source.test", time.Second, false, "127.0.0.7 source.test, 127.0.0.7"},
		{"www.source.test:8080", time.Second, false, "127.0.0.7 source.test, 127.0.0.7"},
		{"new.source.test", time.Second, true, "new source.test, 127.0.0.7 source.test, 127.0.0.7"},
		{"a.elsewhere.test", time.Second, false, "127.0.0.7 elsewhere.test, 127.0.0.7"},
		{"10.0.0.1:81", time.Second, false, "10.0.0.1 10.0.0.1, 10.0.0.1"},
		{"8.8.8.8:81", time.Second, false, "8.8.8.8 8.8.8.8, 8.8.8.8"},
		{"localhost", time.Second, true, ""},
		{"missing.example", time.Second, false, ""},
	} {
		c := NewClient(Config{Fetch: client, Sources: oneSource("www.source.test"), Delays: Delays{Delay: tt.delay}, PerAddress: 4})
		var keys []string
		for _, s := range c.slotsOf(t.Context(), tt.host, tt.isNew, 0) {
			keys = append(keys, s.Address)
		}
		if got := strings.Join(keys, ", "); got != tt.want {
			t.Errorf("%s: got slots %q, want %q", tt.host, got, tt.want)
		}
	}
}
