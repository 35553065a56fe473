package local

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// fill sets every field of v, now and then to its zero value.
func fill(r *rand.Rand, v reflect.Value) {
	if r.IntN(4) == 0 {
		return
	}
	if t, ok := v.Addr().Interface().(*time.Time); ok {
		*t = time.Unix(r.Int64N(4e9), r.Int64N(2)*r.Int64N(1e9)).In([]*time.Location{time.UTC, time.Local, time.FixedZone("", 5400)}[r.IntN(3)])
		return
	}
	texts := []string{"", "http://example.com/a-b_c?d=e", `quote " and \`, "<a&b>", "ünïcode", "bad \xff", "line\n\u2028", "\x7f", "nul\x00"}
	floats := []float64{1, 0.5, 1e-7, 1e21, 123456.789, math.MaxFloat64, -2, 1e-6, 0.1 + 0.2}
	switch v.Kind() {
	case reflect.Pointer: // no record keeps what it points to
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(63))
	case reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64))
	case reflect.Uint8:
		v.SetUint(r.Uint64() & 0xff)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(floats[r.IntN(len(floats))])
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	default:
		panic(v.Type()) // a record has a new kind of field: encode it
	}
}

// Whatever a record holds, what is read is what encoding/json would have kept.
func TestRecords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	packedOnes := 0
	for i := range 6_000 {
		p, l := new(store.Page), new(store.VisitLog)
		fill(r, reflect.ValueOf(p).Elem())
		fill(r, reflect.ValueOf(l).Elem())
		if i%2 == 0 {
			p.State = states[r.IntN(len(states))]
		}
		if i%4 == 0 { // a page as it is found
			p = &store.Page{URL: p.URL, State: store.Queued, Depth: p.Depth, From: p.From, Slot: store.Slot{Order: p.Slot.Order}}
		}
		p.AddReason() // as decoding does
		packedOnes += checkRecord(t, p, appendPage, decodePage)
		checkRecord(t, l, appendVisit, decodeVisit)
	}
	if packedOnes < 300 {
		t.Errorf("only %d pages were packed", packedOnes)
	}
	for _, p := range []*store.Page{
		{History: change.History{Visits: math.NaN()}},
		{State: store.OK, History: change.History{Visits: math.Inf(1)}},
		{State: store.OK, Body: archive.Position{Offset: 1}},
		{},
		{State: "another"},
		{State: store.OK, Slot: store.Slot{Due: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{State: store.OK, Slot: store.Slot{Due: time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 1))}},
		{State: store.OK, URL: "http://h/a", Location: "http://h/b", Canonical: "http://h/a", From: "http://h/ab"},
	} {
		checkRecord(t, p, appendPage, decodePage)
	}
}

// checkRecord codes a record both ways; it returns 1 if it was packed.
func checkRecord[T any](t *testing.T, v *T, pack func([]byte, *T) ([]byte, error), unpack func([]byte, *T) error) int {
	t.Helper()
	text, werr := json.Marshal(v)
	b, err := pack([]byte("x"), v)
	if (err == nil) != (werr == nil) {
		t.Fatalf("%+v: %v, want %v", v, err, werr)
	}
	if err != nil {
		return 0
	}
	var got, want T
	if err, werr := unpack(b[1:], &got), json.Unmarshal(text, &want); err != nil || werr != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n%+v, %v\nwant\n%+v, %v", text, got, err, want, werr)
	}
	if p, ok := any(v).(*store.Page); ok {
		for _, b := range [][]byte{b[1:], text} {
			if st, err := stateOf(b); err != nil || st != p.State && slices.Contains(states, p.State) {
				t.Fatalf("%q: state %q, %v; want %q", b, st, err, p.State)
			}
		}
	}
	if isPacked(b[1:]) {
		return 1
	}
	return 0
}

func TestChangeRecord(t *testing.T) {
	t.Parallel()
	u, err := weburl.Parse("http://h/a")
	if err != nil {
		t.Fatal(err)
	}
	k := u.Key()
	for _, at := range []time.Time{{}, time.Unix(1e9, 5).UTC(), time.Now().Round(0), time.Unix(1e9, 0).In(time.FixedZone("", 3660))} {
		b, err := appendChange(nil, k, &store.Change{Seq: 7, URL: "http://h/a", Time: at})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(store.Change{Seq: 7, URL: "http://h/a", Time: at})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range [][]byte{b, text} {
			var got store.Change
			key, err := decodeChange(b, &got)
			if err != nil || key != k || got.Time.Unix() != at.Unix() || got.Time.Nanosecond() != at.Nanosecond() {
				t.Errorf("%q: %x, %+v, %v", b, key, got, err)
			}
		}
	}
}

// What a disk gives back damaged is an error, or another record, but no panic.
func FuzzRecords(f *testing.F) {
	for _, p := range []store.Page{
		{URL: "http://h/a", State: store.Queued, Depth: 3, From: "http://h/", Slot: store.Slot{Order: 1}},
		{URL: "http://h/a", State: store.OK, Title: "A", Location: "http://h/b", Simhash: 1, Digest: [16]byte{1}, Slot: store.Slot{Due: time.Unix(1e9, 1).In(time.FixedZone("", 5400))}, History: change.History{Visits: 1.5}},
	} {
		b, err := appendPage(nil, &p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(appendLinks(nil, []weburl.Key{{1}, {2}, {1, 15: 1}}))
	f.Add([]byte(`{"u":"http://h/a","s":"queued","d":3,"f":"http://h/","q":{"o":1}}`))
	f.Fuzz(func(t *testing.T, v []byte) {
		var p store.Page
		if decodePage(v, &p) == nil {
			checkRecord(t, &p, appendPage, decodePage)
		}
		var l store.VisitLog
		if decodeVisit(v, &l) == nil {
			checkRecord(t, &l, appendVisit, decodeVisit)
		}
		_, _ = decodeChange(v, new(store.Change))
		_, _ = stateOf(v)
		if links, err := decodeLinks(nil, v); err == nil {
			again, err := decodeLinks(nil, appendLinks(nil, links))
			if err != nil || !slices.Equal(links, again) {
				t.Errorf("%x, then %x, %v", links, again, err)
			}
		}
	})
}

func TestLinks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 300 {
		hosts := 1 + r.Uint64N(40)
		links := make([]weburl.Key, n)
		for i := range links {
			binary.BigEndian.PutUint64(links[i][:], r.Uint64N(hosts))
			binary.BigEndian.PutUint64(links[i][8:], r.Uint64())
		}
		b := appendLinks([]byte("before"), links)[6:]
		got, err := decodeLinks(nil, b)
		if err != nil || !slices.Equal(got, links) {
			t.Fatalf("%d links: %x, %v, want %x", n, got, err, links)
		}
		if old, err := decodeLinks(nil, appendPlain(nil, links)); err != nil || !slices.Equal(old, links) {
			t.Fatalf("%d links as format 1 has them: %v", n, err)
		}
		if hosts == 1 && n > 4 && len(b) > 10*n+16 {
			t.Errorf("%d links to one host take %d bytes", n, len(b))
		}
	}
}

// BenchmarkRecord is the record of a page that was visited.
func BenchmarkRecord(b *testing.B) {
	now := time.Now()
	p := store.Page{
		URL: "http://127.0.0.3:34567/section-7/page-12345.html", State: store.OK, Depth: 3, From: "http://127.0.0.3:34567/section-2/page-345.html", Slot: store.Slot{Due: now}, Status: 200, Type: "text/html; charset=utf-8", Title: "Page 12345 of the track", Lang: "en", Bytes: 12_345,
		Digest: [16]byte{1, 2, 3, 200, 201, 202, 17, 18, 19}, Simhash: 1 << 60, Body: archive.Position{File: "freshet-20261121173239-00001-23318.warc.gz", Offset: 1e7}, History: change.History{Visits: 1, Last: now, Changed: now},
	}
	var v []byte
	b.Run("pack", func(b *testing.B) {
		for b.Loop() {
			v, _ = appendPage(v[:0], &p)
		}
		b.ReportMetric(float64(len(v)), "bytes")
	})
	b.Run("unpack", func(b *testing.B) {
		for b.Loop() {
			if err := decodePage(v, &p); err != nil {
				b.Fatal(err)
			}
		}
	})
}
