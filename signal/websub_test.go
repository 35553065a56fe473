package signal

import (
	"context"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// hub is a WebSub hub: it verifies subscribers and distributes content.
type hub struct {
	*httptest.Server
	mu   sync.Mutex
	subs []url.Values
	said string // what the subscriber answered to the challenge
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		h.mu.Lock()
		h.subs = append(h.subs, r.PostForm)
		h.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(h.Close)
	return h
}

// verify asks a subscriber as section 5.3 of the recommendation says.
func (h *hub) verify(t *testing.T, topic, mode string) int {
	t.Helper()
	h.mu.Lock()
	sub := h.subs[len(h.subs)-1]
	h.mu.Unlock()
	q := url.Values{"hub.mode": {mode}, "hub.topic": {topic}, "hub.challenge": {"riddle"}, "hub.lease_seconds": {"3600"}}
	res, err := http.Get(sub.Get("hub.callback") + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	h.said = string(b)
	return res.StatusCode
}

// send distributes content, signed with the secret or a wrong one.
func (h *hub) send(t *testing.T, body, secret string) int {
	t.Helper()
	h.mu.Lock()
	sub := h.subs[len(h.subs)-1]
	h.mu.Unlock()
	if secret == "" {
		secret = sub.Get("hub.secret")
	}
	mac := hmac.New(sha512.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequest(http.MethodPost, sub.Get("hub.callback"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Hub-Signature", "sha512="+hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// finder knows one topic and posts forms for real.
type finder struct{ topic, hub string }

func (f finder) Discover(_ context.Context, topic string) ([]string, string, error) {
	if topic != f.topic {
		return nil, "", fmt.Errorf("%s: 404", topic)
	}
	return []string{f.hub}, "", nil
}

func (f finder) Subscribe(_ context.Context, hub string, form url.Values) error {
	res, err := http.PostForm(hub, form)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", hub, res.Status)
	}
	return nil
}

// The whole way: subscribing, the hub's question, content that counts only with
// the hub's signature, and what is not ours refused.
func TestWebSub(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	got := &sink{}
	const topic = "http://h.example/feed"
	w := &WebSub{
		Topics: []string{topic, "http://h.example/none"}, Hubs: finder{topic, h.URL}, Sink: got,
		Pages: func(body []byte, _ string) []string { return strings.Fields(string(body)) },
	}
	server := httptest.NewServer(w)
	defer server.Close()
	w.Callback = server.URL + "/websub/"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		n := len(h.subs)
		h.mu.Unlock()
		if n > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no subscription")
		}
	}
	if code := h.verify(t, topic, "unsubscribe"); code != http.StatusNotFound {
		t.Errorf("unsubscribing, which nobody asked for: %d", code)
	}
	if code := h.verify(t, "http://other.example/", "subscribe"); code != http.StatusNotFound {
		t.Errorf("another topic: %d", code)
	}
	if code := h.verify(t, topic, "subscribe"); code != 200 || h.said != "riddle" {
		t.Errorf("verification: %d %q", code, h.said)
	}
	if until := w.Subscriptions()[topic]; time.Until(until) < 59*time.Minute || time.Until(until) > time.Hour {
		t.Errorf("subscribed until %v", until)
	}
	if code := h.send(t, "http://h.example/a", "guess"); code != http.StatusUnauthorized || len(got.events) != 0 {
		t.Errorf("forged: %d, %v", code, got.events)
	}
	if code := h.send(t, "http://h.example/a http://h.example/b", ""); code != http.StatusAccepted {
		t.Errorf("content: %d", code)
	}
	var told []string
	for _, e := range got.events {
		told = append(told, e.URL)
	}
	if want := topic + " http://h.example/a http://h.example/b"; strings.Join(told, " ") != want {
		t.Errorf("told of %v, want %s", told, want)
	}
	if code := h.send(t, strings.Repeat("x", maxContent+1), ""); code != http.StatusRequestEntityTooLarge {
		t.Errorf("too long: %d", code)
	}
	flooded := 0
	for range 8 {
		if h.send(t, strings.Repeat("http://h.example/c ", maxURLs), "") == http.StatusTooManyRequests {
			flooded++
		}
	}
	if flooded == 0 {
		t.Error("a flood was taken")
	}
	got.fail = true
	if code := h.send(t, "", ""); code != http.StatusServiceUnavailable {
		t.Errorf("with a full disk: %d", code)
	}
	if res, err := http.Get(server.URL + "/websub/unknown?hub.mode=subscribe"); err != nil || res.StatusCode != http.StatusGone {
		t.Errorf("unknown subscription: %v, %v", res, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
