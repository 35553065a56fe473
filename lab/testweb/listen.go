package testweb

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listenTCP listens on an address, with advice in the error for the two
// mistakes that everybody makes.
func listenTCP(what, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(what, addr, err)
	}
	return l, nil
}

func listenError(what, addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("test web: %s: %s is taken by another program; give another address, or port 0 for any free port", what, addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("test web: %s: no right to listen on %s: ports below 1024 are the administrator's; give a higher port, use the proxy, or --netns", what, addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("test web: %s: this machine has no address %s; 127.0.0.1 always works", what, addr)
	}
	return fmt.Errorf("test web: %s: listen on %s: %w", what, addr, err)
}
