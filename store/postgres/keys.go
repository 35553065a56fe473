package postgres

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Half turns eight bytes of a key into an integer that sorts as they do.
func Half(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

func hostKey(name string) int64 {
	k := weburl.HostKey(name)
	return Half(k[:])
}

func splitKey(k weburl.Key) (host, url int64) { return Half(k[:8]), Half(k[8:]) }

func joinKey(host, url int64) (k weburl.Key) {
	binary.BigEndian.PutUint64(k[:8], uint64(host)^1<<63)
	binary.BigEndian.PutUint64(k[8:], uint64(url)^1<<63)
	return k
}

// never is later than any time: the host has nothing to visit.
const never = math.MaxInt64

// orderedMillis maps times to integers in order; the zero time is 0.
func orderedMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(1, t.UnixMilli())
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// orderColumn maps places in the queue to what a column holds.
func orderColumn(o uint64) int64 { return int64(min(max(1, o), math.MaxInt64)) }

// slotColumns returns a slot as its two columns.
func slotColumns(s store.Slot) (ord, due int64) {
	if s.Order > 0 {
		return orderColumn(s.Order), 0
	}
	return 0, orderedMillis(s.Due)
}

func slotOf(ord, due int64) store.Slot {
	if ord > 0 {
		return store.Slot{Order: uint64(ord)}
	}
	return store.Slot{Due: timeOf(due)}
}

// states are the numbers of the states in a column.
var states = [...]store.State{store.Queued, store.OK, store.Redirect, store.Gone, store.Blocked, store.Failed, store.Excluded}

func stateCode(s store.State) (int16, error) {
	for i, known := range states {
		if s == known {
			return int16(i), nil
		}
	}
	return 0, fmt.Errorf("state %q: %w", s, errInput)
}

// row is a row of pages.
type row struct {
	host, url       int64
	state           int16
	depth           int32
	ord, due        int64
	address, origin string
	record          []byte
	refetch         bool
	asked, version  int64

	changed bool // no column: of a visit, whether the page changed
}

const rowColumns = "host, url, state, depth, ord, due, address, origin, record, refetch, asked, version"

func (r *row) scanFields() []any {
	return []any{&r.host, &r.url, &r.state, &r.depth, &r.ord, &r.due, &r.address, &r.origin, &r.record, &r.refetch, &r.asked, &r.version}
}

// pageOfRow makes the record of a row. What has a column is not in the JSON.
func (r *row) pageOfRow() (store.Page, error) {
	var p store.Page
	if r.record != nil {
		if err := json.Unmarshal(r.record, &p); err != nil {
			return p, fmt.Errorf("page %s: %w: %w", r.address, errInput, err)
		}
	}
	if int(r.state) >= len(states) || r.state < 0 {
		return p, fmt.Errorf("page %s: state %d: %w", r.address, r.state, errInput)
	}
	p.Key, p.URL, p.State, p.Depth, p.From, p.Slot = joinKey(r.host, r.url), r.address, states[r.state], int(r.depth), r.origin, slotOf(r.ord, r.due)
	p.Version = r.version
	p.AddReason()
	if r.refetch {
		p.ForgetBody()
	}
	return p, nil
}

// rowOf is the other way round.
func rowOf(p store.Page) (r row, err error) {
	r.host, r.url = splitKey(p.Key)
	if r.state, err = stateCode(p.State); err != nil {
		return r, fmt.Errorf("page %s: %w", p.URL, err)
	}
	r.ord, r.due = slotColumns(p.Slot)
	r.depth, r.address, r.origin = int32(min(p.Depth, math.MaxInt32)), plainText(p.URL), plainText(p.From)
	p.URL, p.State, p.Depth, p.From, p.Slot = "", "", 0, "", store.Slot{}
	if r.record, err = json.Marshal(&p); err != nil {
		return r, fmt.Errorf("page %s: %w: %w", r.address, errInput, err)
	}
	return r, nil
}

// plainText makes a string one that a text column takes: UTF-8 without NUL.
func plainText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// known remembers keys of URLs that are in the database for certain: a page is
// never deleted. Each key has one place; a later one with the same place takes
// it over.
type known struct {
	mu    sync.Mutex
	slots []weburl.Key
}

func newKnown(n int) *known { return &known{slots: make([]weburl.Key, max(1, n))} }

func (k *known) cacheSlot(key weburl.Key) *weburl.Key {
	h := binary.BigEndian.Uint64(key[:8])*0x9e3779b97f4a7c15 ^ binary.BigEndian.Uint64(key[8:])
	return &k.slots[h%uint64(len(k.slots))]
}

func (k *known) isCached(key weburl.Key) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *k.cacheSlot(key) == key
}

func (k *known) cacheKeys(keys []weburl.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		*k.cacheSlot(key) = key
	}
}

// randomKey is a key that spreads over all ranges.
func randomKey() int64 { return int64(rand.Uint64()) }

// expectRows checks how many rows a statement touched.
func expectRows(n int64) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != n {
			return fmt.Errorf("%w: %d of %d", errRows, tag.RowsAffected(), n)
		}
		return nil
	}
}
