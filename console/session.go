package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"
)

// Bounds of sessions and of links that begin one.
const (
	sessionTime  = 12 * time.Hour
	maxSessions  = 1000
	loginLinkAge = 24 * time.Hour
	maxLoginLink = 16
)

// secretSet holds secrets that this process has given out, by their SHA-256, each
// with a name and an end. It is bounded: the one that ends first makes room.
type secretSet struct {
	max int

	mu   sync.Mutex
	held map[[sha256.Size]byte]heldSecret
}

type heldSecret struct {
	name string
	end  time.Time
}

func newSecretSet(maxSecrets int) *secretSet {
	return &secretSet{max: maxSecrets, held: map[[sha256.Size]byte]heldSecret{}}
}

// issueSecret returns a new secret that is valid until end.
func (s *secretSet) issueSecret(name string, end time.Time) string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	secret := base64.RawURLEncoding.EncodeToString(random)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) >= s.max {
		var first [sha256.Size]byte
		var ends time.Time
		for k, h := range s.held {
			if ends.IsZero() || h.end.Before(ends) {
				first, ends = k, h.end
			}
		}
		delete(s.held, first)
	}
	s.held[sha256.Sum256([]byte(secret))] = heldSecret{name, end}
	return secret
}

// secretName returns the name that a secret was issued for, while it is valid.
func (s *secretSet) secretName(secret string, now time.Time) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := sha256.Sum256([]byte(secret))
	h, ok := s.held[k]
	if ok && now.After(h.end) {
		delete(s.held, k)
		ok = false
	}
	return h.name, ok
}

// takeSecret is name, and revokes the secret.
func (s *secretSet) takeSecret(secret string, now time.Time) (string, bool) {
	name, ok := s.secretName(secret, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := sha256.Sum256([]byte(secret))
	if _, held := s.held[k]; !held { // another request was first
		return "", false
	}
	delete(s.held, k)
	return name, ok
}

// cookieName is the name of the session cookie. By TLS browsers take it with
// this prefix only from this very host, with Secure and for all paths.
func (s *Server) cookieName(r *http.Request) string {
	if s.isReachedByTLS(r) {
		return "__Host-" + sessionCookie
	}
	return sessionCookie
}

// isReachedByTLS reports whether browsers reach the server by TLS, here or at a proxy.
func (s *Server) isReachedByTLS(r *http.Request) bool { return r.TLS != nil || s.auth.httpsOutside }

// startSession logs a browser in.
func (s *Server) startSession(w http.ResponseWriter, r *http.Request, name string) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(r), Value: s.auth.sessions.issueSecret(name, time.Now().Add(sessionTime)), Path: "/",
		MaxAge: int(sessionTime.Seconds()), HttpOnly: true, Secure: s.isReachedByTLS(r), SameSite: http.SameSiteLaxMode,
	})
}

// handleLogout revokes the session of the request.
func (s *Server) handleLogout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		s.auth.sessions.takeSecret(c.Value, time.Now())
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(r), Path: "/", MaxAge: -1, HttpOnly: true, Secure: s.isReachedByTLS(r), SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// LoginLink returns a path that logs one browser in as the owner of the data
// directory: it is valid once, for a day.
func (s *Server) LoginLink() string {
	return "/login/link?key=" + s.auth.links.issueSecret("owner", time.Now().Add(loginLinkAge))
}

// apiLoginLink gives an operator's program a link for a browser.
func (s *Server) apiLoginLink(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	s.writeJSON(w, http.StatusCreated, map[string]string{"path": s.LoginLink()})
}

// loginByLink starts a session for the holder of a link.
func (s *Server) loginByLink(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !s.auth.attempts.Allow(s.auth.clientKey(r)) {
		s.failWith(w, r, http.StatusTooManyRequests, "too many attempts: wait a minute")
		return
	}
	name, ok := s.auth.links.takeSecret(r.URL.Query().Get("key"), time.Now())
	if !ok {
		s.failWith(w, r, http.StatusForbidden, `This link was used or is too old: "freshet open" prints a new one.`)
		return
	}
	s.startSession(w, r, name)
	http.Redirect(w, r, "/status", http.StatusSeeOther)
}
