package signal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// KeyFetcher gets the body of a key file.
type KeyFetcher interface {
	Key(ctx context.Context, address string) ([]byte, error)
}

// IndexNow receives notices by the IndexNow protocol: GET with url and key, or
// POST of up to 10,000 URLs of one host. A sender proves that it speaks for the
// host by a file there that holds the key; only a good proof is remembered.
// Answers: 202 taken, 400 malformed, 403 the key is not there, 422 URLs that the
// key does not cover, 429 too often.
type IndexNow struct {
	Keys KeyFetcher
	Sink Sink

	flood flood
	mu    sync.Mutex
	good  map[string]time.Time // key location and key -> believed until
}

// Bounds of IndexNow.
const (
	maxURLs    = 10_000
	maxNow     = 16 << 20
	keyBelieve = time.Hour
	maxKeys    = 10_000
)

var keyForm = regexp.MustCompile(`^[a-zA-Z0-9-]{8,128}$`)

// notice is the body of a POST.
type notice struct {
	Host        string   `json:"host"`
	Key         string   `json:"key"`
	KeyLocation string   `json:"keyLocation"`
	URLList     []string `json:"urlList"`
}

// ServeHTTP implements http.Handler.
func (h *IndexNow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := read(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !h.flood.allow(r.RemoteAddr[:max(0, strings.LastIndexByte(r.RemoteAddr, ':'))], len(n.URLList)) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many notices: wait", http.StatusTooManyRequests)
		return
	}
	covers, location, err := n.scope()
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
	if !h.proven(r.Context(), location, n.Key) {
		http.Error(w, location+" does not hold the key", http.StatusForbidden)
		return
	}
	if _, err := h.Sink.Changed(r.Context(), "indexnow", events); err != nil {
		http.Error(w, "the notices could not be stored: send them again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// read takes a notice from either form of request.
func read(w http.ResponseWriter, r *http.Request) (*notice, error) {
	n := &notice{}
	switch r.Method {
	case http.MethodGet:
		q := r.URL.Query()
		n.Key, n.KeyLocation, n.URLList = q.Get("key"), q.Get("keyLocation"), []string{q.Get("url")}
	case http.MethodPost:
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxNow))
		if err != nil {
			return nil, fmt.Errorf("a notice holds at most %d bytes", maxNow)
		}
		if err := json.Unmarshal(body, n); err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
	default:
		return nil, fmt.Errorf("%s: notices come by GET or POST", r.Method)
	}
	switch {
	case !keyForm.MatchString(n.Key):
		return nil, fmt.Errorf("key: 8 to 128 letters, digits and hyphens are a key")
	case len(n.URLList) == 0 || n.URLList[0] == "":
		return nil, fmt.Errorf("no URL")
	case len(n.URLList) > maxURLs:
		return nil, fmt.Errorf("%d URLs: at most %d fit a notice", len(n.URLList), maxURLs)
	}
	return n, nil
}

// scope returns what the key covers (host and folder of the key file, without
// scheme) and where the key file lies.
func (n *notice) scope() (covers, location string, err error) {
	first, err := url.Parse(n.URLList[0])
	if err != nil || (first.Scheme != "http" && first.Scheme != "https") || first.Host == "" {
		return "", "", fmt.Errorf("urlList[0]: %q is no http or https URL", n.URLList[0])
	}
	host := n.Host
	if host == "" {
		host = first.Host
	}
	if n.KeyLocation == "" {
		return host + "/", first.Scheme + "://" + host + "/" + n.Key + ".txt", nil
	}
	at, err := url.Parse(n.KeyLocation)
	if err != nil || (at.Scheme != "http" && at.Scheme != "https") {
		return "", "", fmt.Errorf("keyLocation: %q is no http or https URL", n.KeyLocation)
	}
	if at.Path == "" {
		return "", "", fmt.Errorf("keyLocation: %q names no file", n.KeyLocation)
	}
	if at.Host != host {
		return "", "", fmt.Errorf("keyLocation: %q is not on %s", n.KeyLocation, host)
	}
	return host + at.Path[:strings.LastIndexByte(at.Path, '/')+1], n.KeyLocation, nil
}

// proven reports whether the key file holds the key.
func (h *IndexNow) proven(ctx context.Context, location, key string) bool {
	id, now := location+"\x00"+key, time.Now()
	h.mu.Lock()
	until := h.good[id]
	h.mu.Unlock()
	if now.Before(until) {
		return true
	}
	body, err := h.Keys.Key(ctx, location)
	if err != nil || strings.TrimSpace(string(body)) != key {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.good == nil || len(h.good) >= maxKeys {
		h.good = map[string]time.Time{}
	}
	h.good[id] = now.Add(keyBelieve)
	return true
}
