package local

import (
	"encoding/binary"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Key spaces, by first byte.
const (
	hostSpace   = 'h' // + host hash: host record
	pageSpace   = 'p' // + page key: page record
	newSpace    = 'n' // + host hash, order, URL hash: never visited
	dueSpace    = 'r' // + host hash, time, URL hash: to be revisited
	linkSpace   = 'l' // + page key: keys of the pages it links to
	feedSpace   = 'c' // + sequence number: URL that changed
	visitSpace  = 'v' // + time, page key: log of visits
	metaSpace   = 'm' // + name
	aliasSpace  = 'a' // + key of a canonical page, key of a page that names it
	spaceLength = 1
)

type hostKey = [8]byte

func pageKey(k weburl.Key) []byte { return append([]byte{pageSpace}, k[:]...) }

func linkKey(k weburl.Key) []byte { return append([]byte{linkSpace}, k[:]...) }

// aliasKey is the entry of a page that names another as canonical.
func aliasKey(target, page weburl.Key) []byte {
	b := append(make([]byte, 0, spaceLength+2*len(target)), aliasSpace)
	return append(append(b, target[:]...), page[:]...)
}

func hostRecordKey(h hostKey) []byte { return append([]byte{hostSpace}, h[:]...) }

func metaKey(name string) []byte { return append([]byte{metaSpace}, name...) }

func numberKey(space byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{space}, n)
}

// visitKey is the key of a line of the log of visits.
func visitKey(at time.Time, k weburl.Key) []byte {
	b := binary.BigEndian.AppendUint64(append(make([]byte, 0, 25), visitSpace), millis(at))
	return append(b, k[:]...)
}

// slotKey is the queue entry of a page; nil for a page that is not queued.
func slotKey(k weburl.Key, s store.Slot) []byte {
	var b []byte
	switch {
	case s.Order > 0:
		b = append(make([]byte, 0, 25), newSpace)
		b = append(b, k[:8]...)
		b = binary.BigEndian.AppendUint64(b, s.Order)
	case !s.Due.IsZero():
		b = append(make([]byte, 0, 25), dueSpace)
		b = append(b, k[:8]...)
		b = binary.BigEndian.AppendUint64(b, millis(s.Due))
	default:
		return nil
	}
	return append(b, k[8:]...)
}

// pageOf returns the page of a queue entry, and its order or time.
func pageOf(entry []byte) (k weburl.Key, at uint64) {
	copy(k[:8], entry[1:9])
	copy(k[8:], entry[17:25])
	return k, binary.BigEndian.Uint64(entry[9:17])
}

// millis maps times to integers in order; times before 1970 are 1.
func millis(t time.Time) uint64 { return uint64(max(1, t.UnixMilli())) }

// prefixUpperBound is the first key behind all that begin with prefix.
func prefixUpperBound(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
