package local

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// visitedAhead reports whether the log has a visit in the future.
func (s *Store) visitedAhead(now time.Time) (bool, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: numberKey(visitSpace, millis(now.Add(store.ClockAhead))+1), UpperBound: []byte{visitSpace + 1}})
	if err != nil {
		return false, err
	}
	found := it.First()
	return found, errors.Join(it.Error(), it.Close())
}

// repairClockSkew plans anew what was planned while the clock was ahead (store.PlanAnew).
// Visits in the log that lie in the future are moved to now, too, of each page one.
// It reads all records, which happens only after a clock was set back.
func (s *Store) repairClockSkew(now time.Time) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{pageSpace}, UpperBound: []byte{pageSpace + 1}})
	if err != nil {
		return fmt.Errorf("plan anew after the clock was set back: %w", err)
	}
	var keys []weburl.Key
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var v []byte
		if v, err = it.ValueAndErr(); err != nil {
			break
		}
		var p store.Page
		if err = decodePage(v, &p); err == nil && store.PlanAnew(&p, now) {
			keys = append(keys, weburl.Key(it.Key()[spaceLength:]))
		}
		if len(keys) == mendBatch && err == nil {
			err = s.replanPages(keys, now)
			keys = keys[:0]
		}
	}
	if err == nil {
		err = s.replanPages(keys, now)
	}
	if err = errors.Join(err, it.Close()); err == nil {
		err = s.mendLog(now)
	}
	if err != nil {
		return fmt.Errorf("plan anew after the clock was set back: %w", err)
	}
	return nil
}

// mendBatch is how many pages are planned anew at a time.
const mendBatch = 1000

// replanPages plans pages anew, but for those that are being visited.
func (s *Store) replanPages(keys []weburl.Key, now time.Time) error {
	w := s.newWriter()
	defer w.closeBatch()
	b := w.b
	w.lockBatches()
	for _, k := range keys {
		p := new(store.Page) // it may have been visited since
		if err := s.readPageRecord(k, p); err != nil {
			return err
		}
		old := slotKey(k, p.Slot)
		if !store.PlanAnew(p, now) || !w.mayMove(hostKey(k[:8]), k) {
			continue
		}
		if err := errors.Join(b.Delete(old, nil), w.writePageRecord(k, p), b.Set(slotKey(k, p.Slot), nil, nil)); err != nil {
			return err
		}
		w.changeOf(hostKey(k[:8])).noteSooner(p.Slot.Due)
	}
	if b.Empty() {
		return nil
	}
	return errors.Join(w.commitWrites(), w.awaitDurable())
}

// mendLog moves visits of the future to now.
func (s *Store) mendLog(now time.Time) error {
	b := s.db.NewBatch()
	defer b.Close()
	from := numberKey(visitSpace, millis(now.Add(store.ClockAhead))+1)
	err := s.scanRange(from, []byte{visitSpace + 1}, func(k, v []byte) error {
		var line store.VisitLog
		if err := decodeVisit(v, &line); err != nil {
			return fmt.Errorf("visit %x: %w", k, err)
		}
		line.Time = now
		v, err := appendVisit(nil, &line)
		if err != nil {
			return err
		}
		return b.Set(append(numberKey(visitSpace, millis(now)), k[9:]...), v, nil)
	})
	if err != nil {
		return err
	}
	if err := b.DeleteRange(from, []byte{visitSpace + 1}, nil); err != nil {
		return err
	}
	return b.Commit(s.write)
}
