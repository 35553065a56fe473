package truth

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Head is the first line of a log: the web that was served, in full enough for
// the same pages, links and changes to be computed again.
type Head struct {
	Record
	Pages      uint64    `json:"pages"`
	Hosts      uint64    `json:"hosts"`
	Seed       uint64    `json:"seed"`
	Graph      string    `json:"graph,omitempty"` // folder or file of the stored graph
	Model      string    `json:"model,omitempty"` // of a computed graph, where it is not the tree
	In         float64   `json:"in_exponent,omitempty"`
	Out        float64   `json:"out_exponent,omitempty"`
	Intra      float64   `json:"intra_host,omitempty"` // as configured
	BowTie     []float64 `json:"bow_tie,omitempty"`    // shares of SCC, IN and OUT, as configured
	Degree     float64   `json:"degree,omitempty"`
	Sites      uint64    `json:"sites,omitempty"`      // as configured
	Parent     string    `json:"parent,omitempty"`     // domain of all hosts
	Dotted     bool      `json:"dotted,omitempty"`     // form of the names
	TimeScale  float64   `json:"time_scale,omitempty"` // seconds of the web in one of the clock
	Behaviours string    `json:"behaviours,omitempty"` // of the servers, in YAML
	Interval   float64   `json:"interval,omitempty"`   // time between changes of a page of median rate, in seconds of the web
	Field      string    `json:"field,omitempty"`      // file of the field that pages follow instead
}

// flushEvery is how much of the log the death of the process may cost.
const flushEvery = time.Second

// flushSize is the size at which the buffer is written at once.
const flushSize = 1 << 18

// Log writes records to a file. It is safe for concurrent use. Records are
// gathered in memory and handed to the operating system every second, at 256 KB
// and on Close: whole lines, but for the one a crash may cut, which Reader
// knows to leave out.
type Log struct {
	mu   sync.Mutex
	w    io.Writer
	buf  []byte
	err  error
	stop chan struct{}
	done chan struct{}
	pool sync.Pool
}

// NewLog starts a log on w with the description of the web; Close ends it. The
// writer stays the caller's.
func NewLog(w io.Writer, head Head) (*Log, error) {
	head.Kind, head.Page = Web, NoPage
	line, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("truth log: %w", err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("truth log: %w", err)
	}
	l := &Log{w: w, stop: make(chan struct{}), done: make(chan struct{})}
	l.pool.New = func() any { b := make([]byte, 0, 1024); return &b }
	go l.flushPeriodically()
	return l, nil
}

func (l *Log) flushPeriodically() {
	defer close(l.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.mu.Lock()
			l.flushRecords()
			l.mu.Unlock()
		case <-l.stop:
			return
		}
	}
}

// Add writes a record. An error of the writer is kept for Close: a full disk
// must not change what the robot is served.
func (l *Log) Add(r *Record) {
	b := l.pool.Get().(*[]byte)
	*b = r.Append((*b)[:0])
	l.mu.Lock()
	l.buf = append(l.buf, *b...)
	if len(l.buf) >= flushSize {
		l.flushRecords()
	}
	l.mu.Unlock()
	l.pool.Put(b)
}

func (l *Log) flushRecords() {
	if len(l.buf) == 0 {
		return
	}
	if l.err == nil {
		_, l.err = l.w.Write(l.buf)
	}
	l.buf = l.buf[:0]
}

// Flush hands everything added so far to the writer and returns its first error.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushRecords()
	if l.err != nil {
		return fmt.Errorf("truth log: %w", l.err)
	}
	return nil
}

// Close flushes the log and ends its goroutine. It returns the first error of
// the writer.
func (l *Log) Close() error {
	close(l.stop)
	<-l.done
	return l.Flush()
}
