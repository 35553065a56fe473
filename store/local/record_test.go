package local

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/change"
	"github.com/freshet/freshet/store"
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

func TestRecords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 4_000 {
		for _, v := range []any{new(store.Page), new(store.VisitLog), new(store.Change)} {
			fill(r, reflect.ValueOf(v).Elem())
			want, werr := json.Marshal(v)
			got, err := appendRecord([]byte("x"), v)
			if (err == nil) != (werr == nil) || err == nil && string(got) != "x"+string(want) {
				t.Fatalf("%T %+v\n%s, %v\nwant\n%s, %v", v, v, got, err, want, werr)
			}
			p, ok := v.(*store.Page)
			if !ok {
				continue
			}
			checkDecode(t, want)
			if p.State = store.Queued; r.IntN(2) == 0 {
				p.Slot.Due = time.Time{}
			}
			if want, err = json.Marshal(store.Page{URL: p.URL, State: p.State, Depth: p.Depth, From: p.From, Slot: p.Slot}); err == nil {
				checkDecode(t, want)
			}
		}
	}
	for _, v := range []any{
		&store.Page{History: change.History{Visits: math.NaN()}}, &store.Change{Time: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)},
		&store.Page{Body: archive.Position{Offset: 1}}, &store.Page{},
		store.Host{Name: "a"},
	} {
		want, werr := json.Marshal(v)
		if got, err := appendRecord(nil, v); (err == nil) != (werr == nil) || err == nil && string(got) != string(want) {
			t.Errorf("%+v: %s, %v; want %s, %v", v, got, err, want, werr)
		}
	}
}

// checkDecode compares with encoding/json.
func checkDecode(t *testing.T, v []byte) {
	t.Helper()
	got, want := store.Page{URL: "before", Title: "before"}, store.Page{}
	err, werr := decodePage(v, &got), json.Unmarshal(v, &want)
	if (err == nil) != (werr == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n%+v, %v\nwant\n%+v, %v", v, got, err, want, werr)
	}
}

func TestQueuedPageIsReadByHand(t *testing.T) {
	t.Parallel()
	for _, p := range []store.Page{
		{URL: "http://h/a", Slot: store.Slot{Order: 7}}, {URL: "http://h/a", Depth: 3, From: "http://h/", Slot: store.Slot{Order: math.MaxUint64}},
	} {
		p.State = store.Queued
		v, err := appendRecord(nil, &p)
		var got store.Page
		if err != nil || !queuedPage(v, &got) || got != p {
			t.Errorf("%s: %+v, %v", v, got, err)
		}
	}
}

func FuzzPageRecord(f *testing.F) {
	for _, s := range []string{
		`{"u":"http://h/a","s":"queued","d":3,"f":"http://h/","q":{"o":1}}`, `{"u":"http://h/a","s":"queued","q":{"o":0}}`, `{"u":"a","s":"queued","d":03,"q":{"o":1}}`,
		"{\"u\":\"\",\"s\":\"queued\",\"f\":\"\x10\",\"q\":{\"o\":1}}", `{"u":"","s":"queued","d":99999999999,"q":{"o":18446744073709551616}}`, `{"u":"a\u0062","s":"queued","q":{"o":1}}`, `{"u":"a","s":"ok","q":{"t":"2026-11-21T00:00:00Z"}}`, "{}", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, v []byte) { checkDecode(t, v) })
}
