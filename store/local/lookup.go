package local

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/freshet/freshet/weburl"
)

// lookup tells which URLs are known, as of its first look at the disk.
type lookup struct {
	s  *Store
	it *pebble.Iterator
}

// neighbours is how many records behind one that was asked for are remembered,
// too: they came with the same block, and the keys of a host stand together, so
// that a host that comes back to work is soon in memory.
const neighbours = 32

func (l *lookup) isKnown(k weburl.Key) (bool, error) {
	switch l.s.seen.lookupURL(k) {
	case known:
		return true, nil
	case unknown:
		return false, nil
	}
	l.s.looks.Add(1)
	if l.it == nil {
		it, err := l.s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{pageSpace}, UpperBound: []byte{pageSpace + 1}})
		if err != nil {
			return false, err
		}
		l.it = it
	}
	key := pageKey(k)
	if !l.it.SeekGE(key) || !bytes.Equal(l.it.Key(), key) {
		return false, l.it.Error()
	}
	for n, ok := 0, true; ok && n <= neighbours; n, ok = n+1, l.it.Next() {
		l.s.seen.rememberURL(weburl.Key(l.it.Key()[spaceLength:]))
	}
	return true, l.it.Error()
}

func (l *lookup) closeLookup() error {
	if l.it == nil {
		return nil
	}
	it := l.it
	l.it = nil
	return it.Close()
}
