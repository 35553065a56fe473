package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/freshet/freshet/weburl"
)

// An address that is not public needs a permission, and one at which clouds keep
// credentials needs one for that very address, in whatever form it is written.
func TestMayDial(t *testing.T) {
	t.Parallel()
	const never, literal, permitted, always = 0, 1, 2, 3 // what it takes
	for _, tt := range []struct {
		address string
		want    int
	}{
		{"8.8.8.8", always},
		{"2606:4700::1111", always},
		{"::ffff:8.8.8.8", always},
		{"10.1.2.3", permitted},
		{"127.0.0.1", permitted},
		{"0.0.0.0", permitted},
		{"100.64.0.1", permitted},
		{"198.18.0.1", permitted},
		{"::1", permitted},
		{"fd00::1", permitted},
		{"::ffff:10.1.2.3", permitted},
		{"::ffff:127.0.0.1", permitted},
		{"::ffff:0:10.1.2.3", permitted}, // IPv4-translated
		{"::ffff:0:8.8.8.8", permitted},
		{"::10.1.2.3", permitted},
		{"64:ff9b::10.1.2.3", permitted},
		{"2002:a01:203::1", permitted},
		{"2606:4700::1111%eth0", permitted},
		{"169.254.169.254", literal},
		{"169.254.0.1", literal},
		{"::ffff:169.254.169.254", literal},
		{"::ffff:0:169.254.169.254", literal},
		{"::169.254.169.254", literal},
		{"64:ff9b::169.254.169.254", literal},
		{"2002:a9fe:a9fe::1", literal},
		{"fe80::1", literal},
		{"fe80::1%eth0", literal},
		{"fd00:ec2::254", literal},
		{"100.100.100.200", literal},
		{"192.0.0.192", literal},
		{"168.63.129.16", literal},
	} {
		a := netip.MustParseAddr(tt.address)
		got := never
		switch {
		case mayDial(a, "host.example", false):
			got = always
		case mayDial(a, "host.example", true):
			got = permitted
		case mayDial(a, tt.address, true):
			got = literal
		}
		if got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.address, got, tt.want)
		}
		if public := Public(a); public != (tt.want == always) {
			t.Errorf("Public(%s) = %v", tt.address, public)
		}
		if tt.want != always && mayDial(a, tt.address, false) {
			t.Errorf("%s: dialled without permission because it is written so", tt.address)
		}
	}
}

// A connection that was opened under a permission serves no request without it, with
// or without TLS, and one of a name that the permission does not cover is refused.
func TestConnectionsByPermission(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }))
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		defer s.Close()
		c, err := New(Config{Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		u, err := weburl.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		for i, permitted := range []bool{false, true, true, false, true, false} {
			_, err := c.Get(t.Context(), Request{URL: u, Private: permitted})
			var failed *Error
			if refused := errors.As(err, &failed) && failed.Kind == Private; refused == permitted || err != nil && !refused {
				t.Errorf("TLS %v, request %d, permission %v: got %v", secure, i, permitted, err)
			}
		}
	}
}

// Dial asks for the permission of a host and port at each connection.
func TestDialPermit(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	defer s.Close()
	at := s.Listener.Addr().String()
	var asked []string
	allow := false
	c, err := New(Config{Permit: func(host, port string) bool { asked = append(asked, host+" "+port); return allow }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, allow = range []bool{false, true, false} {
		conn, private, err := c.Dial(t.Context(), "tcp", at)
		if allow != (err == nil) || allow == private {
			t.Errorf("permission %v: got refused %v, %v", allow, private, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
	if host, port := s.Listener.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Addr().String(), asked[0]; len(asked) != 3 || port[:len(host)] != host {
		t.Errorf("asked for %q", asked)
	}
}

// Behind a forward proxy, which may itself be at a private address, hosts that are
// written as private addresses need permission, too.
func TestPermissionBehindProxy(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }))
	defer proxy.Close()
	c, err := New(Config{Proxy: fixedProxy(t, proxy.URL)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tt := range []struct {
		url     string
		private bool // the host is one
	}{
		{"http://site.example/", false}, {"http://10.0.0.1/", true}, {"http://[::1]/", true}, {"http://localhost/", true}, {"http://a.localhost:8080/", true}, {"http://0x7f.1/", true}, {"http://169.254.169.254/latest", true},
	} {
		u, err := weburl.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		for _, permitted := range []bool{false, true} {
			_, err := c.Get(context.Background(), Request{URL: u, Private: permitted})
			if want := !tt.private || permitted; want != (err == nil) {
				t.Errorf("%s, permission %v: got %v", tt.url, permitted, err)
			}
		}
		if err := c.CheckTarget(address(u)); (err != nil) != tt.private {
			t.Errorf("CheckTarget(%s) = %v", address(u), err)
		}
	}
}
