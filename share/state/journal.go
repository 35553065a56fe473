package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/part"
)

var _ share.Journal = (*Store)(nil)

// idKey has the identity of the store.
var idKey = []byte("i")

// droppedMark is the value of a change that forgot a host; paths begin with a length.
var droppedMark = []byte{0}

// errJournal is the error of a record that is not as it was written.
var errJournal = errors.New("stored change record is damaged")

// openJournal reads the identity of the store, or gives it one.
func (s *Store) openJournal() error {
	v, closer, err := s.db.Get(idKey)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		s.id = rand.Text()
		err = s.db.Set(idKey, []byte(s.id), pebble.Sync)
	case err == nil:
		s.id = string(v)
		err = closer.Close()
	}
	if err != nil {
		return fmt.Errorf("identity of the store of shares: %w", err)
	}
	return nil
}

// ID implements share.Journal.
func (s *Store) ID() string { return s.id }

func numberKey(host string) []byte { return append([]byte{'n'}, host...) }

func changeKey(host string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(keyPrefix('c', host), number)
}

// noteChange adds the next change of a host to a batch. Two changes of one host are
// never made at once.
func (s *Store) noteChange(b *pebble.Batch, host string, value []byte) error {
	if !s.journal || len(value) == 0 {
		return nil
	}
	last, err := s.LastChange(context.Background(), host)
	if err != nil {
		return err
	}
	number := binary.BigEndian.AppendUint64(nil, last+1)
	return errors.Join(b.Set(changeKey(host, last+1), value, nil), b.Set(numberKey(host), number, nil))
}

// appendPaths appends the paths of a batch: the length of each, not 0, and its bytes.
func appendPaths(dst []byte, batch *share.Batch) []byte {
	add := func(path string) {
		dst = binary.AppendUvarint(dst, uint64(len(path))+1)
		dst = append(dst, path...)
	}
	for i := range batch.Put {
		add(batch.Put[i].Path)
	}
	for _, path := range batch.Delete {
		add(path)
	}
	return dst
}

// parsePaths reads what appendPaths wrote.
func parsePaths(b []byte) ([]string, error) {
	var out []string
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size == 0 || size-1 > uint64(len(b)-n) {
			return nil, errJournal
		}
		out = append(out, string(b[n:n+int(size-1)]))
		b = b[n+int(size-1):]
	}
	return out, nil
}

// ChangedHosts implements share.Journal.
func (s *Store) ChangedHosts(ctx context.Context) ([]string, error) {
	var out []string
	err := s.scanPairs(ctx, []byte("n"), []byte("o"), func(k, _ []byte) error {
		out = append(out, string(k[1:]))
		return nil
	})
	return out, err
}

// LastChange implements share.Journal.
func (s *Store) LastChange(_ context.Context, host string) (uint64, error) {
	v, closer, err := s.db.Get(numberKey(host))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("last change of %s: %w", host, err)
	}
	defer closer.Close()
	if len(v) != 8 {
		return 0, fmt.Errorf("last change of %s: %w", host, errJournal)
	}
	return binary.BigEndian.Uint64(v), nil
}

// Changes implements share.Journal.
func (s *Store) Changes(ctx context.Context, host string, after uint64, f func(share.Change) error) error {
	last, err := s.LastChange(ctx, host)
	if err != nil {
		return err
	}
	next := after + 1
	err = s.scanPairs(ctx, changeKey(host, next), changeKey(host, last+1), func(k, v []byte) error {
		c := share.Change{Number: binary.BigEndian.Uint64(k[len(k)-8:]), IsDropped: bytes.Equal(v, droppedMark)}
		if c.Number != next {
			return share.ErrNoChanges
		}
		next++
		if !c.IsDropped {
			if c.Paths, err = parsePaths(v); err != nil {
				return fmt.Errorf("change %d of %s: %w", c.Number, host, err)
			}
		}
		return f(c)
	})
	if err == nil && next <= last {
		err = share.ErrNoChanges
	}
	return err
}

// TrimChanges implements share.Journal.
func (s *Store) TrimChanges(_ context.Context, host string, upTo uint64) error {
	if err := s.db.DeleteRange(changeKey(host, 0), changeKey(host, upTo+1), pebble.NoSync); err != nil {
		return fmt.Errorf("trim the changes of %s: %w", host, err)
	}
	return nil
}

// File implements share.Journal.
func (s *Store) File(_ context.Context, host, path string) (share.File, bool, error) {
	f := share.File{Host: host, Path: path}
	v, closer, err := s.db.Get(append(keyPrefix('f', host), part.PathKey(path)...))
	if errors.Is(err, pebble.ErrNotFound) {
		return f, false, nil
	}
	if err != nil {
		return f, false, fmt.Errorf("read %s of %s: %w", path, host, err)
	}
	defer closer.Close()
	if err := share.ParseFile(v, &f); err != nil {
		return f, false, fmt.Errorf("%s%s: %w", host, path, err)
	}
	return f, true, nil
}
