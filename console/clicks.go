package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

// newKey returns the key by which links through this server are signed while the
// process lives.
func newKey() []byte {
	k := make([]byte, 32)
	_, _ = rand.Read(k) // never fails
	return k
}

// sendsPings reports whether a browser sends what the ping attribute of links asks
// for. Firefox does not; its links to results lead through this server.
func sendsPings(r *http.Request) bool { return !strings.Contains(r.UserAgent(), "Firefox/") }

// Link is where a result's title leads: to its address, or through this server
// for browsers that would not tell of the click.
func (v *searchView) Link(address string) template.URL {
	to := safeAddress(address)
	if v.sign == nil || !v.leadThrough || (!strings.HasPrefix(to, "http://") && !strings.HasPrefix(to, "https://")) {
		return template.URL(to)
	}
	return template.URL("/open?" + v.signedQuery(address))
}

// Ping is where browsers tell that a result was opened, or "".
func (v *searchView) Ping(address string) template.URL {
	if v.sign == nil {
		return ""
	}
	return template.URL("/clicked?" + v.signedQuery(address))
}

func (v *searchView) signedQuery(address string) string {
	return url.Values{"url": {address}, "sig": {v.sign(address)}}.Encode()
}

// signAddress makes a target known as one that a page of ours had: so nobody can use
// this server to lend its name to other links, or count what was never shown.
func (s *Server) signAddress(address string) string {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(address))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// shownAddress returns the address that a request names if a page of ours had a link
// with that signature.
func (s *Server) shownAddress(r *http.Request) (address string, ok bool) {
	u, sig := r.URL.Query().Get("url"), r.URL.Query().Get("sig")
	return u, u != "" && len(u) <= 4096 && hmac.Equal([]byte(sig), []byte(s.signAddress(u)))
}

// handleOpened counts a result that was opened and leads there.
func (s *Server) handleOpened(w http.ResponseWriter, r *http.Request) {
	u, ok := s.shownAddress(r)
	if !ok {
		s.failWith(w, r, http.StatusForbidden, "This link is none of ours, or is older than this server: search again.")
		return
	}
	s.config.Clicked(u)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, u, http.StatusSeeOther)
}

// handleClicked counts a result that was opened: browsers send it for the ping
// attribute of the link. It is told to nobody and kept without the visitor.
func (s *Server) handleClicked(w http.ResponseWriter, r *http.Request) {
	u, ok := s.shownAddress(r)
	if !ok {
		s.failWith(w, r, http.StatusForbidden, "This link is none of ours, or is older than this server.")
		return
	}
	s.config.Clicked(u)
	w.WriteHeader(http.StatusNoContent)
}
