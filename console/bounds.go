package console

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
)

// Bounds of requests. Receivers of signals bound their bodies themselves, after
// they have checked the sender.
const (
	maxFormBytes = 64 << 10 // of a form or of the JSON of an API request
	// streamPatience is how long a client of an event stream or of media may take
	// to read what was written.
	streamPatience = time.Minute
	// maxStreams is how many live pages may be open; each asks the store once a
	// second.
	maxStreams = 64
	// searchQueueTime is how long a search waits for others to end.
	searchQueueTime = 2 * time.Second
)

// receivers are the paths that check sender and rate before they read a body,
// and that foreign pages and programs may post to.
var receivers = []string{"/indexnow", "/api/signals", "/websub/"}

// limitBody bounds the body of every request except those of receivers.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isReceiver(r.URL.Path) {
			r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		}
		next.ServeHTTP(w, r)
	})
}

// isReceiver reports whether a path belongs to a receiver of signals.
func isReceiver(path string) bool {
	for _, p := range receivers {
		if path == p || (p[len(p)-1] == '/' && len(path) > len(p) && path[:len(p)] == p) {
			return true
		}
	}
	return false
}

// readForm parses a form that a page of ours posts. It answers 415 for every
// other kind of body, multipart/form-data among them, which net/http would write
// to files without bound, 413 for a body that is too long and 400 for a broken
// one, and returns false.
func (s *Server) readForm(w http.ResponseWriter, r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		s.failWith(w, r, http.StatusUnsupportedMediaType, "Only forms of type application/x-www-form-urlencoded are taken here.")
		return false
	}
	switch err := r.ParseForm(); {
	case err == nil:
		return true
	case isBodyTooLong(err):
		s.failWith(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("A form has at most %d bytes.", maxFormBytes))
	default:
		s.failWith(w, r, http.StatusBadRequest, "The form cannot be read.")
	}
	return false
}

func isBodyTooLong(err error) bool {
	var limit *http.MaxBytesError
	return errors.As(err, &limit)
}

// searchGate bounds how many searches run at once and how many wait for that.
type searchGate struct {
	running chan struct{}
	waiting atomic.Int64
}

// errBusy is the error of a search that found the queue full or waited too long.
var errBusy = errors.New("too many searches are running: try again in a few seconds")

// newSearchGate allows two searches for each processor.
func newSearchGate() *searchGate {
	return &searchGate{running: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
}

// enterSearch waits for a free place and returns the function that frees it, or
// errBusy if the queue is longer than four times the places or the wait longer
// than searchQueueTime.
func (g *searchGate) enterSearch(ctx context.Context) (leave func(), err error) {
	leave = func() { <-g.running }
	select {
	case g.running <- struct{}{}:
		return leave, nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > int64(4*cap(g.running)) {
		return nil, errBusy
	}
	t := time.NewTimer(searchQueueTime)
	defer t.Stop()
	select {
	case g.running <- struct{}{}:
		return leave, nil
	case <-t.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// findBounded runs one search within the bounds of time and concurrency.
func (s *Server) findBounded(ctx context.Context, req Request) (*Results, error) {
	leave, err := s.searches.enterSearch(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	return s.finder.Find(ctx, req)
}

// longLived lifts the server's deadlines from a handler that streams: reading
// has none, since nothing more is read, and each write gets its own.
func longLived(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Time{}) // not supported by a recorder of tests
		h(&streamWriter{ResponseWriter: w, rc: rc}, r)
	}
}

// streamWriter gives every write a deadline of its own.
type streamWriter struct {
	http.ResponseWriter
	rc *http.ResponseController
}

// Unwrap lets http.ResponseController reach the connection.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer.
func (w *streamWriter) Write(b []byte) (int, error) {
	_ = w.rc.SetWriteDeadline(time.Now().Add(streamPatience))
	return w.ResponseWriter.Write(b)
}
