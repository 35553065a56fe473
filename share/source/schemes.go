package source

import (
	"context"
	"net"
	"net/url"
)

// Scheme is one protocol.
type Scheme struct {
	Name string // of the URL
	Port string // default port, probed in address ranges; "" is no network
	Dial func(ctx context.Context, u *url.URL, o Options) (Source, error)
}

// Schemes returns the protocols that can be read. A new one is a file with a Dial
// function and a line here.
func Schemes() []Scheme {
	return []Scheme{
		{"smb", "445", dialSMB},
		{"ftp", "21", dialFTP},
		{"ftpes", "21", dialFTP},
		{"ftps", "990", dialFTP},
		{"sftp", "22", dialSFTP},
		{"webdav", "80", dialWebDAV},
		{"webdavs", "443", dialWebDAV},
		{"http", "80", dialHTTP},
		{"https", "443", dialHTTP},
		{"index+http", "80", dialHTTP}, // where http:// means a web site
		{"index+https", "443", dialHTTP},
		{"file", "", dialFile},
	}
}

// Names returns the schemes.
func Names() []string {
	var out []string
	for _, s := range Schemes() {
		out = append(out, s.Name)
	}
	return out
}

// defaultPort returns the default port of a scheme and whether there is such a scheme.
func defaultPort(scheme string) (string, bool) {
	for _, s := range Schemes() {
		if s.Name == scheme {
			return s.Port, true
		}
	}
	return "", false
}

// Address returns host:port of u with the default port of its scheme; "" for
// a local folder.
func Address(u *url.URL) string {
	p, _ := defaultPort(u.Scheme)
	if p == "" {
		return ""
	}
	if u.Port() != "" {
		p = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), p)
}
