// Package source reads trees of files over the protocols of a local network:
// SMB, FTP (also over TLS), SFTP, WebDAV, HTTP directory indexes and local folders.
//
// A Source is one connection to one host. It can list a folder and open a file
// for ranged reads, nothing else; what to list and when is not its business.
// Each protocol is one file; schemes.go is the table of them.
package source

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
)

// Entry is one name in a folder.
type Entry struct {
	Name     string // as the host spells it, without slash
	Dir      bool
	Link     bool // a symbolic link or junction: never followed
	Size     int64
	Modified int64 // seconds since 1970 UTC; 0 unknown
}

// Source is a connection to one host. Paths are slash-separated, relative to the
// URL that was dialled; "" is its root. A Source is used by one goroutine at a
// time, except that files that it opened may be read until it is closed.
type Source interface {
	// List returns the entries of a folder, complete or not at all: a listing
	// that breaks off is an error. "." and ".." are left out. The order is
	// whatever the host gives. Errors are *Error.
	List(ctx context.Context, path string) ([]Entry, error)
	// Open opens a file for ranged reads. Errors are *Error.
	Open(ctx context.Context, path string) (File, error)
	Close() error
}

// Streamer is a Source that gives a listing in pieces, so that a folder with a
// million entries takes no memory of that size.
type Streamer interface {
	// ListEach calls f for the entries of a folder, piece by piece. Without an error
	// they were complete. An error of f ends it and is returned as it is.
	ListEach(ctx context.Context, path string, f func([]Entry) error) error
}

// Lister lists a folder; a Source is one.
type Lister interface {
	List(ctx context.Context, path string) ([]Entry, error)
}

// Each calls f for the entries of a folder, in pieces where the source gives them
// so. Without an error they were complete.
func Each(ctx context.Context, l Lister, path string, f func([]Entry) error) error {
	if s, ok := l.(Streamer); ok {
		return s.ListEach(ctx, path, f)
	}
	entries, err := l.List(ctx, path)
	if err != nil {
		return err
	}
	return f(entries)
}

// Identifier is a Source that can tell its root from another folder that takes its
// place, such as the empty folder below a mount.
type Identifier interface {
	Identity(ctx context.Context) (string, error)
}

// File is an open file. Reading at or behind its end gives io.EOF.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Options of Dial.
type Options struct {
	// User and Password are used where the URL has none; "" is a guest
	// ("anonymous" for FTP). Domain is the Windows domain for SMB.
	User, Password, Domain string
	// Timeout bounds every single request and the opening of a session; 0
	// means 20 s.
	Timeout time.Duration
	// Roots are the certificate authorities that servers over TLS are checked
	// against; nil is the system's.
	Roots *x509.CertPool
	// Key is a private SSH key in PEM form, tried before the password.
	Key []byte
	// HostKeys are the accepted SSH host keys in authorized_keys form, one a line.
	// Empty: those in KnownHosts are, else KnownHostKey is, or, where that is empty,
	// any, which is trusted from then on by whoever keeps it.
	HostKeys []byte
	// KnownHosts is a file of host keys in the form of OpenSSH's known_hosts; hosts that
	// are not in it are refused.
	KnownHosts string
	// KnownHostKey is the key that the host had before.
	KnownHostKey string
	// NewHostKey hears of the accepted key, before the login is offered. May be nil.
	NewHostKey func(key string)
	// TrustRange offers a password to every machine of an address range that
	// answers, over protocols that reveal it.
	TrustRange bool
}

func (o Options) timeoutOrDefault() time.Duration {
	if o.Timeout <= 0 {
		return 20 * time.Second
	}
	return o.Timeout
}

// userCredentials returns the user of the URL, else of the options.
func (o Options) userCredentials(u *url.URL) (user, password string) {
	if u.User != nil {
		password, _ = u.User.Password()
		return u.User.Username(), password
	}
	return o.User, o.Password
}

// Dial opens a connection to the host of u. Errors are *Error.
func Dial(ctx context.Context, u *url.URL, o Options) (Source, error) {
	for _, s := range Schemes() {
		if s.Name == u.Scheme {
			ctx, cancel := context.WithTimeout(ctx, o.timeoutOrDefault())
			defer cancel()
			src, err := s.Dial(ctx, u, o)
			if err != nil {
				return nil, wrapSourceError("connect to", u.Redacted(), err)
			}
			return src, nil
		}
	}
	return nil, wrapSourceError("connect to", u.Redacted(), fmt.Errorf("%w: no source of scheme %q: use one of %s", errProtocol, u.Scheme, strings.Join(Names(), ", ")))
}

// basePath returns the path of u below which a source works, without slashes
// around it.
func basePath(u *url.URL) string { return strings.Trim(u.Path, "/") }

// joinBase joins the base of a source and a path below it.
func joinBase(base, path string) string {
	switch {
	case base == "":
		return path
	case path == "":
		return base
	}
	return base + "/" + path
}
