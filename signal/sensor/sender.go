package sensor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/freshet/freshet/signal"
)

// Sender brings the events of a spool to a receiver of signed events
// (POST /api/signals of serve), in batches, as often as it takes.
type Sender struct {
	Spool  *Spool
	To     string // address of the receiver
	Name   string // of the sensor, known to the receiver
	Secret string
	Client *http.Client  // nil is one with a timeout of 30 s
	Every  time.Duration // how long events are gathered; 0 is one second
	Log    *slog.Logger  // nil is silent
}

const (
	batchBytes = 1 << 20
	firstPause = time.Second
	longest    = 5 * time.Minute
)

// Run syncs the spool and sends until the context ends, then writes what is
// left to disk. A receiver that is away or refuses is tried again with growing
// pauses; nothing is marked as sent before it said 200.
func (s *Sender) Run(ctx context.Context) error {
	every := s.Every
	if every <= 0 {
		every = time.Second
	}
	log := s.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var pause time.Duration
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return s.Spool.Sync()
		case <-tick.C:
		}
		if err := s.Spool.Sync(); err != nil {
			log.Error("events not on disk", "err", err)
		}
		if time.Now().Before(next) {
			continue
		}
		wait, err := s.drain(ctx)
		if err == nil {
			pause = 0
			continue
		}
		pause = min(max(2*pause, firstPause), longest)
		next = time.Now().Add(max(pause, wait))
		if ctx.Err() == nil {
			log.Warn("events wait", "err", err, "pause", max(pause, wait))
		}
	}
}

// drain sends until the spool is empty. wait is what the receiver asked for.
func (s *Sender) drain(ctx context.Context) (wait time.Duration, err error) {
	for ctx.Err() == nil {
		lines, err := s.Spool.Next(batchBytes)
		if err != nil || len(lines) == 0 {
			return 0, err
		}
		if wait, err := s.post(ctx, lines); err != nil {
			return wait, err
		}
		if err := s.Spool.Done(len(lines)); err != nil {
			return 0, err
		}
	}
	return 0, ctx.Err()
}

func (s *Sender) post(ctx context.Context, lines []byte) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.To, bytes.NewReader(lines))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set(signal.SensorHeader, s.Name)
	req.Header.Set(signal.SignatureHeader, "sha256="+signal.Sign(s.Secret, lines))
	client := s.Client
	if client == nil {
		client = &http.Client{Timeout: 30 * time.Second}
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 512))
	if res.StatusCode == http.StatusOK {
		return 0, nil
	}
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	wait := min(max(0, time.Duration(seconds)*time.Second), longest)
	return wait, fmt.Errorf("%s: %s: %s", s.To, res.Status, bytes.TrimSpace(answer))
}
