package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/freshet/freshet/config"
)

// certCheck is how often the files of a certificate are looked at.
const certCheck = 10 * time.Second

// certFiles is a certificate in files, which is read again when they change.
type certFiles struct {
	cert, key string
	log       *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	modified [2]time.Time
	checked  time.Time
}

// newCertFiles reads the certificate once, so that a wrong one is told of at start.
func newCertFiles(cert, key string, log *slog.Logger) (*certFiles, error) {
	c := &certFiles{cert: cert, key: key, log: log}
	if err := c.read(); err != nil {
		return nil, fmt.Errorf("console.tls_cert: %w", err)
	}
	return c, nil
}

// read loads the files if they have changed since the last time. The caller holds
// mu or is alone.
func (c *certFiles) read() error {
	c.checked = time.Now()
	var modified [2]time.Time
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		modified[i] = info.ModTime()
	}
	if c.current != nil && modified == c.modified {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.current, c.modified = &pair, modified
	return nil
}

// get implements tls.Config.GetCertificate. Files that cannot be read, or that are
// being replaced, leave the certificate before.
func (c *certFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) >= certCheck {
		if err := c.read(); err != nil {
			c.log.Error("the console's certificate stays the old one", "err", err)
		}
	}
	return c.current, nil
}

// consoleTLS returns how the console speaks TLS, nil where it speaks plain HTTP,
// and the handler of HTTP-01 challenges, nil without ACME.
func consoleTLS(c config.Console, dir string, log *slog.Logger) (*tls.Config, http.Handler, error) {
	if len(c.ACME.Hosts) > 0 {
		m := &autocert.Manager{
			Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Join(dir, "acme")), HostPolicy: autocert.HostWhitelist(c.ACME.Hosts...), Email: c.ACME.Email,
			Client: &acme.Client{DirectoryURL: c.ACME.Directory, UserAgent: "freshet"},
		}
		t := m.TLSConfig()
		t.MinVersion = tls.VersionTLS12
		return t, m.HTTPHandler(nil), nil
	}
	if c.TLSCert == "" {
		return nil, nil, nil
	}
	files, err := newCertFiles(c.TLSCert, c.TLSKey, log)
	if err != nil {
		return nil, nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get}, nil, nil
}

// serveConsole answers on l until the server is shut down.
func (n *Node) serveConsole(l net.Listener) error {
	limited := newConnLimiter(l, maxConnections, maxClientConnections, n.isProxy)
	serve := n.server.Serve
	if n.server.TLSConfig != nil {
		serve = func(l net.Listener) error { return n.server.ServeTLS(l, "", "") }
	}
	if err := serve(limited); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serveChallenges answers HTTP-01 challenges at console.acme.http until ctx ends.
func (n *Node) serveChallenges(ctx context.Context) error {
	l, err := net.Listen("tcp", n.config.Console.ACME.HTTP)
	if err != nil {
		return fmt.Errorf("console.acme.http: %w", err)
	}
	s := consoleServer(n.challenges, consoleTimeouts)
	s.ErrorLog = n.server.ErrorLog
	stopped := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stopped()
	err = s.Serve(newConnLimiter(l, maxConnections, maxClientConnections, n.isProxy))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// URL returns the address of the console for a browser on this machine, once it
// listens.
func (n *Node) URL() string {
	scheme := "http://"
	if n.secure {
		scheme = "https://"
	}
	return scheme + *n.address.Load()
}

// LoginLink returns an address that logs one browser in as the owner of the data
// directory.
func (n *Node) LoginLink() string { return n.URL() + n.console.LoginLink() }
