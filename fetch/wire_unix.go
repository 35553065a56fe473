//go:build unix

package fetch

import (
	"io"
	"net"
	"os"
	"syscall"
)

// reusable says that an idle connection can be seen to be good.
const reusable = true

// exchange sends the request and reads the first bytes of the answer. On a
// connection that was idle it looks first whether anything came: the end of the
// connection, or bytes that nobody asked for, which would be taken for the answer.
//
// All this is one wait for the connection: the look empties it, so that whatever
// comes after the request was sent wakes the reader. A Read after a Write would ask
// the kernel for an answer that cannot be there yet.
func (l *line) exchange(p []byte) (int, error) {
	if l.raw == nil {
		return l.writeRead(p)
	}
	l.into, l.got, l.failed = p, 0, nil
	err := l.raw.Read(l.step)
	l.into = nil
	switch {
	case err != nil:
		return 0, err
	case l.failed != nil:
		return 0, l.failed
	case l.request != nil: // the connection has no room for the rest of it
		return l.writeRead(p)
	case l.got == 0:
		return 0, io.EOF
	}
	return l.got, nil
}

// advance is one step of exchange; it reports false to wait.
func (l *line) advance(fd uintptr) bool {
	if l.request != nil {
		idle := l.answers > 0
		if idle {
			var b [1]byte
			if _, err := l.call("read", syscall.Read, fd, b[:]); err != syscall.EAGAIN {
				l.failed = errStale
				return true
			}
		}
		n, err := l.call("write", syscall.Write, fd, l.request)
		if err != nil && err != syscall.EAGAIN {
			return true
		}
		if n = max(n, 0); n < len(l.request) {
			l.request, l.failed = l.request[n:], nil
			return true
		}
		if l.request = nil; idle {
			return false
		}
	}
	n, err := l.call("read", syscall.Read, fd, l.into)
	if err == syscall.EAGAIN {
		return false
	}
	l.got = max(n, 0)
	return true
}

// call is one system call, again where a signal came between. Other failures than that
// the call would wait are noted as package net does.
func (l *line) call(name string, f func(int, []byte) (int, error), fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = f(int(fd), b); err != syscall.EINTR {
			break
		}
	}
	if err != nil && err != syscall.EAGAIN {
		l.failed = &net.OpError{Op: name, Net: "tcp", Source: l.conn.LocalAddr(), Addr: l.conn.RemoteAddr(), Err: os.NewSyscallError(name, err)}
	}
	return n, err
}
