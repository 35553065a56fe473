package testweb

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ListenError says that an address cannot be listened on, and what to do.
type ListenError struct {
	What string // "HTTP", "DNS", ...
	Addr string
	Err  error
}

// Unwrap returns the system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// Error implements error, with advice for the mistakes that everybody makes.
func (e *ListenError) Error() string {
	at := fmt.Sprintf("test web: %s: ", e.What)
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		return at + e.Addr + " is taken by another program; give another address, or port 0 for any free port"
	case errors.Is(e.Err, syscall.EACCES):
		return at + "no right to listen on " + e.Addr + ": ports below 1024 are the administrator's; give a higher port, use the proxy, or --netns"
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		return at + "this machine has no address " + e.Addr + "; 127.0.0.1 always works"
	}
	return fmt.Sprintf("%slisten on %s: %v", at, e.Addr, e.Err)
}

// listenTCP listens on an address.
func listenTCP(what, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, &ListenError{what, addr, err}
	}
	return l, nil
}
