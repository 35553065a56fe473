package sensor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/freshet/freshet/signal"
)

// Spool keeps events on disk until the receiver has them. Add only puts an
// event into memory, so that a request never waits for the disk; Sync writes
// and fsyncs what was added. One event is one line; segments of a megabyte are
// deleted once they were sent. Both memory and disk are bounded: what does not
// fit is counted in Dropped. One process owns the folder.
type Spool struct {
	dir string
	max int64

	mu      sync.Mutex
	pending []byte // lines not yet on disk
	dropped int64

	disk     sync.Mutex // held while files are touched
	file     *os.File   // last segment
	size     int64      // of the last segment
	total    int64      // of all segments
	segments []int      // numbers, oldest first
	sent     int64      // bytes of the oldest segment that the receiver has
}

const (
	segmentBytes = 1 << 20
	pendingBytes = 8 << 20
	maxURL       = 8 << 10 // a line must fit what the receiver reads
)

// OpenSpool opens or makes the spool in a folder, of at most maxBytes bytes. A line
// that a crash cut short is dropped: it was never acknowledged by Sync.
func OpenSpool(dir string, maxBytes int64) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	s := &Spool{dir: dir, max: maxBytes}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, e := range entries {
		n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".ndjson"))
		if err != nil || !strings.HasSuffix(e.Name(), ".ndjson") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
		s.segments, s.total = append(s.segments, n), s.total+info.Size()
	}
	if len(s.segments) == 0 {
		return s, s.rotateSegment(1)
	}
	if err := s.reopenSegment(); err != nil {
		return nil, err
	}
	return s, s.loadSentPosition()
}

func (s *Spool) segmentPath(n int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%010d.ndjson", n))
}

// reopenSegment opens the last segment and cuts off a torn line.
func (s *Spool) reopenSegment() error {
	last := s.segmentPath(s.segments[len(s.segments)-1])
	b, err := os.ReadFile(last)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	whole := int64(bytes.LastIndexByte(b, '\n') + 1)
	s.total -= int64(len(b)) - whole
	if s.file, err = os.OpenFile(last, os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if err := s.file.Truncate(whole); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.size = whole
	_, err = s.file.Seek(whole, io.SeekStart)
	return err
}

// loadSentPosition reads how far the oldest segment was sent. A position that is
// missing or of another segment means from its start: sent twice is allowed.
func (s *Spool) loadSentPosition() error {
	b, err := os.ReadFile(filepath.Join(s.dir, "position"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	var n int
	var at int64
	if _, err := fmt.Sscan(string(b), &n, &at); err == nil && n == s.segments[0] && at >= 0 {
		if info, err := os.Stat(s.segmentPath(n)); err == nil && at <= info.Size() {
			s.sent = at
		}
	}
	return nil
}

// Add puts an event in line. It never blocks on the disk.
func (s *Spool) Add(e signal.Event) {
	line, err := json.Marshal(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || len(e.URL) > maxURL || len(s.pending)+len(line) > pendingBytes {
		s.dropped++
		return
	}
	s.pending = append(append(s.pending, line...), '\n')
}

// Dropped is the number of events that did not fit.
func (s *Spool) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Sync writes what was added and returns when it is on disk. After an error the
// events stay in memory, and the next Sync tries again.
func (s *Spool) Sync() error {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	lines := s.pending
	if len(lines) == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.total+int64(len(lines)) > s.max {
		s.dropped += int64(bytes.Count(lines, []byte{'\n'}))
		s.pending = nil
		s.mu.Unlock()
		return fmt.Errorf("spool %s is full (%d bytes): the receiver was away too long", s.dir, s.max)
	}
	s.pending = nil
	s.mu.Unlock()
	if err := s.appendLines(lines); err != nil {
		s.mu.Lock()
		s.pending = append(lines, s.pending...)
		s.mu.Unlock()
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// appendLines writes at the known end, so that a write cut short is overwritten.
func (s *Spool) appendLines(lines []byte) error {
	if s.size >= segmentBytes {
		if err := s.rotateSegment(s.segments[len(s.segments)-1] + 1); err != nil {
			return err
		}
	}
	if _, err := s.file.WriteAt(lines, s.size); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.size += int64(len(lines))
	s.total += int64(len(lines))
	return nil
}

func (s *Spool) rotateSegment(n int) error {
	f, err := os.OpenFile(s.segmentPath(n), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if s.file != nil {
		s.file.Close()
	}
	s.file, s.size, s.segments = f, 0, append(s.segments, n)
	return syncDir(s.dir)
}

// Next returns up to so many bytes of whole lines that were not sent yet, and
// nil if there are none. Done marks them as sent.
func (s *Spool) Next(limit int) ([]byte, error) {
	s.disk.Lock()
	defer s.disk.Unlock()
	end := s.size
	if len(s.segments) > 1 {
		info, err := os.Stat(s.segmentPath(s.segments[0]))
		if err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
		end = info.Size()
	}
	if end <= s.sent {
		return nil, nil
	}
	f, err := os.Open(s.segmentPath(s.segments[0]))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	b := make([]byte, min(int64(limit), end-s.sent))
	if _, err := f.ReadAt(b, s.sent); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return b[:bytes.LastIndexByte(b, '\n')+1], nil
}

// Done marks n bytes that Next returned as sent.
func (s *Spool) Done(n int) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.sent += int64(n)
	for len(s.segments) > 1 {
		name := s.segmentPath(s.segments[0])
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		if s.sent < info.Size() {
			break
		}
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		s.total -= info.Size()
		s.sent, s.segments = 0, s.segments[1:]
	}
	if len(s.segments) == 1 && s.sent == s.size && s.size >= segmentBytes {
		old := s.segments[0]
		if err := s.rotateSegment(old + 1); err != nil {
			return err
		}
		if err := os.Remove(s.segmentPath(old)); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		s.total, s.sent, s.segments = 0, 0, s.segments[1:]
	}
	tmp := filepath.Join(s.dir, "position.new")
	if err := os.WriteFile(tmp, fmt.Appendf(nil, "%d %d\n", s.segments[0], s.sent), 0o600); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return os.Rename(tmp, filepath.Join(s.dir, "position"))
}

// Close writes what was added and closes the files.
func (s *Spool) Close() error {
	err := s.Sync()
	return errors.Join(err, s.file.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
