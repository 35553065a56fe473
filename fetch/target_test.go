package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
)

// firstLines is a server that reads requests by itself and answers with their first line.
func firstLines(t *testing.T, secure bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		s := httptest.NewTLSServer(nil)
		l = tls.NewListener(l, &tls.Config{Certificates: s.TLS.Certificates})
		s.Close()
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				first, err := r.ReadString('\n')
				for line := first; err == nil && line != "\r\n"; {
					line, err = r.ReadString('\n')
				}
				first = strings.TrimSpace(first)
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(first), first)
			}()
		}
	}()
	return l.Addr().String()
}

// A target is sent as the URL standard writes it, which is not always what RFC 3986
// allows, directly, by TLS, or by a proxy.
func TestTargets(t *testing.T) {
	t.Parallel()
	plain, secure := firstLines(t, false), firstLines(t, true)
	direct, err := New(Config{AllowPrivate: true, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	proxied, err := New(Config{AllowPrivate: true, Proxy: fixedProxy(t, "http://"+plain)})
	if err != nil {
		t.Fatal(err)
	}
	defer proxied.Close()
	for _, target := range []string{"/", "/a?b", "/a%20b?q=%C3%A9", "/100%", "/%zz?%", "/a|b^c", "/a;b=c,d!$&'()*+=:@~", "/[x]?[y]={z}|^`", "/a//b", "//a/b", "//a|b", "/?", "/a?b?c/d", "/%2F%2f"} {
		for _, way := range []struct {
			name   string
			client *Client
			origin string
			whole  bool // the target is the whole URL
		}{{"plain", direct, "http://" + plain, false}, {"TLS", direct, "https://" + secure, false}, {"proxy", proxied, "http://" + plain, true}} {
			u := parse(t, way.origin+target)
			res, err := way.client.Get(context.Background(), Request{URL: u})
			if err != nil {
				t.Errorf("%s %s: %v", way.name, target, err)
				continue
			}
			got := string(res.Body)
			relative, absolute := "GET "+u.Target()+" HTTP/1.1", "GET "+u.String()+" HTTP/1.1"
			if got != absolute && (way.whole || got != relative) {
				t.Errorf("%s %s: %s", way.name, target, got)
			}
		}
	}
}
