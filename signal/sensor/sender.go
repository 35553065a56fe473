package sensor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
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

	refused atomic.Int64
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
	var dropped int64
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
		if n := s.Spool.Dropped(); n > dropped {
			log.Error("events lost: the spool is full", "events", n-dropped)
			dropped = n
		}
		if time.Now().Before(next) {
			continue
		}
		wait, err := s.drainSpool(ctx)
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

// drainSpool sends until the spool is empty. wait is what the receiver asked for.
func (s *Sender) drainSpool(ctx context.Context) (wait time.Duration, err error) {
	for ctx.Err() == nil {
		lines, err := s.Spool.Next(batchBytes)
		if err != nil || len(lines) == 0 {
			return 0, err
		}
		wait, err := s.postLines(ctx, lines)
		if errors.Is(err, errRefused) {
			// Something in the batch is no event to the receiver: line by line, so that
			// what is wrong holds nothing up.
			lines, wait, err = s.sendSingle(ctx, lines)
		}
		if err != nil {
			return wait, err
		}
		if err := s.Spool.Done(len(lines)); err != nil {
			return 0, err
		}
	}
	return 0, ctx.Err()
}

// errRefused is the error of a batch that the receiver calls malformed.
var errRefused = errors.New("refused")

// sendSingle sends the first line alone. One that is refused is given up, and
// counted.
func (s *Sender) sendSingle(ctx context.Context, lines []byte) ([]byte, time.Duration, error) {
	first := lines[:bytes.IndexByte(lines, '\n')+1]
	wait, err := s.postLines(ctx, first)
	if errors.Is(err, errRefused) {
		s.refused.Add(1)
		if s.Log != nil {
			s.Log.Warn("event given up", "err", err)
		}
		return first, 0, nil
	}
	return first, wait, err
}

// Refused is how many events the receiver would not take.
func (s *Sender) Refused() int64 { return s.refused.Load() }

func (s *Sender) postLines(ctx context.Context, lines []byte) (time.Duration, error) {
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
	if res.StatusCode == http.StatusBadRequest {
		return 0, fmt.Errorf("%w: %s: %s", errRefused, s.To, bytes.TrimSpace(answer))
	}
	wait := min(max(0, time.Duration(seconds)*time.Second), longest)
	return wait, fmt.Errorf("%s: %s: %s", s.To, res.Status, bytes.TrimSpace(answer))
}
