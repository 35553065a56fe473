package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// manner serves connections by hand: each request is answered by what its path
// names.
func manner(t *testing.T) (base string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ends := make(chan struct{})
	t.Cleanup(func() { close(ends) })
	serve := func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			write := func(s string) { _, _ = c.Write([]byte(s)) }
			switch r.URL.Path {
			case "/ok":
				write(ok)
			case "/silent":
			case "/begun-line":
				write("HTTP/1.1 200 OK\r\nContent-Le")
			case "/begun":
				write("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nbegun")
			case "/drip", "/drip-chunked", "/drip-endless":
				head := map[string]string{"/drip": "Content-Length: 100000", "/drip-chunked": "Transfer-Encoding: chunked", "/drip-endless": "Connection: close"}
				write("HTTP/1.1 200 OK\r\n" + head[r.URL.Path] + "\r\n\r\n")
				for range 1000 {
					select {
					case <-ends:
						return
					case <-time.After(100 * time.Millisecond):
						write("1\r\nx\r\n")
					}
				}
			case "/steady": // slow, but not too slow
				write("HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n")
				for range 60 {
					time.Sleep(20 * time.Millisecond)
					write(string(make([]byte, 100)))
				}
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return "http://" + l.Addr().String()
}

// kindOf fetches and returns the kind of the error, "" for an answer.
func kindOf(ctx context.Context, t *testing.T, c *Client, u string) Kind {
	t.Helper()
	res, err := c.Get(ctx, Request{URL: parse(t, u)})
	var fe *Error
	if errors.As(err, &fe) {
		return fe.Kind
	}
	if string(res.Body) != "ok" && len(res.Body) != 6000 {
		t.Errorf("%s: %q", u, res.Body)
	}
	return ""
}

// Bodies that drip are given up, in each way of sending them, on a new connection
// and on a used one.
func TestDrip(t *testing.T) {
	t.Parallel()
	base := manner(t)
	for _, used := range []bool{false, true} {
		for path, want := range map[string]Kind{"/drip": Slow, "/drip-chunked": Slow, "/drip-endless": Slow, "/steady": ""} {
			t.Run(path[1:], func(t *testing.T) {
				t.Parallel()
				c, err := New(Config{AllowPrivate: true, Patience: 400 * time.Millisecond, MinRate: 100, Timeout: 5 * time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if used {
					if kind := kindOf(t.Context(), t, c, base+"/ok"); kind != "" {
						t.Fatal(kind)
					}
					time.Sleep(40 * time.Millisecond)
				}
				if kind := kindOf(t.Context(), t, c, base+path); kind != want {
					t.Errorf("%q, want %q", kind, want)
				}
			})
		}
	}
}

// A time limit holds for each request of a connection, and a body that stops is too slow
// long before it.
func TestLimit(t *testing.T) {
	t.Parallel()
	base := manner(t)
	for path, want := range map[string]Kind{"/silent": Timeout, "/begun-line": Timeout, "/begun": Slow} {
		c, err := New(Config{AllowPrivate: true, Patience: time.Second, MinRate: 1, Timeout: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 2 {
			if kind := kindOf(t.Context(), t, c, base+"/ok"); kind != "" {
				t.Fatal(kind)
			}
		}
		const limit = 200 * time.Millisecond
		if want == Timeout {
			c.config.Timeout = limit
		}
		start := time.Now()
		kind := kindOf(t.Context(), t, c, base+path)
		if took := time.Since(start); kind != want || want == Timeout && took < limit {
			t.Errorf("%s: got %q after %v, want %q", path, kind, took, want)
		}
	}
}

// A connection that ends within the header has broken; a line that ends without a colon
// is taken for malformed.
func TestCutHeader(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Kind{"HTTP/1.1 200 OK\r\nContent-": Protocol, "HTTP/1.1 200 OK\r\nContent-Length: 5": Reset, "HTTP/1.1 200 OK\r\nA: b\r\n": Reset} {
		base, _ := script(t, text)
		if kind := kindOf(t.Context(), t, client(t), base+"/"); kind != want {
			t.Errorf("%q: got %q, want %q", text, kind, want)
		}
	}
}

// A context that ends breaks off the request under it at once, and no later request.
func TestContexts(t *testing.T) {
	t.Parallel()
	base := manner(t)
	c := client(t)
	first, end := context.WithCancel(t.Context())
	for range 3 {
		if kind := kindOf(first, t, c, base+"/ok"); kind != "" {
			t.Fatal(kind)
		}
	}
	end()
	if kind := kindOf(first, t, c, base+"/ok"); kind != Canceled {
		t.Errorf("after the end: got %q, want %q", kind, Canceled)
	}
	if kind := kindOf(t.Context(), t, c, base+"/ok"); kind != "" {
		t.Errorf("under another context: got %q", kind)
	}
	for _, path := range []string{"/silent", "/begun"} {
		ctx, end := context.WithCancel(t.Context())
		for range 2 {
			if kind := kindOf(ctx, t, c, base+"/ok"); kind != "" {
				t.Fatal(kind)
			}
		}
		time.AfterFunc(50*time.Millisecond, end)
		start := time.Now()
		if kind := kindOf(ctx, t, c, base+path); kind != Canceled || time.Since(start) > 20*time.Second {
			t.Errorf("%s: %q after %v", path, kind, time.Since(start))
		}
	}
}

// An answer that arrives on an idle connection ends the connection: it is not taken for
// the answer to the next request.
func TestUnasked(t *testing.T) {
	t.Parallel()
	junk := strings.Replace(ok, "\r\n\r\nok", "\r\n\r\nno", 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	idle, closed := make(chan struct{}), make(chan error)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(conn)
			if _, err := http.ReadRequest(in); err == nil {
				_, _ = io.WriteString(conn, ok)
				<-idle
				_, _ = io.WriteString(conn, junk)
				_, err = http.ReadRequest(in)
				closed <- err
			}
			conn.Close()
		}
	}()
	c := client(t)
	for range 5 {
		if kind := kindOf(t.Context(), t, c, "http://"+l.Addr().String()+"/"); kind != "" {
			t.Fatal(kind)
		}
		idle <- struct{}{}
		if err := <-closed; err == nil {
			t.Fatal("a request was sent on the connection")
		}
	}
}
