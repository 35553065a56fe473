package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// Kind classes the reasons for which a request got no answer.
type Kind string

// Kinds of errors.
const (
	DNS       Kind = "dns"       // the name does not resolve
	Refused   Kind = "refused"   // nobody listens
	Unreached Kind = "unreached" // no route, reset while connecting
	Timeout   Kind = "timeout"
	TLS       Kind = "tls"
	Private   Kind = "private"  // the address is not public
	Port      Kind = "port"     // the port is of a service that is not the web
	Slow      Kind = "slow"     // the body drips
	Bomb      Kind = "bomb"     // the body unpacks to far more than its size
	Encoding  Kind = "encoding" // the body is not what Content-Encoding says
	Reset     Kind = "reset"    // the connection broke
	Header    Kind = "header"   // of the answer, too long
	Protocol  Kind = "protocol" // not HTTP
	Canceled  Kind = "canceled"
)

// Error is a request without answer.
type Error struct {
	URL  string
	Kind Kind
	Err  error
}

func (e *Error) Error() string {
	return "fetch " + e.URL + ": " + string(e.Kind) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var (
	errSlow     = errors.New("the body comes too slowly")
	errBomb     = errors.New("the body unpacks to more than a hundred times its size")
	errEncoding = errors.New("the body cannot be unpacked")
	errPrivate  = errors.New("the address is not public and no source with allow_private covers this host")
)

// classify finds the kind of a transport's error.
func classify(ctx context.Context, err error) Kind {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, errPrivate):
		return Private
	case errors.Is(err, errSlow):
		return Slow
	case errors.Is(err, errBomb):
		return Bomb
	case errors.Is(err, errEncoding):
		return Encoding
	case errors.As(err, &dns):
		if dns.IsTimeout {
			return Timeout
		}
		return DNS
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &unknown):
		return TLS
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreached
	}
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return Timeout
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "header") && (strings.Contains(text, "exceeded") || strings.Contains(text, "larger than")): // of net/http, which has no error to compare with
		return Header
	case strings.Contains(text, "tls:"), strings.Contains(text, "x509:"):
		return TLS
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), strings.Contains(text, "EOF"):
		return Reset
	}
	return Protocol
}
