package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	c, err := New(Config{AllowPrivate: true, Timeout: 5 * time.Minute, UserAgent: "wire"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// What servers do with connections, by wire and by http.Transport: the answers
// are the same.
func TestWire(t *testing.T) {
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
		{"more than asked for", []string{ok + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong", ok}, []string{"ok", "ok"}, 2},
		{"cut chunk", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok"}, []string{string(Reset)}, 1},
		{"cut header", []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"}, []string{string(Reset)}, 1},
		{"nothing", []string{""}, []string{string(Reset)}, 1},
		{"no HTTP", []string{"SSH-2.0-OpenSSH_9.2\r\n"}, []string{string(Protocol)}, 1},
		{"endless header", []string{"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 60_000)}, []string{string(Header)}, 1},
		{"two lengths", []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!"}, []string{string(Protocol)}, 1},
	}
	for _, tt := range tests {
		for _, by := range []string{"wire", "transport"} {
			t.Run(tt.name+" by "+by, func(t *testing.T) {
				t.Parallel()
				base, connections := script(t, tt.answers...)
				c := client(t)
				if by == "transport" {
					c.wire = nil
				}
				for i, want := range tt.want {
					res, err := c.Get(context.Background(), Request{URL: parse(t, fmt.Sprintf("%s/%d", base, i))})
					var fe *Error
					switch {
					case errors.As(err, &fe):
						if string(fe.Kind) != want {
							t.Errorf("request %d: %v, want %s", i, err, want)
						}
					case string(res.Body) != want:
						t.Errorf("request %d: %q, want %q", i, res.Body, want)
					case by == "wire" && res.Remote != "127.0.0.1":
						t.Errorf("remote %q", res.Remote)
					}
					time.Sleep(20 * time.Millisecond) // what the server sends or does unasked arrives
				}
				if n := connections.Load(); by == "wire" && n != tt.connections {
					t.Errorf("%d connections, want %d", n, tt.connections)
				}
			})
		}
	}
}

// Who gives up gets his own reason, and the connection is not used again.
func TestWireCanceled(t *testing.T) {
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
	if n := connections.Load(); n != 2 || c.wire.kept != 0 {
		t.Errorf("%d connections, %d kept", n, c.wire.kept)
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

// No more connections are kept than allowed, none after Close, and idle ones end.
func TestWireIdle(t *testing.T) {
	t.Parallel()
	srv := zoo(t)
	c := client(t)
	get := func() {
		if _, err := c.Get(context.Background(), Request{URL: parse(t, srv.URL+"/plain")}); err != nil {
			t.Error(err)
		}
	}
	done := make(chan struct{})
	for range 20 {
		go func() { get(); done <- struct{}{} }()
	}
	for range 20 {
		<-done
	}
	if c.wire.kept < 1 || c.wire.kept > idlePerHost {
		t.Errorf("%d kept", c.wire.kept)
	}
	c.wire.expire()
	if c.wire.kept < 1 || c.wire.sweep == nil {
		t.Error("what was used just now is gone")
	}
	c.wire.shut(time.Now().Add(time.Second))
	if c.wire.kept != 0 || len(c.wire.idle) != 0 || c.wire.sweep != nil {
		t.Errorf("%d kept, timer %v", c.wire.kept, c.wire.sweep)
	}
	c.Close()
	if get(); c.wire.kept != 0 {
		t.Error("a connection is kept after Close")
	}
}

// The room that a caller gives is used, nothing of the answer before is left in it,
// and what does not fit is not cut.
func TestRoom(t *testing.T) {
	t.Parallel()
	srv := zoo(t)
	c := client(t)
	for _, n := range []int{0, 3, 10, 11, 100} {
		room := make([]byte, n)
		before := &Response{Body: room, Header: http.Header{"X-Old": {"x"}}, Truncated: true, Remote: "x"}
		res, err := c.Get(context.Background(), Request{URL: parse(t, srv.URL+"/plain"), Room: before})
		if err != nil || string(res.Body) != "hello wire" {
			t.Errorf("room %d: %v, %v", n, res, err)
		}
		if n > len("hello wire") && &res.Body[0] != &room[0] {
			t.Errorf("room %d is not used", n)
		}
		if res != before || res.Header.Get("X-Old") != "" || res.Header.Get("Etag") == "" || res.Truncated || res.Remote != "127.0.0.1" {
			t.Errorf("%+v", res)
		}
	}
}

// Targets that a request line cannot hold go another way.
func TestWireTakes(t *testing.T) {
	t.Parallel()
	c := client(t)
	for raw, want := range map[string]bool{"http://h/a?b=c": true, "https://h/": false, "http://h/a b": true, "http://h/é": true} {
		if got := c.wire.takes(parse(t, raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
	proxied, err := New(Config{Proxy: "http://127.0.0.1:1"})
	if err != nil || proxied.wire != nil {
		t.Errorf("by a proxy: %v, %v", proxied.wire, err)
	}
}
