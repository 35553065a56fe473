package local

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// The records that every page costs are packed: half as many bytes as in JSON
// pass through log, table of fresh writes, flush and compactions, and coding takes
// a fraction of the time. A packed value begins with the byte packed; what cannot
// be packed to the same effect (strings that are no UTF-8, times with odd zones)
// and what format 1 wrote is JSON and begins with a brace.

const packed = 1

// states in the order of their codes: append only.
var states = []store.State{store.Queued, store.OK, store.Redirect, store.Gone, store.Blocked, store.Failed, store.Excluded}

// Tags of the fields of a packed page, which stand behind packed and its state's
// code; those that are zero are left out. Append only.
const (
	tagURL = iota + 1
	tagDepth
	tagFrom
	tagOrder
	tagDue
	tagStatus
	tagType
	tagETag
	tagLastModified
	tagLocation
	tagCanonical
	tagTitle
	tagLang
	tagBytes
	tagDigest
	tagSimhash
	tagNoIndex
	tagRendered
	tagWaits
	tagWhy
	tagError
	tagFailures
	tagFile
	tagOffset
	tagVisits
	tagChanges
	tagTime
	tagLast
	tagChanged
	tagReason
	tagShown
	tagExpires
	tagFailingSince
	tagNoCopy
)

// packer packs one value.
type packer struct {
	b      []byte
	failed bool // it must be JSON
}

func (c *packer) text(tag byte, s string) {
	if s == "" {
		return
	}
	c.b = binary.AppendUvarint(append(c.b, tag), uint64(len(s)))
	c.raw(s)
}

func (c *packer) raw(s string) {
	c.failed = c.failed || !utf8.ValidString(s)
	c.b = append(c.b, s...)
}

// near packs a URL that often begins as another: how long they agree, and the
// rest.
func (c *packer) near(tag byte, s, to string) {
	if s == "" {
		return
	}
	n := 0
	for n < min(len(s), len(to)) && s[n] == to[n] {
		n++
	}
	c.failed = c.failed || !utf8.ValidString(s)
	c.b = binary.AppendUvarint(append(c.b, tag), uint64(n))
	c.b = append(binary.AppendUvarint(c.b, uint64(len(s)-n)), s[n:]...)
}

func (c *packer) num(tag byte, n int64) {
	if n != 0 {
		c.b = binary.AppendVarint(append(c.b, tag), n)
	}
}

func (c *packer) flag(tag byte, v bool) {
	if v {
		c.b = append(c.b, tag)
	}
}

// float packs a number whose last bits are often zero: they come first.
func (c *packer) float(tag byte, f float64) {
	if f != 0 {
		c.failed = c.failed || f-f != 0 // JSON has neither NaN nor infinity
		c.b = binary.AppendUvarint(append(c.b, tag), bits.ReverseBytes64(math.Float64bits(f)))
	}
}

func (c *packer) date(tag byte, t time.Time) {
	if !t.IsZero() {
		c.b = append(c.b, tag)
		c.time(t)
	}
}

// time packs seconds, then nanoseconds with a bit for a zone other than UTC, whose
// minutes follow.
func (c *packer) time(t time.Time) {
	_, zone := t.Zone()
	if zone%60 != 0 || t.Year() < 0 || t.Year() > 9999 {
		c.failed = true
		return
	}
	c.b = binary.AppendVarint(c.b, t.Unix())
	nanos := uint64(t.Nanosecond()) << 1
	if zone == 0 {
		c.b = binary.AppendUvarint(c.b, nanos)
		return
	}
	c.b = binary.AppendVarint(binary.AppendUvarint(c.b, nanos|1), int64(zone/60))
}

// appendPage appends the record of a page.
func appendPage(b []byte, p *store.Page) ([]byte, error) {
	state := slices.Index(states, p.State)
	if state < 0 {
		return appendJSON(b, p)
	}
	c := packer{b: append(b, packed, byte(state))}
	c.text(tagURL, p.URL)
	c.num(tagDepth, int64(p.Depth))
	c.near(tagFrom, p.From, p.URL)
	if p.Slot.Order > 0 {
		c.b = binary.AppendUvarint(append(c.b, tagOrder), p.Slot.Order)
	}
	c.date(tagDue, p.Slot.Due)
	c.visited(p)
	if c.failed {
		return appendJSON(b, p)
	}
	return c.b, nil
}

// visited packs the fields that a page has once it was visited.
func (c *packer) visited(p *store.Page) {
	c.num(tagStatus, int64(p.Status))
	c.text(tagType, p.Type)
	c.text(tagETag, p.ETag)
	c.text(tagLastModified, p.LastModified)
	c.near(tagLocation, p.Location, p.URL)
	c.near(tagCanonical, p.Canonical, p.URL)
	c.text(tagTitle, p.Title)
	c.text(tagLang, p.Lang)
	c.num(tagBytes, p.Bytes)
	if p.Digest != [16]byte{} {
		c.b = append(append(c.b, tagDigest), p.Digest[:]...)
	}
	if p.Simhash != 0 {
		c.b = binary.LittleEndian.AppendUint64(append(c.b, tagSimhash), p.Simhash)
	}
	if p.Shown != 0 {
		c.b = binary.LittleEndian.AppendUint64(append(c.b, tagShown), p.Shown)
	}
	c.flag(tagNoIndex, p.NoIndex)
	c.flag(tagNoCopy, p.NoCopy)
	c.date(tagExpires, p.Expires)
	c.date(tagFailingSince, p.FailingSince)
	c.flag(tagRendered, p.Rendered)
	c.flag(tagWaits, p.Waits)
	c.text(tagWhy, p.Why)
	c.text(tagError, p.Error)
	c.text(tagReason, string(p.Reason))
	c.num(tagFailures, int64(p.Failures))
	if !p.Body.IsZero() {
		c.text(tagFile, p.Body.File)
		c.num(tagOffset, p.Body.Offset)
	}
	c.float(tagVisits, p.History.Visits)
	c.float(tagChanges, p.History.Changes)
	c.float(tagTime, p.History.Time)
	c.date(tagLast, p.History.Last)
	c.date(tagChanged, p.History.Changed)
}

func appendJSON(b []byte, v any) ([]byte, error) {
	whole, err := json.Marshal(v)
	return append(b, whole...), err
}

// appendVisit appends a line of the log of visits.
func appendVisit(b []byte, l *store.VisitLog) ([]byte, error) {
	changed := byte(0)
	if l.Changed {
		changed = 1
	}
	c := packer{b: append(b, packed, changed)}
	c.time(l.Time)
	for _, n := range []int64{int64(l.Status), l.Bytes, int64(l.Took)} {
		c.b = binary.AppendVarint(c.b, n)
	}
	c.raw(l.URL)
	if c.failed {
		return appendJSON(b, l)
	}
	return c.b, nil
}

// appendChange appends an entry of the feed. Its URL is in the page's record.
func appendChange(b []byte, k weburl.Key, change *store.Change) ([]byte, error) {
	c := packer{b: append(append(b, packed), k[:]...)}
	c.time(change.Time)
	if c.failed {
		return appendJSON(b, change)
	}
	return c.b, nil
}

// unpacker takes values from the front of packed bytes. What is cut short or
// otherwise wrong makes it failed.
type unpacker struct {
	b      string
	failed bool
}

func (c *unpacker) fail() {
	c.b, c.failed = "", true
}

func (c *unpacker) take(n uint64) string {
	if n > uint64(len(c.b)) {
		c.fail()
		return ""
	}
	s := c.b[:n]
	c.b = c.b[n:]
	return s
}

func (c *unpacker) byte() byte {
	if c.b == "" {
		c.fail()
		return 0
	}
	x := c.b[0]
	c.b = c.b[1:]
	return x
}

func (c *unpacker) unsigned() (x uint64) {
	for shift := uint(0); shift < 64; shift += 7 {
		b := c.byte()
		if b < 0x80 {
			if shift == 63 && b > 1 {
				break
			}
			return x | uint64(b)<<shift
		}
		x |= uint64(b&0x7f) << shift
	}
	c.fail()
	return 0
}

func (c *unpacker) num() int64 {
	x := c.unsigned()
	return int64(x>>1) ^ -int64(x&1)
}

func (c *unpacker) text() string { return c.take(c.unsigned()) }

func (c *unpacker) near(to string) string {
	n, rest := c.unsigned(), c.text()
	if n > uint64(len(to)) {
		c.fail()
		return ""
	}
	return to[:n] + rest
}

func (c *unpacker) float() float64 {
	return math.Float64frombits(bits.ReverseBytes64(c.unsigned()))
}

// time returns a time as encoding/json would: in UTC, the local zone, or one
// without a name.
func (c *unpacker) time() time.Time {
	seconds, nanos := c.num(), c.unsigned()
	t := time.Unix(seconds, int64(nanos>>1))
	if nanos>>1 >= 1e9 {
		c.fail()
	}
	if nanos&1 == 0 {
		return t.UTC()
	}
	zone := c.num() * 60
	if zone < -86400 || zone > 86400 {
		c.fail()
		return time.Time{}
	}
	if _, local := t.Zone(); int64(local) == zone {
		return t
	}
	return t.In(time.FixedZone("", int(zone)))
}

// errRecord is the error of a record that is no JSON and cannot be unpacked.
var errRecord = errors.New("the record is damaged")

func isPacked(v []byte) bool { return len(v) > 0 && v[0] == packed }

// decodeHost decodes a host's record.
func decodeHost(v []byte, h *store.Host) error {
	err := json.Unmarshal(v, h)
	h.AddReason()
	return err
}

// decodePage decodes a page's record.
func decodePage(v []byte, p *store.Page) error {
	*p = store.Page{}
	defer p.AddReason()
	if !isPacked(v) {
		return json.Unmarshal(v, p)
	}
	c := unpacker{b: string(v[1:])} // one room for all strings
	if state := int(c.byte()); state < len(states) {
		p.State = states[state]
	} else {
		c.fail()
	}
	for c.b != "" {
		c.field(p)
	}
	if c.failed {
		return fmt.Errorf("page %q: %w", p.URL, errRecord)
	}
	return nil
}

// field unpacks the next field of a page.
func (c *unpacker) field(p *store.Page) {
	switch c.byte() {
	case tagURL:
		p.URL = c.text()
	case tagDepth:
		p.Depth = int(c.num())
	case tagFrom:
		p.From = c.near(p.URL)
	case tagOrder:
		p.Slot.Order = c.unsigned()
	case tagDue:
		p.Slot.Due = c.time()
	case tagStatus:
		p.Status = int(c.num())
	case tagType:
		p.Type = c.text()
	case tagETag:
		p.ETag = c.text()
	case tagLastModified:
		p.LastModified = c.text()
	case tagLocation:
		p.Location = c.near(p.URL)
	case tagCanonical:
		p.Canonical = c.near(p.URL)
	case tagTitle:
		p.Title = c.text()
	case tagLang:
		p.Lang = c.text()
	case tagBytes:
		p.Bytes = c.num()
	case tagDigest:
		copy(p.Digest[:], c.take(16))
	case tagSimhash:
		if s := c.take(8); s != "" {
			p.Simhash = binary.LittleEndian.Uint64([]byte(s))
		}
	case tagNoIndex:
		p.NoIndex = true
	case tagNoCopy:
		p.NoCopy = true
	case tagRendered:
		p.Rendered = true
	case tagWaits:
		p.Waits = true
	case tagWhy:
		p.Why = c.text()
	case tagError:
		p.Error = c.text()
	case tagReason:
		p.Reason = store.Reason(c.text())
	case tagShown:
		if s := c.take(8); s != "" {
			p.Shown = binary.LittleEndian.Uint64([]byte(s))
		}
	case tagExpires:
		p.Expires = c.time()
	case tagFailingSince:
		p.FailingSince = c.time()
	case tagFailures:
		p.Failures = int(c.num())
	case tagFile:
		p.Body.File = c.text()
	case tagOffset:
		p.Body.Offset = c.num()
	case tagVisits:
		p.History.Visits = c.float()
	case tagChanges:
		p.History.Changes = c.float()
	case tagTime:
		p.History.Time = c.float()
	case tagLast:
		p.History.Last = c.time()
	case tagChanged:
		p.History.Changed = c.time()
	default:
		c.fail()
	}
}

// decodeVisit decodes a line of the log of visits.
func decodeVisit(v []byte, l *store.VisitLog) error {
	*l = store.VisitLog{}
	if !isPacked(v) {
		return json.Unmarshal(v, l)
	}
	c := unpacker{b: string(v[1:])}
	l.Changed = c.byte() == 1
	l.Time = c.time()
	l.Status, l.Bytes, l.Took = int(c.num()), c.num(), time.Duration(c.num())
	l.URL = c.b
	if c.failed {
		return errRecord
	}
	return nil
}

// decodeChange decodes an entry of the feed without its number, and returns the
// key of its page.
func decodeChange(v []byte, change *store.Change) (k weburl.Key, err error) {
	if !isPacked(v) {
		if err := json.Unmarshal(v, change); err != nil {
			return k, err
		}
		u, err := weburl.Parse(change.URL)
		return u.Key(), err
	}
	c := unpacker{b: string(v[1:])}
	copy(k[:], c.take(uint64(len(k))))
	change.Time = c.time()
	if c.failed || c.b != "" {
		return k, errRecord
	}
	return k, nil
}

// stateOf returns the state in an encoded page without decoding it: it is the
// second byte, or the second field.
func stateOf(v []byte) (store.State, error) {
	if len(v) > 1 && v[0] == packed && int(v[1]) < len(states) {
		return states[v[1]], nil
	}
	if _, rest, ok := bytes.Cut(v[:min(len(v), 5000)], stateMark); ok {
		if end := bytes.IndexByte(rest, '"'); end >= 0 {
			return store.State(rest[:end]), nil
		}
	}
	var p store.Page
	err := decodePage(v, &p)
	return p.State, err
}

var stateMark = []byte(`","s":"`)
