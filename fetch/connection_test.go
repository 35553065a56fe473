package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// script serves connections by hand: answers are what is written for the first,
// second ... request of each connection, which is then closed.
func script(t *testing.T, answers ...string) (base string, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	connections = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for _, a := range answers {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					if _, err := io.WriteString(c, a); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), connections
}

func client(t *testing.T) *Client {
	t.Helper()
	c, err := New(Config{AllowPrivate: true, Timeout: 5 * time.Minute, UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// Whatever servers do with connections, answers are right and connections are used
// again only where that is safe.
func TestConnections(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		answers     []string
		want        []string // bodies, or kinds of errors
		connections int32
	}{
		{"kept alive", []string{ok, ok, ok}, []string{"ok", "ok", "ok"}, 1},
		{"closed after each", []string{ok}, []string{"ok", "ok", "ok"}, 3},
		{"says close", []string{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", ok}, []string{"ok", "ok"}, 2},
		{"until closed", []string{"HTTP/1.1 200 OK\r\n\r\nto the end"}, []string{"to the end", "to the end"}, 2},
		{"HTTP/1.0", []string{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", ok}, []string{"ok", "ok"}, 2},
		{"chunked", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n", ok}, []string{"ok!", "ok"}, 1},
		{"informational", []string{"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok, ok}, []string{"ok", "ok"}, 1},
		{"no content", []string{"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n", ok}, []string{"", "", "ok"}, 1},
		{"cut chunk", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok"}, []string{string(Reset)}, 1},
		{"cut header", []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"}, []string{string(Reset)}, 1},
		{"nothing", []string{""}, []string{string(Reset)}, 1},
		{"no HTTP", []string{"SSH-2.0-OpenSSH_9.2\r\n"}, []string{string(Protocol)}, 1},
		{"endless header", []string{"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 60_000)}, []string{string(Header)}, 1},
		{"switches protocols", []string{"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"}, []string{string(Protocol)}, 1},
		{"endless informational", []string{strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 20_000)}, []string{string(Header)}, 1},
		{"two lengths", []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!"}, []string{string(Protocol)}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, connections := script(t, tt.answers...)
			c := client(t)
			for i, want := range tt.want {
				res, err := c.Get(t.Context(), Request{URL: parse(t, fmt.Sprintf("%s/%d", base, i))})
				var fe *Error
				switch {
				case errors.As(err, &fe):
					if string(fe.Kind) != want {
						t.Errorf("request %d: got %v, want %s", i, err, want)
					}
				case string(res.Body) != want:
					t.Errorf("request %d: got %q, want %q", i, res.Body, want)
				case res.Remote != "127.0.0.1":
					t.Errorf("request %d: got remote %q", i, res.Remote)
				}
			}
			if n := connections.Load(); n != tt.connections {
				t.Errorf("got %d connections, want %d", n, tt.connections)
			}
		})
	}
}

// A request whose context ends fails with the context's reason, and its connection is not
// used again.
func TestCanceled(t *testing.T) {
	t.Parallel()
	base, connections := script(t, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nbegun", ok)
	c := client(t)
	for i, want := range []Kind{Timeout, Canceled} {
		ctx := ending{context.Background(), make(chan struct{}), map[Kind]error{Timeout: context.DeadlineExceeded, Canceled: context.Canceled}[want]}
		go func() {
			for connections.Load() <= int32(i) {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond) // into the body
			close(ctx.done)
		}()
		_, err := c.Get(ctx, Request{URL: parse(t, base+"/")})
		var fe *Error
		if !errors.As(err, &fe) || fe.Kind != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("got %d connections, want 2", n)
	}
}

// ending is a context that ends when done is closed, for the reason why.
type ending struct {
	context.Context
	done chan struct{}
	why  error
}

func (e ending) Done() <-chan struct{} { return e.done }

func (e ending) Err() error {
	select {
	case <-e.done:
		return e.why
	default:
		return nil
	}
}

// Get uses the memory of an earlier answer, leaves nothing of that answer in it, and does
// not cut a body that does not fit.
func TestRoom(t *testing.T) {
	t.Parallel()
	srv := zoo(t)
	c := client(t)
	for _, n := range []int{0, 3, 10, 11, 100} {
		room := make([]byte, n)
		before := &Response{Body: room, Header: http.Header{"X-Old": {"x"}}, Truncated: true, Remote: "x"}
		res, err := c.Get(context.Background(), Request{URL: parse(t, srv.URL+"/plain"), Room: before})
		if err != nil || string(res.Body) != "hello test" {
			t.Errorf("room %d: %v, %v", n, res, err)
		}
		if n > len("hello test") && &res.Body[0] != &room[0] {
			t.Errorf("room %d is not used", n)
		}
		if res != before || res.Header.Get("X-Old") != "" || res.Header.Get("Etag") == "" || res.Truncated || res.Remote != "127.0.0.1" {
			t.Errorf("%+v", res)
		}
	}
}

// The address of the server is known with TLS, too, and not behind a proxy.
func TestRemote(t *testing.T) {
	t.Parallel()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	plain, secure := httptest.NewServer(hello), httptest.NewTLSServer(hello)
	defer plain.Close()
	defer secure.Close()
	for _, tt := range []struct{ url, proxy, want string }{
		{plain.URL, "", "127.0.0.1"}, {secure.URL, "", "127.0.0.1"}, {plain.URL, plain.URL, ""},
	} {
		config := Config{AllowPrivate: true, Insecure: true}
		if tt.proxy != "" {
			config.Proxy = fixedProxy(t, tt.proxy)
		}
		c, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		res, err := c.Get(t.Context(), Request{URL: parse(t, tt.url)})
		if err != nil || res.Remote != tt.want {
			t.Errorf("%s, proxy %q: got %+v, %v; want remote %q", tt.url, tt.proxy, res, err, tt.want)
		}
	}
}

// Validators that no header can hold are left out: the page is fetched whole.
func TestOddValidators(t *testing.T) {
	t.Parallel()
	base, _ := script(t, ok)
	for _, r := range []Request{{ETag: "\"a\x01\""}, {ETag: "a\r\nX: y"}, {LastModified: "yesterday\x00"}} {
		r.URL = parse(t, base+"/")
		res, err := client(t).Get(t.Context(), r)
		if err != nil || string(res.Body) != "ok" {
			t.Errorf("ETag %q, Last-Modified %q: got %v, %v", r.ETag, r.LastModified, res, err)
		}
	}
}
