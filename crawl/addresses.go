package crawl

import "sync"

// addresses bounds how many hosts of one IP address are worked at once: a
// server with a thousand names is one machine.
type addresses struct {
	mu   sync.Mutex
	busy map[string]int
}

// enter takes a place at an address, or reports that there is none. The empty
// address (unknown, behind a proxy) has places for all.
func (a *addresses) enter(ip string, most int) bool {
	if ip == "" || most <= 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy == nil {
		a.busy = map[string]int{}
	}
	if a.busy[ip] >= most {
		return false
	}
	a.busy[ip]++
	return true
}

func (a *addresses) leave(ip string, most int) {
	if ip == "" || most <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[ip]--; a.busy[ip] <= 0 {
		delete(a.busy, ip)
	}
}
