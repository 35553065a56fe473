//go:build unix

package fetch

import "golang.org/x/sys/unix"

// quiet reports whether an idle connection is open and nothing came on it: what
// comes unasked would be taken for the answer to the next request.
func quiet(l *line) bool {
	ok := false
	err := l.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ok = err == unix.EAGAIN
		return true
	})
	return ok && err == nil
}
