package signal

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Headers of signed events.
const (
	SensorHeader    = "X-Freshet-Sensor"    // name of the sensor
	SignatureHeader = "X-Freshet-Signature" // Sign of the body
)

const maxEvents = 8 << 20 // bytes of one request

// Events receives signed events, one JSON object a line, of sensors that share
// a secret with the server. It answers 401 for a wrong signature, 413 for too
// much, 429 for too often, 400 with the line for what is no event, and 200 with
// the number taken when the sink has them. Events that say that they were seen more
// than a day ago, or will be, are left out and counted as stale.
type Events struct {
	Secrets map[string]string // by name of the sensor
	Sink    Sink
	// Client names the sender of a request for limits; nil takes the connection's
	// address.
	Client func(*http.Request) string

	flood  flood
	bodies bodyGate
	recent recent
}

// ServeHTTP implements http.Handler.
func (h *Events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, "events are posted", http.StatusMethodNotAllowed)
		return
	}
	sensor := r.Header.Get(SensorHeader)
	secret := h.Secrets[sensor]
	given := strings.TrimPrefix(r.Header.Get(SignatureHeader), "sha256=")
	if secret == "" || len(given) != hex.EncodedLen(sha256.Size) { // before the body is read
		http.Error(w, "unknown sensor or wrong signature", http.StatusUnauthorized)
		return
	}
	client := clientOf(r, h.Client)
	body, ok := h.bodies.readBounded(w, r, client, maxEvents)
	if !ok {
		return
	}
	if !hmac.Equal([]byte(given), []byte(Sign(secret, body))) {
		http.Error(w, "unknown sensor or wrong signature", http.StatusUnauthorized)
		return
	}
	events, err := parseEvents(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(events) > burst { // would be too often for ever
		http.Error(w, fmt.Sprintf("a request holds at most %d events", burst), http.StatusRequestEntityTooLarge)
		return
	}
	if !h.flood.allowSender(sensor, len(events)) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many events: wait", http.StatusTooManyRequests)
		return
	}
	now := time.Now()
	fresh, stale := events[:0], 0
	var keys [][16]byte
	for i := range events {
		if age := now.Sub(events[i].Seen); !events[i].Seen.IsZero() && (age > maxEventAge || age < -maxEventAge) {
			stale++
			continue
		}
		if key, ok := h.recent.rememberIfNew(&events[i], now); ok {
			fresh, keys = append(fresh, events[i]), append(keys, key)
		}
	}
	taken, err := h.Sink.Changed(r.Context(), "sensor "+sensor, fresh)
	if err != nil {
		h.recent.forgetEvents(keys) // the sender will repeat them
		http.Error(w, "the events could not be stored: send them again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, "{\"taken\":%d,\"stale\":%d}\n", taken, stale)
}

// parseEvents reads NDJSON; an empty line is nothing.
func parseEvents(body []byte) ([]Event, error) {
	var out []Event
	sc := bufio.NewScanner(bytes.NewReader(body))
	sc.Buffer(nil, 64<<10)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if e.URL == "" {
			return nil, fmt.Errorf("line %d: no url", n)
		}
		out = append(out, e)
	}
	if err := sc.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("a line is longer than 64 KiB")
		}
		return nil, err
	}
	return out, nil
}
