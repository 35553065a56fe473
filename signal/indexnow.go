package signal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/internal/ratelimit"
)

// KeyFetcher gets the body of a key file.
type KeyFetcher interface {
	Key(ctx context.Context, address string) ([]byte, error)
}

// IndexNow receives notices by the IndexNow protocol: GET with url and key, or
// POST of up to 10,000 URLs of one host. A sender proves that it speaks for the
// host by a file there that holds the key. The answer does not wait for that: 202
// is sent before the file is fetched, by Run, and the notice counts once it is
// proven. Answers: 202 taken or to be proven, 400 malformed, 403 from a web page,
// 422 URLs that the key does not cover, 429 too often.
type IndexNow struct {
	Keys KeyFetcher
	Sink Sink
	// Client names the sender of a request for limits; nil takes the connection's
	// address.
	Client func(*http.Request) string

	once     sync.Once
	requests *ratelimit.Limiter // by sender
	unproven *ratelimit.Limiter // by sender and host
	fetches  *ratelimit.Limiter // of key files, by host
	flood    flood
	bodies   bodyGate
	queue    chan proof

	mu     sync.Mutex
	proven map[string]time.Time // key location and key -> believed until
	failed map[string]time.Time // ... not asked for until
	hosts  map[string]int       // proofs that wait or are under way
}

// proof is a notice whose key file must be looked at.
type proof struct {
	id, host, location, key string
	events                  []Event
}

// Bounds of IndexNow.
const (
	maxURLs    = 10_000
	maxNow     = 2 << 20
	keyBelieve = time.Hour
	keyDoubt   = time.Hour // a key that was not there is not looked for again
	maxKeys    = 10_000
	maxProofs  = 64 // that wait
	// maxHostProofs is how many of these one host may have.
	maxHostProofs = 4
	// keysAMinute is how many unproven keys are looked for at one host.
	keysAMinute = 2
)

var keyForm = regexp.MustCompile(`^[a-zA-Z0-9-]{8,128}$`)

// notice is the body of a POST.
type notice struct {
	Host        string   `json:"host"`
	Key         string   `json:"key"`
	KeyLocation string   `json:"keyLocation"`
	URLList     []string `json:"urlList"`
}

func (h *IndexNow) init() {
	h.once.Do(func() {
		h.requests = ratelimit.New(10, 50, maxSenders)
		h.unproven = ratelimit.New(1, 3, maxSenders)
		h.fetches = ratelimit.New(keysAMinute/60., keysAMinute, maxSenders)
		h.queue = make(chan proof, maxProofs)
		h.proven, h.failed, h.hosts = map[string]time.Time{}, map[string]time.Time{}, map[string]int{}
	})
}

// ServeHTTP implements http.Handler.
func (h *IndexNow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.init()
	if fromWebPage(r) {
		http.Error(w, "notices come from servers, not from web pages", http.StatusForbidden)
		return
	}
	client := clientOf(r, h.Client)
	if !h.requests.Allow(client) { // before a body is read
		tooOften(w)
		return
	}
	n, ok := h.readNotice(w, r, client)
	if !ok {
		return
	}
	covers, location, err := n.keyScope()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	events := make([]Event, len(n.URLList))
	for i, u := range n.URLList {
		if !strings.HasPrefix(u, "http://"+covers) && !strings.HasPrefix(u, "https://"+covers) {
			http.Error(w, fmt.Sprintf("urlList[%d]: %q is not below %s, which the key covers", i, u, covers), http.StatusUnprocessableEntity)
			return
		}
		events[i] = Event{URL: u, Event: "updated", Seen: time.Now()}
	}
	host, _, _ := strings.Cut(covers, "/")
	p := proof{location + "\x00" + n.Key, host, location, n.Key, events}
	if h.isProven(p.id) {
		if !h.flood.allowSender(host, len(events)) {
			tooOften(w)
			return
		}
		if _, err := h.Sink.Changed(r.Context(), "indexnow", events); err != nil {
			http.Error(w, "the notices could not be stored: send them again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !h.unproven.Allow(client+" "+host) || !h.enqueueProof(p) {
		tooOften(w)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func tooOften(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "60")
	http.Error(w, "too many notices: wait", http.StatusTooManyRequests)
}

// fromWebPage reports whether a browser sends a request on behalf of a page: that
// of a stranger could reach a server that he cannot.
func fromWebPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site != "" && site != "none") || r.Header.Get("Origin") != "" || r.Header.Get("Referer") != "" || r.Header.Get("Cookie") != ""
}

func (h *IndexNow) isProven(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.proven[id])
}

// enqueueProof leaves a notice to Run, false if too many wait. One whose key was not
// there lately is dropped.
func (h *IndexNow) enqueueProof(p proof) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.failed[p.id]) {
		return true
	}
	if h.hosts[p.host] >= maxHostProofs {
		return false
	}
	select {
	case h.queue <- p:
		h.hosts[p.host]++
		return true
	default:
		return false
	}
}

// Run fetches key files, one at a time, and passes on the notices that they prove,
// until ctx ends.
func (h *IndexNow) Run(ctx context.Context) error {
	h.init()
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-h.queue:
			if h.proveKey(ctx, p) && h.flood.allowSender(p.host, len(p.events)) {
				_, _ = h.Sink.Changed(ctx, "indexnow", p.events) // the sink logs its errors; the sender will tell of the next change
			}
			h.mu.Lock()
			if h.hosts[p.host]--; h.hosts[p.host] <= 0 {
				delete(h.hosts, p.host)
			}
			h.mu.Unlock()
		}
	}
}

// proveKey reports whether the key file holds the key, as was found lately or is now.
func (h *IndexNow) proveKey(ctx context.Context, p proof) bool {
	now := time.Now()
	h.mu.Lock()
	good, bad := now.Before(h.proven[p.id]), now.Before(h.failed[p.id])
	_, before := h.proven[p.id]
	h.mu.Unlock()
	if good || bad {
		return good
	}
	if !before && !h.fetches.Allow(p.host) { // strangers do not use up the tries of a key that was right
		return false
	}
	body, err := h.Keys.Key(ctx, p.location)
	if ctx.Err() != nil {
		return false
	}
	good = err == nil && strings.TrimSpace(string(body)) == p.key
	h.mu.Lock()
	defer h.mu.Unlock()
	if good {
		forgetOne(h.proven)
		h.proven[p.id] = now.Add(keyBelieve)
	} else {
		delete(h.proven, p.id)
		forgetOne(h.failed)
		h.failed[p.id] = now.Add(keyDoubt)
	}
	return good
}

// forgetOne makes room in a map of times.
func forgetOne(m map[string]time.Time) {
	if len(m) < maxKeys {
		return
	}
	for k := range m { // any
		delete(m, k)
		return
	}
}

// readNotice takes a notice from either form of request; it answers errors.
func (h *IndexNow) readNotice(w http.ResponseWriter, r *http.Request, client string) (*notice, bool) {
	n := &notice{}
	switch r.Method {
	case http.MethodGet:
		q := r.URL.Query()
		n.Key, n.KeyLocation, n.URLList = q.Get("key"), q.Get("keyLocation"), []string{q.Get("url")}
	case http.MethodPost:
		body, ok := h.bodies.readBounded(w, r, client, maxNow)
		if !ok {
			return nil, false
		}
		if err := json.Unmarshal(body, n); err != nil {
			http.Error(w, "body: "+err.Error(), http.StatusBadRequest)
			return nil, false
		}
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "notices come by GET or POST", http.StatusMethodNotAllowed)
		return nil, false
	}
	if err := n.checkNotice(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, false
	}
	return n, true
}

func (n *notice) checkNotice() error {
	switch {
	case !keyForm.MatchString(n.Key):
		return fmt.Errorf("key: 8 to 128 letters, digits and hyphens are a key")
	case len(n.URLList) == 0 || n.URLList[0] == "":
		return fmt.Errorf("no URL")
	case len(n.URLList) > maxURLs:
		return fmt.Errorf("%d URLs: at most %d fit a notice", len(n.URLList), maxURLs)
	}
	return nil
}

// keyScope returns what the key covers (host and folder of the key file, without
// scheme) and where the key file lies: a .txt file on the host of the URLs.
func (n *notice) keyScope() (covers, location string, err error) {
	first, err := url.Parse(n.URLList[0])
	if err != nil || (first.Scheme != "http" && first.Scheme != "https") || first.Host == "" {
		return "", "", fmt.Errorf("urlList[0]: %q is no http or https URL", n.URLList[0])
	}
	host := first.Host
	if n.Host != "" && n.Host != host {
		return "", "", fmt.Errorf("host: %q is not the host of urlList[0], %s", n.Host, host)
	}
	if strings.ContainsAny(host, "/@\\?# ") || first.User != nil {
		return "", "", fmt.Errorf("urlList[0]: %q has no plain host", n.URLList[0])
	}
	if n.KeyLocation == "" {
		return host + "/", first.Scheme + "://" + host + "/" + n.Key + ".txt", nil
	}
	at, err := url.Parse(n.KeyLocation)
	if err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.User != nil || at.Opaque != "" {
		return "", "", fmt.Errorf("keyLocation: %q is no http or https URL", n.KeyLocation)
	}
	if at.Host != host {
		return "", "", fmt.Errorf("keyLocation: %q is not on %s", n.KeyLocation, host)
	}
	path := at.EscapedPath()
	if !strings.HasSuffix(path, ".txt") || at.RawQuery != "" || at.ForceQuery || at.Fragment != "" || strings.Contains(path, "%") || strings.Contains(path, "/.") || strings.Contains(path, ";") || len(path) > 512 {
		return "", "", fmt.Errorf("keyLocation: %q is no plain path of a .txt file", n.KeyLocation)
	}
	return host + path[:strings.LastIndexByte(path, '/')+1], at.Scheme + "://" + host + path, nil
}
