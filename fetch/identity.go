package fetch

import (
	"net/http"

	"github.com/freshet/freshet/weburl"
)

// Identity is what requests to one origin say of the robot and its user. It is sent with
// every request to that origin and to no other: a redirect is an answer, so that a
// request to where it leads carries the identity of that origin.
type Identity struct {
	UserAgent string      // "" is Config.UserAgent
	Header    http.Header // further fields, such as Authorization or Cookie
}

// identityOf returns the identity for a URL, nil if it has none.
func (c *Client) identityOf(u weburl.URL) *Identity {
	if c.config.Identities == nil {
		return nil
	}
	return c.config.Identities(u.Origin())
}

// apply sets the fields of the identity. A nil identity changes nothing.
func (i *Identity) apply(h http.Header) {
	if i == nil {
		return
	}
	for name, values := range i.Header {
		h[name] = values
	}
	if i.UserAgent != "" {
		h.Set("User-Agent", i.UserAgent)
	}
}
