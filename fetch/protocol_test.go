package fetch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Servers that speak HTTP/2 are spoken to in it, one connection for all
// requests.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	connections := map[string]bool{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true // requests come one after the other
		fmt.Fprint(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c, err := New(Config{AllowPrivate: true, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		res, err := c.Get(context.Background(), Request{URL: parse(t, s.URL+"/")})
		if err != nil || res.Proto != "HTTP/2.0" || string(res.Body) != "HTTP/2.0" {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if len(connections) != 1 {
		t.Errorf("%d connections", len(connections))
	}
}

// An address that does not answer costs a quarter of a second, not a time-out
// (RFC 8305); one that refuses costs nothing.
func TestHappyEyeballs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	silent, dead, good := netip.MustParseAddr("127.0.0.77"), netip.MustParseAddr("127.0.0.78"), netip.MustParseAddr("127.0.0.1")
	d := newDialer(Config{AllowPrivate: true})
	d.net.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		if strings.HasPrefix(address, silent.String()+":") { // as if nothing came back
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	for _, tt := range []struct {
		name        string
		addrs       []netip.Addr
		least, most time.Duration
	}{
		{"silent first", []netip.Addr{silent, good}, headStart, headStart + 2*time.Second},
		{"two silent first", []netip.Addr{silent, silent, good}, 2 * headStart, 2*headStart + 2*time.Second},
		{"refused first", []netip.Addr{dead, good}, 0, headStart},
	} {
		// A busy machine makes it longer, never shorter: the best of several counts.
		best := time.Hour
		for try := 0; try < 8 && best > tt.most; try++ {
			start := time.Now()
			conn, err := d.race(context.Background(), "tcp", port, tt.addrs)
			best = min(best, time.Since(start))
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			conn.Close()
		}
		if best < tt.least || best > tt.most {
			t.Errorf("%s: connected after %v, want %v to %v", tt.name, best, tt.least, tt.most)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.race(ctx, "tcp", port, []netip.Addr{silent, silent}); err == nil {
		t.Error("connected to nobody")
	}
}

// Families take turns, that of the first address first, and not all addresses of a
// name that has many are dialled. Addresses returns those that are.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		private  bool
		in, want string
	}{
		{true, "127.0.0.1 127.0.0.78 ::1", "127.0.0.1 ::1 127.0.0.78"},
		{true, "::1 127.0.0.1 127.0.0.78", "::1 127.0.0.1 127.0.0.78"},
		{false, "10.0.0.1 8.8.8.8 2606:4700::1111 9.9.9.9 fe80::1", "8.8.8.8 2606:4700::1111 9.9.9.9"},
		{false, "10.0.0.1 ::1", ""},
		{false, "1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4 1.0.0.5 1.0.0.6 1.0.0.7 1.0.0.8 1.0.0.9", "1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4 1.0.0.5 1.0.0.6 1.0.0.7 1.0.0.8"},
	} {
		c, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		var in []netip.Addr
		for s := range strings.FieldsSeq(tt.in) {
			in = append(in, netip.MustParseAddr(s))
		}
		if got := strings.Trim(fmt.Sprint(dialOrder(in, "host.test", tt.private)), "[]"); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.want)
		}
		c.dialer.names.cache["host.test"] = answer{addrs: in, until: time.Now().Add(time.Hour)}
		if got := strings.Join(c.Addresses(t.Context(), "host.test", tt.private), " "); got != tt.want {
			t.Errorf("%s: addresses %q, want %q", tt.in, got, tt.want)
		}
	}
}
