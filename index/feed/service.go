package feed

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Service tells how long the indexer worked on one page: reading and taking it
// apart, and its share of the engine's commit.
type Service struct {
	Time    time.Time // when it was searchable
	Arrived time.Time // when it was fetched; zero in logs of before this was kept
	Seconds float64
	Bytes   int64
	URL     string
}

// Services is a log of services in a data directory, in CSV, from which a
// queueing model of robots and indexer is fitted. It keeps the last one to two
// times Limit bytes. Logging is best effort: it never stops the indexer.
type Services struct {
	Dir   string
	Limit int64 // default 8 MiB

	f    *os.File
	w    *csv.Writer
	size int64
}

const (
	servicesFile = "services.csv"
	servicesOld  = "services.old.csv"
)

// Add writes the services of one batch.
func (l *Services) Add(batch []Service) error {
	if l.Limit <= 0 {
		l.Limit = 8 << 20
	}
	if l.f != nil && l.size >= l.Limit {
		if err := l.Close(); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(l.Dir, servicesFile), filepath.Join(l.Dir, servicesOld)); err != nil {
			return fmt.Errorf("log of services: %w", err)
		}
	}
	if l.f == nil {
		if err := l.openLog(); err != nil {
			return fmt.Errorf("log of services: %w", err)
		}
	}
	for _, s := range batch {
		row := []string{
			strconv.FormatFloat(float64(s.Time.UnixMicro())/1e6, 'f', 6, 64), strconv.FormatFloat(s.Seconds, 'g', 6, 64), strconv.FormatInt(s.Bytes, 10), s.URL,
			strconv.FormatFloat(float64(s.Arrived.UnixMicro())/1e6, 'f', 6, 64),
		}
		if err := l.w.Write(row); err != nil {
			return fmt.Errorf("log of services: %w", err)
		}
		l.size += int64(len(row[0]) + len(row[1]) + len(row[2]) + len(row[3]) + len(row[4]) + 5)
	}
	l.w.Flush()
	return l.w.Error()
}

func (l *Services) openLog() error {
	f, err := os.OpenFile(filepath.Join(l.Dir, servicesFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.f, l.w, l.size = f, csv.NewWriter(f), st.Size()
	return nil
}

// Close closes the file; Add opens it again.
func (l *Services) Close() error {
	if l.f == nil {
		return nil
	}
	l.w.Flush()
	err := errors.Join(l.w.Error(), l.f.Close())
	l.f, l.w = nil, nil
	return err
}

// ReadServices calls f for the logged services of a data directory, oldest
// first. A line cut short by a crash is passed over.
func ReadServices(dir string, f func(*Service) error) error {
	for _, name := range []string{servicesOld, servicesFile} {
		in, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("log of services: %w", err)
		}
		err = readServices(in, f)
		_ = in.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func readServices(in io.Reader, f func(*Service) error) error {
	r := csv.NewReader(bufio.NewReader(in))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) || err == nil && len(row) != 4 && len(row) != 5 {
			continue
		}
		if err != nil {
			return fmt.Errorf("log of services: %w", err)
		}
		at, err1 := strconv.ParseFloat(row[0], 64)
		seconds, err2 := strconv.ParseFloat(row[1], 64)
		size, err3 := strconv.ParseInt(row[2], 10, 64)
		if errors.Join(err1, err2, err3) != nil {
			continue
		}
		s := Service{Time: timeOfMicros(at), Seconds: seconds, Bytes: size, URL: row[3]}
		if len(row) == 5 {
			arrived, err := strconv.ParseFloat(row[4], 64)
			if err != nil {
				continue
			}
			s.Arrived = timeOfMicros(arrived)
		}
		if err := f(&s); err != nil {
			return err
		}
	}
}

func timeOfMicros(seconds float64) time.Time { return time.UnixMicro(int64(math.Round(seconds * 1e6))) }
