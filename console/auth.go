package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"
)

// sessionTime is how long a login lasts.
const sessionTime = 12 * time.Hour

const sessionCookie = "freshet_session"

// auth knows who is the operator.
type auth struct {
	hash     []byte
	tokens   [][sha256.Size]byte
	header   string
	proxies  []netip.Prefix
	key      []byte // of the session cookies; new at every start
	needed   bool
	attempts *limiter
}

func newAuth(c Config) (*auth, error) {
	a := &auth{hash: []byte(c.Password), header: c.Header, key: make([]byte, 32), attempts: newLimiter(.2)}
	if _, err := rand.Read(a.key); err != nil {
		return nil, err
	}
	if c.Password != "" {
		if _, err := bcrypt.Cost(a.hash); err != nil {
			return nil, errors.New("the password is not a hash made by freshet config hash")
		}
	}
	for _, t := range c.Tokens {
		a.tokens = append(a.tokens, sha256.Sum256([]byte(t)))
	}
	for _, p := range c.Proxies {
		prefix, err := netip.ParsePrefix(p)
		if err != nil {
			addr, err := netip.ParseAddr(p)
			if err != nil {
				return nil, fmt.Errorf("trusted proxy %q is neither an address nor a network", p)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		a.proxies = append(a.proxies, prefix)
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: %w", c.Listen, err)
	}
	a.needed = c.Password != "" || c.Header != "" || len(c.Tokens) > 0
	if !a.needed && !loopbackName(host) {
		return nil, fmt.Errorf("%s can be reached from outside: a password, token or trusted proxy is needed", c.Listen)
	}
	return a, nil
}

// loopbackName reports whether a host name means this machine.
func loopbackName(host string) bool {
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || (ip != nil && ip.IsLoopback())
}

// operator reports whether the request comes from the operator.
func (a *auth) operator(r *http.Request) bool {
	if !a.needed {
		return true
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		sum := sha256.Sum256([]byte(token))
		found := 0
		for _, t := range a.tokens {
			found |= subtle.ConstantTimeCompare(sum[:], t[:])
		}
		return found == 1
	}
	if a.header != "" && r.Header.Get(a.header) != "" && a.trusted(r.RemoteAddr) {
		return true
	}
	c, err := r.Cookie(sessionCookie)
	return err == nil && a.valid(c.Value, time.Now())
}

func (a *auth) trusted(remote string) bool {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	for _, p := range a.proxies {
		if p.Contains(ap.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// session returns a cookie value that is valid until end: the time and its MAC.
func (a *auth) session(end time.Time) string {
	t := strconv.FormatInt(end.Unix(), 10)
	m := hmac.New(sha256.New, a.key)
	m.Write([]byte(t))
	return t + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (a *auth) valid(value string, now time.Time) bool {
	t, _, ok := strings.Cut(value, ".")
	end, err := strconv.ParseInt(t, 10, 64)
	if !ok || err != nil || now.Unix() > end {
		return false
	}
	return hmac.Equal([]byte(value), []byte(a.session(time.Unix(end, 0))))
}

// open wraps a handler that everybody may use, unless searching is private.
func (s *Server) open(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.config.Private && !s.auth.operator(r) {
			s.refuse(w, r)
			return
		}
		if !s.rate.allow(r.RemoteAddr) {
			w.Header().Set("Retry-After", "5")
			s.fail(w, r, http.StatusTooManyRequests, "too many searches from your address: wait a few seconds")
			return
		}
		h(w, r)
	})
}

// operatorOnly wraps a handler that only the operator may use.
func (s *Server) operatorOnly(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.auth.operator(r) {
			s.refuse(w, r)
			return
		}
		h(w, r)
	})
}

// refuse sends browsers to the login page and tells programs 401.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") && len(s.auth.hash) > 0 {
		http.Redirect(w, r, "/login?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="freshet"`)
	s.fail(w, r, http.StatusUnauthorized, "login needed")
}

func (s *Server) loginPage(w http.ResponseWriter, r *http.Request) {
	s.render(w, http.StatusOK, "login.html", map[string]any{"Title": s.config.Title, "To": localPath(r.URL.Query().Get("to"))})
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	to := localPath(r.PostFormValue("to"))
	if !s.auth.attempts.allow(r.RemoteAddr) {
		s.fail(w, r, http.StatusTooManyRequests, "too many attempts: wait a minute")
		return
	}
	if len(s.auth.hash) == 0 || bcrypt.CompareHashAndPassword(s.auth.hash, []byte(r.PostFormValue("password"))) != nil {
		s.render(w, http.StatusUnauthorized, "login.html", map[string]any{"Title": s.config.Title, "To": to, "Wrong": true})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: s.auth.session(time.Now().Add(sessionTime)), Path: "/",
		MaxAge: int(sessionTime.Seconds()), HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// localPath keeps a redirect on this server.
func localPath(p string) string {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\r\n") {
		return "/status"
	}
	return p
}

// protect sets the security headers, refuses state-changing requests from
// foreign pages and, on a server without login, foreign host names.
func (s *Server) protect(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	for _, receiver := range []string{"POST /indexnow", "POST /websub/", "POST /api/signals"} {
		cross.AddInsecureBypassPattern(receiver) // signed or checked by their own handlers
	}
	checked := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.auth.needed {
			host, _, err := net.SplitHostPort(r.Host)
			if err != nil {
				host = r.Host
			}
			if !loopbackName(host) {
				http.Error(w, "unknown host name", http.StatusMisdirectedRequest)
				return
			}
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		checked.ServeHTTP(w, r)
	})
}

// limiter allows each address so many requests a second, with a burst of ten
// seconds' worth. It remembers a bounded number of addresses.
type limiter struct {
	perSecond float64
	mu        sync.Mutex
	of        map[string]*rate.Limiter
}

// limitedAddresses bounds the memory of a limiter; when it is full it starts
// anew, which gives everybody a fresh burst.
const limitedAddresses = 10_000

func newLimiter(perSecond float64) *limiter {
	return &limiter{perSecond: perSecond, of: map[string]*rate.Limiter{}}
}

func (l *limiter) allow(remote string) bool {
	if l.perSecond <= 0 {
		return true
	}
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.of) >= limitedAddresses {
		clear(l.of)
	}
	lim := l.of[host]
	if lim == nil {
		lim = rate.NewLimiter(rate.Limit(l.perSecond), max(5, int(10*l.perSecond)))
		l.of[host] = lim
	}
	return lim.Allow()
}
