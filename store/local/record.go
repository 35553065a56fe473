package local

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/freshet/freshet/store"
)

// What is written for each page is encoded by hand, to the byte as
// encoding/json does it, at a fourth of the time: reflection was the dearest part
// of a commit. TestRecords and FuzzPageRecord hold the two together.

// object is a JSON object under construction. What it cannot do is left to
// encoding/json: failed says so.
type object struct {
	b      []byte
	failed bool
}

// name begins a field.
func (o *object) name(field string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), field...), `":`...)
}

func (o *object) str(field, s string) {
	o.name(field)
	o.text(s)
}

// opt leaves the empty string out.
func (o *object) opt(field, s string) {
	if s != "" {
		o.str(field, s)
	}
}

func (o *object) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			o.b, o.failed = append(o.b, quoted...), o.failed || err != nil
			return
		}
	}
	o.b = append(append(append(o.b, '"'), s...), '"')
}

func (o *object) num(field string, n int64) {
	o.name(field)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *object) optNum(field string, n int64) {
	if n != 0 {
		o.num(field, n)
	}
}

func (o *object) optUnsigned(field string, n uint64) {
	if n != 0 {
		o.name(field)
		o.b = strconv.AppendUint(o.b, n, 10)
	}
}

func (o *object) flag(field string, v bool) {
	o.name(field)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) optFlag(field string, v bool) {
	if v {
		o.flag(field, v)
	}
}

func (o *object) optFloat(field string, f float64) {
	if f == 0 {
		return
	}
	if a := math.Abs(f); !(a >= 1e-6 && a < 1e21) { // with exponent, or none
		o.failed = true
		return
	}
	o.name(field)
	o.b = strconv.AppendFloat(o.b, f, 'f', -1, 64)
}

func (o *object) time(field string, t time.Time) {
	o.name(field)
	b, err := t.AppendText(append(o.b, '"'))
	o.b, o.failed = append(b, '"'), o.failed || err != nil
}

func (o *object) optTime(field string, t time.Time) {
	if !t.IsZero() {
		o.time(field, t)
	}
}

func (o *object) open(field string) {
	o.name(field)
	o.b = append(o.b, '{')
}

func (o *object) close() { o.b = append(o.b, '}') }

// page adds the fields of a page.
func (o *object) page(p *store.Page) {
	o.str("u", p.URL)
	o.str("s", string(p.State))
	o.optNum("d", int64(p.Depth))
	o.opt("f", p.From)
	o.open("q")
	o.optUnsigned("o", p.Slot.Order)
	o.optTime("t", p.Slot.Due)
	o.close()
	o.optNum("st", int64(p.Status))
	o.opt("ct", p.Type)
	o.opt("e", p.ETag)
	o.opt("lm", p.LastModified)
	o.opt("lo", p.Location)
	o.opt("ca", p.Canonical)
	o.opt("t", p.Title)
	o.opt("l", p.Lang)
	o.optNum("b", p.Bytes)
	if p.Digest != [16]byte{} {
		o.name("dg")
		o.b = append(o.b, '[')
		for i, c := range p.Digest {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			o.b = strconv.AppendUint(o.b, uint64(c), 10)
		}
		o.b = append(o.b, ']')
	}
	o.optUnsigned("sh", p.Simhash)
	o.optFlag("ni", p.NoIndex)
	o.optFlag("r", p.Rendered)
	o.optFlag("rw", p.Waits)
	o.opt("y", p.Why)
	o.opt("er", p.Error)
	o.optNum("fl", int64(p.Failures))
	if !p.Body.IsZero() {
		o.open("w")
		o.opt("file", p.Body.File)
		o.optNum("offset", p.Body.Offset)
		o.close()
	}
	if h := &p.History; *h != (store.Page{}).History {
		o.open("h")
		o.optFloat("n", h.Visits)
		o.optFloat("c", h.Changes)
		o.optFloat("t", h.Time)
		o.optTime("l", h.Last)
		o.optTime("d", h.Changed)
		o.close()
	}
}

// visit adds the fields of a line of the log of visits.
func (o *object) visit(l *store.VisitLog) {
	o.str("url", l.URL)
	o.time("time", l.Time)
	o.flag("changed", l.Changed)
	o.num("status", int64(l.Status))
	o.num("bytes", l.Bytes)
	o.optNum("took_ns", int64(l.Took))
}

// change adds the fields of an entry of the feed.
func (o *object) change(c *store.Change) {
	o.name("Seq")
	o.b = strconv.AppendUint(o.b, c.Seq, 10)
	o.str("URL", c.URL)
	o.time("Time", c.Time)
}

// appendRecord appends the encoding of a record.
func appendRecord(b []byte, v any) ([]byte, error) {
	o := object{b: append(b, '{')}
	switch v := v.(type) {
	case *store.Page:
		o.page(v)
	case *store.VisitLog:
		o.visit(v)
	case *store.Change:
		o.change(v)
	default:
		o.failed = true
	}
	if !o.failed {
		return append(o.b, '}'), nil
	}
	whole, err := json.Marshal(v)
	return append(b, whole...), err
}

// decodePage decodes a page's record. Those of pages never visited, of which each
// page that is taken has one, are read without encoding/json.
func decodePage(v []byte, p *store.Page) error {
	if queuedPage(v, p) {
		return nil
	}
	*p = store.Page{}
	return json.Unmarshal(v, p)
}

// queuedPage decodes {"u":"...","s":"queued","d":1,"f":"...","q":{"o":2}}, where d
// and f may be missing; false means that the record is another.
func queuedPage(v []byte, p *store.Page) bool {
	for _, c := range v {
		if c == '\\' || c < ' ' || c >= 0x80 { // an escape, or no text in ASCII
			return false
		}
	}
	url, v, ok := between(v, `{"u":"`, '"')
	if !ok || !bytes.HasPrefix(v, []byte(`,"s":"queued"`)) {
		return false
	}
	v = v[len(`,"s":"queued"`):]
	depth, from := uint64(0), []byte(nil)
	if n, rest, ok := number10(v, `,"d":`); ok {
		depth, v = n, rest
	}
	if s, rest, ok := between(v, `,"f":"`, '"'); ok {
		from, v = s, rest
	}
	order, v, ok := number10(v, `,"q":{"o":`)
	if !ok || string(v) != "}}" || depth > math.MaxInt32 {
		return false
	}
	both := string(url) + string(from) // one allocation
	*p = store.Page{URL: both[:len(url)], From: both[len(url):], State: store.Queued, Depth: int(depth), Slot: store.Slot{Order: order}}
	return true
}

// between cuts what stands behind prefix up to a byte, and returns what follows
// that.
func between(v []byte, prefix string, end byte) (s, rest []byte, ok bool) {
	if len(v) < len(prefix) || string(v[:len(prefix)]) != prefix {
		return nil, v, false
	}
	v = v[len(prefix):]
	i := bytes.IndexByte(v, end)
	if i < 0 {
		return nil, v, false
	}
	return v[:i], v[i+1:], true
}

// number10 cuts the decimal number behind prefix.
func number10(v []byte, prefix string) (n uint64, rest []byte, ok bool) {
	if len(v) < len(prefix) || string(v[:len(prefix)]) != prefix {
		return 0, v, false
	}
	digits := v[len(prefix):]
	i := len(digits) - len(bytes.TrimLeft(digits, "0123456789"))
	if i == 0 || i > 1 && digits[0] == '0' {
		return 0, v, false
	}
	n, err := strconv.ParseUint(string(digits[:i]), 10, 64)
	return n, digits[i:], err == nil
}
