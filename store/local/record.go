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

func (c *packer) packText(tag byte, s string) {
	if s == "" {
		return
	}
	c.b = binary.AppendUvarint(append(c.b, tag), uint64(len(s)))
	c.packRaw(s)
}

func (c *packer) packRaw(s string) {
	c.failed = c.failed || !utf8.ValidString(s)
	c.b = append(c.b, s...)
}

// packURLSuffix packs a URL that often begins as another: how long they agree, and the
// rest.
func (c *packer) packURLSuffix(tag byte, s, to string) {
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

func (c *packer) packNumber(tag byte, n int64) {
	if n != 0 {
		c.b = binary.AppendVarint(append(c.b, tag), n)
	}
}

func (c *packer) packFlag(tag byte, v bool) {
	if v {
		c.b = append(c.b, tag)
	}
}

// packFloat packs a number whose last bits are often zero: they come first.
func (c *packer) packFloat(tag byte, f float64) {
	if f != 0 {
		c.failed = c.failed || f-f != 0 // JSON has neither NaN nor infinity
		c.b = binary.AppendUvarint(append(c.b, tag), bits.ReverseBytes64(math.Float64bits(f)))
	}
}

func (c *packer) packDate(tag byte, t time.Time) {
	if !t.IsZero() {
		c.b = append(c.b, tag)
		c.packTime(t)
	}
}

// packTime packs seconds, then nanoseconds with a bit for a zone other than UTC, whose
// minutes follow.
func (c *packer) packTime(t time.Time) {
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
	c.packText(tagURL, p.URL)
	c.packNumber(tagDepth, int64(p.Depth))
	c.packURLSuffix(tagFrom, p.From, p.URL)
	if p.Slot.Order > 0 {
		c.b = binary.AppendUvarint(append(c.b, tagOrder), p.Slot.Order)
	}
	c.packDate(tagDue, p.Slot.Due)
	c.packVisited(p)
	if c.failed {
		return appendJSON(b, p)
	}
	return c.b, nil
}

// packVisited packs the fields that a page has once it was visited.
func (c *packer) packVisited(p *store.Page) {
	c.packNumber(tagStatus, int64(p.Status))
	c.packText(tagType, p.Type)
	c.packText(tagETag, p.ETag)
	c.packText(tagLastModified, p.LastModified)
	c.packURLSuffix(tagLocation, p.Location, p.URL)
	c.packURLSuffix(tagCanonical, p.Canonical, p.URL)
	c.packText(tagTitle, p.Title)
	c.packText(tagLang, p.Lang)
	c.packNumber(tagBytes, p.Bytes)
	if p.Digest != [16]byte{} {
		c.b = append(append(c.b, tagDigest), p.Digest[:]...)
	}
	if p.Simhash != 0 {
		c.b = binary.LittleEndian.AppendUint64(append(c.b, tagSimhash), p.Simhash)
	}
	if p.Shown != 0 {
		c.b = binary.LittleEndian.AppendUint64(append(c.b, tagShown), p.Shown)
	}
	c.packFlag(tagNoIndex, p.NoIndex)
	c.packFlag(tagNoCopy, p.NoCopy)
	c.packDate(tagExpires, p.Expires)
	c.packDate(tagFailingSince, p.FailingSince)
	c.packFlag(tagRendered, p.Rendered)
	c.packFlag(tagWaits, p.Waits)
	c.packText(tagWhy, p.Why)
	c.packText(tagError, p.Error)
	c.packText(tagReason, string(p.Reason))
	c.packNumber(tagFailures, int64(p.Failures))
	if !p.Body.IsZero() {
		c.packText(tagFile, p.Body.File)
		c.packNumber(tagOffset, p.Body.Offset)
	}
	c.packFloat(tagVisits, p.History.Visits)
	c.packFloat(tagChanges, p.History.Changes)
	c.packFloat(tagTime, p.History.Time)
	c.packDate(tagLast, p.History.Last)
	c.packDate(tagChanged, p.History.Changed)
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
	c.packTime(l.Time)
	for _, n := range []int64{int64(l.Status), l.Bytes, int64(l.Took)} {
		c.b = binary.AppendVarint(c.b, n)
	}
	c.packRaw(l.URL)
	if c.failed {
		return appendJSON(b, l)
	}
	return c.b, nil
}

// appendChange appends an entry of the feed. Its URL is in the page's record.
func appendChange(b []byte, k weburl.Key, change *store.Change) ([]byte, error) {
	c := packer{b: append(append(b, packed), k[:]...)}
	c.packTime(change.Time)
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

func (c *unpacker) failUnpack() {
	c.b, c.failed = "", true
}

func (c *unpacker) takeBytes(n uint64) string {
	if n > uint64(len(c.b)) {
		c.failUnpack()
		return ""
	}
	s := c.b[:n]
	c.b = c.b[n:]
	return s
}

func (c *unpacker) unpackByte() byte {
	if c.b == "" {
		c.failUnpack()
		return 0
	}
	x := c.b[0]
	c.b = c.b[1:]
	return x
}

func (c *unpacker) unpackUnsigned() (x uint64) {
	for shift := uint(0); shift < 64; shift += 7 {
		b := c.unpackByte()
		if b < 0x80 {
			if shift == 63 && b > 1 {
				break
			}
			return x | uint64(b)<<shift
		}
		x |= uint64(b&0x7f) << shift
	}
	c.failUnpack()
	return 0
}

func (c *unpacker) unpackNumber() int64 {
	x := c.unpackUnsigned()
	return int64(x>>1) ^ -int64(x&1)
}

func (c *unpacker) unpackText() string { return c.takeBytes(c.unpackUnsigned()) }

func (c *unpacker) unpackURLSuffix(to string) string {
	n, rest := c.unpackUnsigned(), c.unpackText()
	if n > uint64(len(to)) {
		c.failUnpack()
		return ""
	}
	return to[:n] + rest
}

func (c *unpacker) unpackFloat() float64 {
	return math.Float64frombits(bits.ReverseBytes64(c.unpackUnsigned()))
}

// unpackTime returns a time as encoding/json would: in UTC, the local zone, or one
// without a name.
func (c *unpacker) unpackTime() time.Time {
	seconds, nanos := c.unpackNumber(), c.unpackUnsigned()
	t := time.Unix(seconds, int64(nanos>>1))
	if nanos>>1 >= 1e9 {
		c.failUnpack()
	}
	if nanos&1 == 0 {
		return t.UTC()
	}
	zone := c.unpackNumber() * 60
	if zone < -86400 || zone > 86400 {
		c.failUnpack()
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
	if state := int(c.unpackByte()); state < len(states) {
		p.State = states[state]
	} else {
		c.failUnpack()
	}
	for c.b != "" {
		c.unpackField(p)
	}
	if c.failed {
		return fmt.Errorf("page %q: %w", p.URL, errRecord)
	}
	return nil
}

// unpackField unpacks the next field of a page.
func (c *unpacker) unpackField(p *store.Page) {
	switch c.unpackByte() {
	case tagURL:
		p.URL = c.unpackText()
	case tagDepth:
		p.Depth = int(c.unpackNumber())
	case tagFrom:
		p.From = c.unpackURLSuffix(p.URL)
	case tagOrder:
		p.Slot.Order = c.unpackUnsigned()
	case tagDue:
		p.Slot.Due = c.unpackTime()
	case tagStatus:
		p.Status = int(c.unpackNumber())
	case tagType:
		p.Type = c.unpackText()
	case tagETag:
		p.ETag = c.unpackText()
	case tagLastModified:
		p.LastModified = c.unpackText()
	case tagLocation:
		p.Location = c.unpackURLSuffix(p.URL)
	case tagCanonical:
		p.Canonical = c.unpackURLSuffix(p.URL)
	case tagTitle:
		p.Title = c.unpackText()
	case tagLang:
		p.Lang = c.unpackText()
	case tagBytes:
		p.Bytes = c.unpackNumber()
	case tagDigest:
		copy(p.Digest[:], c.takeBytes(16))
	case tagSimhash:
		if s := c.takeBytes(8); s != "" {
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
		p.Why = c.unpackText()
	case tagError:
		p.Error = c.unpackText()
	case tagReason:
		p.Reason = store.Reason(c.unpackText())
	case tagShown:
		if s := c.takeBytes(8); s != "" {
			p.Shown = binary.LittleEndian.Uint64([]byte(s))
		}
	case tagExpires:
		p.Expires = c.unpackTime()
	case tagFailingSince:
		p.FailingSince = c.unpackTime()
	case tagFailures:
		p.Failures = int(c.unpackNumber())
	case tagFile:
		p.Body.File = c.unpackText()
	case tagOffset:
		p.Body.Offset = c.unpackNumber()
	case tagVisits:
		p.History.Visits = c.unpackFloat()
	case tagChanges:
		p.History.Changes = c.unpackFloat()
	case tagTime:
		p.History.Time = c.unpackFloat()
	case tagLast:
		p.History.Last = c.unpackTime()
	case tagChanged:
		p.History.Changed = c.unpackTime()
	default:
		c.failUnpack()
	}
}

// decodeVisit decodes a line of the log of visits.
func decodeVisit(v []byte, l *store.VisitLog) error {
	*l = store.VisitLog{}
	if !isPacked(v) {
		return json.Unmarshal(v, l)
	}
	c := unpacker{b: string(v[1:])}
	l.Changed = c.unpackByte() == 1
	l.Time = c.unpackTime()
	l.Status, l.Bytes, l.Took = int(c.unpackNumber()), c.unpackNumber(), time.Duration(c.unpackNumber())
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
	copy(k[:], c.takeBytes(uint64(len(k))))
	change.Time = c.unpackTime()
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
