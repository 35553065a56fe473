package testweb

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// queue is a listener whose connections are handed to it: the tunnels that a
// proxy's CONNECT opens end in the same HTTP servers as any connection.
type queue struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	addr  net.Addr
}

func newQueue(addr net.Addr) *queue {
	return &queue{conns: make(chan net.Conn), done: make(chan struct{}), addr: addr}
}

// Accept waits for the next tunnel.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close ends the queue.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

// Addr returns the address of the proxy.
func (q *queue) Addr() net.Addr { return q.addr }

func (q *queue) pushConn(c net.Conn) error {
	select {
	case q.conns <- c:
		return nil
	case <-q.done:
		return net.ErrClosed
	}
}

// tunnelTo opens a tunnel to a host of the web: TLS for port 443, else plain HTTP.
func (s *Server) tunnelTo(rw http.ResponseWriter, req *http.Request) {
	host, port, err := net.SplitHostPort(req.Host)
	if err != nil {
		http.Error(rw, "CONNECT wants host:port", http.StatusBadRequest)
		return
	}
	if _, known := s.hostNamed(host); !known {
		http.Error(rw, s.unknownHostText(host), http.StatusBadGateway)
		return
	}
	conn, buf, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		http.Error(rw, "CONNECT wants HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = conn.Close()
		return
	}
	to := s.tunnelHTTP
	if port == "443" {
		to = s.tunnelTLS
	}
	if err := to.pushConn(&tunnel{conn, buf.Reader}); errors.Is(err, net.ErrClosed) {
		_ = conn.Close()
	}
}

// tunnel is a connection some of whose bytes the proxy had already read.
type tunnel struct {
	net.Conn
	r io.Reader
}

// Read reads what the proxy had read, then the connection.
func (t *tunnel) Read(p []byte) (int, error) { return t.r.Read(p) }
