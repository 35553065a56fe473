// Package testport finds free TCP ports for servers of other programs, which are
// told their port before they open it.
//
// A port that the kernel gave for port 0 and that was closed again may be taken
// by any outgoing connection of the machine before the server opens it: it lies
// among those that the kernel gives out (on Linux 32768 to 60999). Ports below
// are taken only by who asks for them.
package testport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports from first up to last are tried.
const first, last = 12000, 32000

// Free returns a port that nobody listens at on any address of the machine, and
// which the kernel gives to nobody by itself. Two who ask at the same moment get
// the same with a chance of one in twenty thousand.
func Free() (int, error) {
	var failed error
	for range 100 {
		n := first + rand.IntN(last-first)
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", n))
		if err == nil {
			return n, l.Close()
		}
		failed = errors.Join(failed, err)
	}
	return 0, fmt.Errorf("no free TCP port between %d and %d: %w", first, last, failed)
}
