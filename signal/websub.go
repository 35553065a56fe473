package signal

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Hubs is what WebSub needs of the robot's client: it discovers a topic's hub
// and asks it.
type Hubs interface {
	// Discover returns the hubs and the canonical address (rel=self) that a topic
	// names in its Link headers or its document.
	Discover(ctx context.Context, topic string) (hubs []string, self string, err error)
	// Subscribe posts a form to a hub; a status other than 2xx is an error.
	Subscribe(ctx context.Context, hub string, form url.Values) error
}

// WebSub subscribes to topics (feeds, mostly) at their hubs and takes what the
// hubs send (W3C Recommendation WebSub, 2018). A notification makes the topic
// and the pages that its entries name due. It is verified by the hub's
// signature: 401 for a wrong or missing one, 413 for too much, 429 for too
// often, 410 for a subscription that is not ours.
type WebSub struct {
	Topics   []string // addresses to be told of
	Callback string   // address under which hubs reach ServeHTTP, ending in /websub/
	Hubs     Hubs
	Sink     Sink
	// Pages returns the addresses that the entries of a feed name.
	Pages func(body []byte, topic string) []string
	Log   *slog.Logger

	flood  flood
	bodies bodyGate // for each hub
	mu     sync.Mutex
	subs   map[string]*subscription // by the last part of the callback
}

// subscription is one topic at one hub.
type subscription struct {
	topic  string
	hub    string
	secret string
	until  time.Time // zero before the hub has verified it
}

const (
	maxContent  = 8 << 20
	leaseWanted = 10 * 24 * time.Hour
	askAgain    = 10 * time.Minute // a topic without hub, a hub that refuses
)

// Run subscribes, and renews what runs out, until ctx ends. Subscriptions of an
// earlier process are not continued: the hub is told 410 and drops them.
func (w *WebSub) Run(ctx context.Context) error {
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	next := map[string]time.Time{}
	for {
		now, wake := time.Now(), time.Now().Add(time.Hour)
		for _, topic := range w.Topics {
			if at := next[topic]; at.After(now) {
				if at.Before(wake) {
					wake = at
				}
				continue
			}
			wait, err := w.subscribeTopic(ctx, topic)
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				w.Log.Warn("websub", "topic", topic, "err", err)
				wait = askAgain
			}
			next[topic] = now.Add(wait)
			if next[topic].Before(wake) {
				wake = next[topic]
			}
		}
		t := time.NewTimer(time.Until(wake))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// subscribeTopic asks the first hub of a topic that takes it, and returns when to ask
// again: before the lease that we wished for ends, at half of it.
func (w *WebSub) subscribeTopic(ctx context.Context, topic string) (time.Duration, error) {
	hubs, self, err := w.Hubs.Discover(ctx, topic)
	if err != nil {
		return 0, err
	}
	if len(hubs) == 0 {
		return 0, errors.New("the topic names no hub")
	}
	if self == "" {
		self = topic
	}
	var errs []error
	for _, hub := range hubs {
		id, secret := randomHex(), randomHex()
		w.mu.Lock()
		if w.subs == nil {
			w.subs = map[string]*subscription{}
		}
		w.subs[id] = &subscription{topic: self, hub: hub, secret: secret}
		w.mu.Unlock()
		err := w.Hubs.Subscribe(ctx, hub, url.Values{
			"hub.mode": {"subscribe"}, "hub.topic": {self}, "hub.callback": {w.Callback + id}, "hub.secret": {secret},
			"hub.lease_seconds": {strconv.Itoa(int(leaseWanted.Seconds()))},
		})
		if err == nil {
			w.dropSubscriptions(id, self, hub)
			return leaseWanted / 2, nil
		}
		w.mu.Lock()
		delete(w.subs, id)
		w.mu.Unlock()
		errs = append(errs, err)
	}
	return 0, errors.Join(errs...)
}

// dropSubscriptions drops subscriptions that ran out, and those that were never verified
// but for the newest.
func (w *WebSub) dropSubscriptions(newest, topic, hub string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for id, s := range w.subs {
		stale := !s.until.IsZero() && now.After(s.until)
		if id != newest && s.topic == topic && s.hub == hub && (stale || s.until.IsZero()) {
			delete(w.subs, id)
		}
	}
}

func randomHex() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ServeHTTP implements http.Handler for addresses below /websub/.
func (w *WebSub) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	w.mu.Lock()
	s := w.subs[id]
	var sub subscription
	if s != nil {
		sub = *s
	}
	w.mu.Unlock()
	switch {
	case s == nil:
		http.Error(rw, "no such subscription", http.StatusGone)
	case r.Method == http.MethodGet:
		w.verifyIntent(rw, r, id, &sub)
	case r.Method == http.MethodPost:
		w.receiveContent(rw, r, &sub)
	default:
		rw.Header().Set("Allow", "GET, POST")
		http.Error(rw, "hubs verify by GET and notify by POST", http.StatusMethodNotAllowed)
	}
}

// verifyIntent answers the hub's question whether we meant it.
func (w *WebSub) verifyIntent(rw http.ResponseWriter, r *http.Request, id string, sub *subscription) {
	q := r.URL.Query()
	switch {
	case q.Get("hub.topic") != sub.topic:
		http.Error(rw, "not the topic of this subscription", http.StatusNotFound)
	case q.Get("hub.mode") == "denied":
		w.mu.Lock()
		delete(w.subs, id)
		w.mu.Unlock()
		w.Log.Warn("websub: denied", "topic", sub.topic, "hub", sub.hub, "why", q.Get("hub.reason"))
		rw.WriteHeader(http.StatusOK)
	case q.Get("hub.mode") == "subscribe" && q.Get("hub.challenge") != "":
		lease := leaseWanted
		if n, err := strconv.Atoi(q.Get("hub.lease_seconds")); err == nil && n > 0 {
			lease = min(time.Duration(n)*time.Second, 10*leaseWanted)
		}
		w.mu.Lock()
		if s := w.subs[id]; s != nil {
			s.until = time.Now().Add(lease)
		}
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		rw.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(rw, q.Get("hub.challenge"))
	default: // unsubscribing was not our wish
		http.Error(rw, "not asked for", http.StatusNotFound)
	}
}

// receiveContent takes content from a hub.
func (w *WebSub) receiveContent(rw http.ResponseWriter, r *http.Request, sub *subscription) {
	if r.Header.Get("X-Hub-Signature") == "" { // before the body is read
		http.Error(rw, "missing or wrong signature", http.StatusUnauthorized)
		return
	}
	body, ok := w.bodies.readBounded(rw, r, sub.hub, maxContent)
	if !ok {
		return
	}
	if !signedBy(r.Header.Get("X-Hub-Signature"), sub.secret, body) {
		http.Error(rw, "missing or wrong signature", http.StatusUnauthorized)
		return
	}
	now := time.Now()
	events := []Event{{URL: sub.topic, Event: "updated", Seen: now}}
	if w.Pages != nil {
		for _, p := range w.Pages(body, sub.topic) {
			if len(events) > maxURLs {
				break
			}
			events = append(events, Event{URL: p, Event: "updated", Seen: now})
		}
	}
	if !w.flood.allowSender(sub.hub, len(events)) {
		rw.Header().Set("Retry-After", "30")
		http.Error(rw, "too many notifications: wait", http.StatusTooManyRequests)
		return
	}
	if _, err := w.Sink.Changed(r.Context(), "websub", events); err != nil {
		http.Error(rw, "the notification could not be stored: send it again", http.StatusServiceUnavailable)
		return
	}
	rw.WriteHeader(http.StatusAccepted)
}

// signedBy checks X-Hub-Signature: method=hexadecimal.
func signedBy(header, secret string, body []byte) bool {
	method, given, ok := strings.Cut(header, "=")
	if !ok {
		return false
	}
	methods := map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}
	h, ok := methods[method]
	if !ok {
		return false
	}
	mac := hmac.New(h, []byte(secret))
	mac.Write(body)
	sum, err := hex.DecodeString(given)
	return err == nil && hmac.Equal(sum, mac.Sum(nil))
}

// Subscriptions tells of the topics whose hubs have verified us, and until when.
func (w *WebSub) Subscriptions() map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]time.Time{}
	for _, s := range w.subs {
		if s.until.After(out[s.topic]) {
			out[s.topic] = s.until
		}
	}
	return out
}
