package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/freshet/freshet/internal/ratelimit"
)

const sessionCookie = "freshet_session"

// minTokenLength is the least length of a token of the API, in bytes.
const minTokenLength = 16

// limitedClients is how many clients a limiter remembers.
const limitedClients = 10_000

// auth knows who asks.
type auth struct {
	hash         []byte
	tokens       [][sha256.Size]byte // of programs; the owner's is among them
	header       string
	operators    []string // names in header that are operators
	proxies      []netip.Prefix
	hosts        *hostNames
	loginNeeded  bool // some login is configured: strangers may not read the status
	private      bool
	httpsOutside bool // browsers reach the server by https, wherever that ends
	attempts     *ratelimit.Limiter
	sessions     *secretSet
	links        *secretSet    // that log a browser in, once
	hashing      chan struct{} // comparisons of passwords under way
}

// identity is who asks. The zero value is a stranger.
type identity struct {
	name     string
	operator bool
}

func newAuth(c Config) (a *auth, err error) {
	a = &auth{
		hash: []byte(c.Password), header: c.Header, operators: c.Operators, private: c.Private,
		attempts: newLimiter(.2), sessions: newSecretSet(maxSessions), links: newSecretSet(maxLoginLink), hashing: make(chan struct{}, 2),
	}
	if c.Password != "" {
		if _, err := bcrypt.Cost(a.hash); err != nil {
			return nil, errors.New("the password is not a hash made by freshet config hash")
		}
	}
	for i, t := range c.Tokens {
		if len(t) < minTokenLength {
			return nil, fmt.Errorf("token %d has %d characters: at least %d are needed", i+1, len(t), minTokenLength)
		}
		a.tokens = append(a.tokens, sha256.Sum256([]byte(t)))
	}
	a.loginNeeded = c.Password != "" || c.Header != "" || len(c.Tokens) > 0
	if c.OwnerToken != "" {
		a.tokens = append(a.tokens, sha256.Sum256([]byte(c.OwnerToken)))
	}
	if a.proxies, err = ParseNetworks(c.Proxies); err != nil {
		return nil, err
	}
	if a.hosts, err = newHostNames(c); err != nil {
		return nil, err
	}
	for _, address := range c.Addresses {
		a.httpsOutside = a.httpsOutside || strings.HasPrefix(address, "https://") && address == c.PublicURL
	}
	if host, _, _ := net.SplitHostPort(c.Listen); !a.loginNeeded && !loopbackName(host) {
		return nil, fmt.Errorf("%s can be reached from outside: a password, token or trusted proxy is needed", c.Listen)
	}
	return a, nil
}

// newLimiter allows each client an average rate, with a burst of ten seconds' worth.
func newLimiter(perSecond float64) *ratelimit.Limiter {
	return ratelimit.New(perSecond, max(5, int(10*perSecond)), limitedClients)
}

// identifySender returns who sends a request: a program by its bearer token, a user
// whom a trusted proxy names, a browser by its session.
func (s *Server) identifySender(r *http.Request) identity {
	a := s.auth
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		sum := sha256.Sum256([]byte(token))
		found := 0
		for _, t := range a.tokens {
			found |= subtle.ConstantTimeCompare(sum[:], t[:])
		}
		if found == 1 {
			return identity{"token", true}
		}
		return identity{}
	}
	var who identity
	if a.header != "" && inNetworks(a.proxies, remoteAddr(r)) {
		if names := r.Header.Values(a.header); len(names) == 1 && names[0] != "" {
			who = identity{names[0], slices.Contains(a.operators, names[0]) || slices.Contains(a.operators, "*")}
		}
	}
	if c, err := r.Cookie(s.cookieName(r)); err == nil && !who.operator {
		if name, ok := a.sessions.secretName(c.Value, time.Now()); ok {
			who = identity{name, true}
		}
	}
	return who
}

// mayOperate reports whether the request may change what the robot does.
func (s *Server) mayOperate(r *http.Request) bool { return s.identifySender(r).operator }

// mayRead reports whether the request may read the operator's pages: on a server
// without login everybody who may search, else operators.
func (s *Server) mayRead(r *http.Request) bool {
	return (!s.auth.loginNeeded && !s.auth.private) || s.mayOperate(r)
}

// maySearch reports whether the request may search: everybody, or, if searching
// is private, every user who has a name.
func (s *Server) maySearch(r *http.Request) bool {
	return !s.auth.private || s.identifySender(r).name != ""
}

// openToSearch wraps a handler for everybody who may search, at a bounded rate.
func (s *Server) openToSearch(h http.HandlerFunc) http.Handler {
	return s.requirePermission(s.maySearch, func(w http.ResponseWriter, r *http.Request) {
		if !s.rate.Allow(s.auth.clientKey(r)) {
			w.Header().Set("Retry-After", "5")
			s.failWith(w, r, http.StatusTooManyRequests, "too many searches from your address: wait a few seconds")
			return
		}
		h(w, r)
	})
}

// operatorReads wraps a handler that shows what only operators see where there is
// a login.
func (s *Server) operatorReads(h http.HandlerFunc) http.Handler {
	return s.requirePermission(s.mayRead, h)
}

// operatorOnly wraps a handler that only operators may use.
func (s *Server) operatorOnly(h http.HandlerFunc) http.Handler {
	return s.requirePermission(s.mayOperate, h)
}

func (s *Server) requirePermission(may func(*http.Request) bool, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !may(r) {
			s.refuseAccess(w, r)
			return
		}
		h(w, r)
	})
}

// refuseAccess sends browsers to the login page, and answers others with 401, or with
// 403 if they are known and may not.
func (s *Server) refuseAccess(w http.ResponseWriter, r *http.Request) {
	if who := s.identifySender(r); who.name != "" {
		s.failWith(w, r, http.StatusForbidden, "Only operators may do this.")
		return
	}
	if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") && len(s.auth.hash) > 0 {
		http.Redirect(w, r, "/login?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="freshet"`)
	why := "login needed"
	if !s.auth.loginNeeded {
		why = `Only the owner of the data directory may do this: "freshet open" prints a link that logs a browser in.`
	}
	s.failWith(w, r, http.StatusUnauthorized, why)
}

func (s *Server) loginPage(w http.ResponseWriter, r *http.Request) {
	s.renderTemplate(w, http.StatusOK, "login.html", map[string]any{"Title": s.config.Title, "To": localPath(r.URL.Query().Get("to")), "Password": len(s.auth.hash) > 0})
}

func (s *Server) handleLogin(w http.ResponseWriter, r *http.Request) {
	if len(s.auth.hash) == 0 {
		s.failWith(w, r, http.StatusNotFound, "This server has no password.")
		return
	}
	if !s.auth.attempts.Allow(s.auth.clientKey(r)) { // before the body is read
		s.failWith(w, r, http.StatusTooManyRequests, "too many attempts: wait a minute")
		return
	}
	if !s.readForm(w, r) {
		return
	}
	select {
	case s.auth.hashing <- struct{}{}: // a comparison takes a processor for a tenth of a second
	case <-r.Context().Done():
		return
	}
	err := bcrypt.CompareHashAndPassword(s.auth.hash, []byte(r.PostForm.Get("password")))
	<-s.auth.hashing
	to := localPath(r.PostForm.Get("to"))
	if err != nil {
		s.renderTemplate(w, http.StatusUnauthorized, "login.html", map[string]any{"Title": s.config.Title, "To": to, "Wrong": true, "Password": true})
		return
	}
	s.startSession(w, r, "password")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// localPath keeps a redirect on this server. Browsers drop tabs and line breaks
// from addresses and take \ for /, so all of these are refused.
func localPath(p string) string {
	const home = "/status"
	if strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return home
	}
	u, err := url.Parse(p)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(p, "/") || strings.HasPrefix(u.Path, "//") {
		return home
	}
	return p
}

// protectHandler sets the security headers, refuses host names that are not the
// server's and state-changing requests from foreign pages, and keeps all but the
// home page out of other search engines.
func (s *Server) protectHandler(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection() // programs send no Origin, receivers of signals need no exception
	checked := cross.Handler(limitBody(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz" // tell nothing
		if !probe && !s.auth.hosts.isOwnName(r.Host) {
			http.Error(w, fmt.Sprintf("unknown host name %q: console.hosts in the configuration names those that the server answers to", bareHost(r.Host)), http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.URL.Path != "/" || r.URL.RawQuery != "" {
			h.Set("X-Robots-Tag", "noindex, nofollow")
		}
		checked.ServeHTTP(w, r)
	})
}
