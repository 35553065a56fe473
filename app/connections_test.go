package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// serveOn runs a server of short deadlines on a real listener.
func serveOn(t *testing.T, total, perClient int, exempt bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d bytes, %v", n, err)
	})
	s := consoleServer(h, timeouts{header: 200 * time.Millisecond, request: 400 * time.Millisecond, answer: time.Second, idle: 200 * time.Millisecond})
	s.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn)
	go func() {
		_ = s.Serve(newConnLimiter(l, total, perClient, func(netip.Addr) bool { return exempt }))
	}()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

func dialConsole(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// A client that drips its header or its body, or sends nothing after it, is cut
// off; the connection does not stay.
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	address := serveOn(t, 100, 100, false)
	for name, begin := range map[string]string{
		"header":         "GET / HTTP/1.1\r\nHost: x\r\nX-Drip: ",
		"body":           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
		"chunked body":   "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"nothing at all": "",
		"idle":           "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dialConsole(t, address)
			if _, err := io.WriteString(c, begin); err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			defer close(stop)
			go func() { // drips for as long as the server listens
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					if name == "header" || name == "body" {
						if _, err := io.WriteString(c, "x"); err != nil {
							return
						}
					}
				}
			}()
			_, err := io.Copy(io.Discard, c) // until the server closes
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Error("the server kept the connection for a minute")
			}
		})
	}
}

// One client cannot take the places of all, and gets its place back.
func TestConnectionsOfOneClient(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		exempt bool
		served int
	}{{"a client", false, 3}, {"a trusted proxy", true, 8}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := serveOn(t, 100, 3, tt.exempt)
			served := 0
			var held []net.Conn
			for range 8 {
				c := dialConsole(t, address)
				held = append(held, c)
				_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				if err != nil {
					continue
				}
				if line, err := bufio.NewReader(c).ReadString('\n'); err == nil && strings.Contains(line, "200") {
					served++
				}
			}
			if served < tt.served {
				t.Errorf("%d connections were served, want %d", served, tt.served)
			}
			for _, c := range held {
				_ = c.Close()
			}
			eventually(t, "a place is free again", func() bool {
				res, err := http.Get("http://" + address + "/")
				if err != nil {
					return false
				}
				_ = res.Body.Close()
				return res.StatusCode == http.StatusOK
			})
		})
	}
	l := newConnLimiter(nil, 10, 2, func(netip.Addr) bool { return false })
	remote := func(a string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a)) }
	for _, tt := range []struct {
		remote string
		ok     bool
	}{
		{"[2001:db8::1]:1", true},
		{"[2001:db8::ffff]:1", true},
		{"[2001:db8::2]:1", false},
		{"[2001:db8:0:1::1]:1", true},
		{"192.0.2.1:1", true},
		{"192.0.2.1:2", true},
		{"192.0.2.1:3", false},
		{"192.0.2.2:1", true},
	} {
		if _, ok := l.admit(remote(tt.remote)); ok != tt.ok {
			t.Errorf("%s: admitted %t, want %t", tt.remote, ok, tt.ok)
		}
	}
}
