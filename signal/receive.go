package signal

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// Bounds of bodies under way, which a receiver holds in memory before it can check
// them.
const (
	maxBodies       = 8
	maxClientBodies = 2
)

// bodyGate bounds how many bodies are read at once, in all and for each client.
type bodyGate struct {
	mu      sync.Mutex
	all     int
	clients map[string]int
}

// enterGate takes a place for a client; leave gives it back.
func (g *bodyGate) enterGate(client string) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= maxBodies || g.clients[client] >= maxClientBodies {
		return nil, false
	}
	if g.clients == nil {
		g.clients = map[string]int{}
	}
	g.all++
	g.clients[client]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all--
		if g.clients[client]--; g.clients[client] == 0 {
			delete(g.clients, client)
		}
	}, true
}

// readBounded reads a body of at most limit bytes. It answers 503 while too many are under
// way, and 413 for a longer one, and returns false.
func (g *bodyGate) readBounded(w http.ResponseWriter, r *http.Request, client string, limit int64) ([]byte, bool) {
	if r.ContentLength > limit {
		http.Error(w, fmt.Sprintf("a request holds at most %d bytes", limit), http.StatusRequestEntityTooLarge)
		return nil, false
	}
	leave, ok := g.enterGate(client)
	if !ok {
		w.Header().Set("Retry-After", "2")
		http.Error(w, "too many requests are being read: try again", http.StatusServiceUnavailable)
		return nil, false
	}
	defer leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		http.Error(w, fmt.Sprintf("a request holds at most %d bytes", limit), http.StatusRequestEntityTooLarge)
		return nil, false
	}
	return body, true
}

// clientOf names the sender of a request by given, or by its connection.
func clientOf(r *http.Request, given func(*http.Request) string) string {
	if given != nil {
		return given(r)
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
