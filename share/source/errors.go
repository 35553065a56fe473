package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Class tells what went wrong, so that a caller can decide what follows.
type Class string

// Classes of errors.
const (
	Offline  Class = "offline"  // nobody there, or the connection was lost
	Refused  Class = "refused"  // the host is there, the service is not
	Denied   Class = "denied"   // not allowed, or wrong credentials
	Gone     Class = "gone"     // the folder or file does not exist
	Timeout  Class = "timeout"  // no answer in time
	Protocol Class = "protocol" // an answer that makes no sense
	Canceled Class = "canceled" // by us
)

// Lost reports whether the class means that the connection is of no more use.
func (c Class) Lost() bool {
	return c == Offline || c == Refused || c == Timeout || c == Canceled
}

// Error says what was being done to what, and its class.
type Error struct {
	Op    string // "list", "open", "read", "connect to"
	Path  string
	Class Class
	Err   error
}

func (e *Error) Error() string {
	return e.Op + " " + e.Path + ": " + string(e.Class) + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err: that of the *Error in it, else a guess.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return classifyError(err)
}

// What the protocols mark their errors with.
var (
	errProtocol = errors.New("protocol error")
	errDenied   = errors.New("denied")
	errGone     = errors.New("no such folder or file")
	errLost     = errors.New("connection lost")
)

// Wrap returns err as an *Error of its class; a nil err and an *Error stay what
// they are. path has no slash before it.
func Wrap(op, path string, err error) error { return wrapSourceError(op, path, err) }

// wrapSourceError wraps err; a nil err stays nil.
func wrapSourceError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Path: "/" + path, Class: classifyError(err), Err: err}
}

func classifyError(err error) Class {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, errDenied), errors.Is(err, fs.ErrPermission):
		return Denied
	case errors.Is(err, errGone), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return Gone // a file or a link took the folder's place
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return Timeout
	case errors.Is(err, errLost), errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNABORTED), errors.Is(err, syscall.EPIPE),
		errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN),
		errors.As(err, &dns):
		return Offline
	case errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	}
	return Protocol
}
