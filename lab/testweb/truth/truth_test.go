package truth

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Append writes what encoding/json reads back as the same record, for any strings.
func TestRecordRoundTrips(t *testing.T) {
	t.Parallel()
	when := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
	})
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String()
		want := Record{
			Time: when.Draw(t, "time"), Host: s.Draw(t, "host"), Path: s.Draw(t, "path"), Method: s.Draw(t, "method"),
			Status: rapid.IntRange(0, 599).Draw(t, "status"), Bytes: rapid.Int64().Draw(t, "bytes"), Agent: s.Draw(t, "agent"),
			Page: rapid.Int64Min(-1).Draw(t, "page"), Conditional: rapid.Bool().Draw(t, "conditional"), Kind: Kind(s.Draw(t, "kind")),
			Duration: float64(rapid.IntRange(0, 1e6).Draw(t, "us")) / 1e6, Scheme: s.Draw(t, "scheme"), Local: s.Draw(t, "local"),
			Version: rapid.Uint64().Draw(t, "version"), Changed: when.Draw(t, "changed"), FreshUntil: when.Draw(t, "until"),
			CopyOf: rapid.Int64Min(1).Draw(t, "copy"), Similarity: .25, Behaviour: s.Draw(t, "by"), Disallowed: rapid.Bool().Draw(t, "no"),
		}
		line := want.Append(nil)
		var got Record
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read\n%+v, want\n%+v", got, want)
		}
	})
}

// A log that was cut anywhere reads as the records whose lines are whole.
func TestCutLog(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	l, err := NewLog(&buf, Head{Pages: 3, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	head := buf.Len()
	for i := range int64(5) {
		l.Add(&Record{Time: time.Unix(i+1, 0), Host: "h", Page: i})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for n := head; n <= buf.Len(); n++ {
		cut := buf.Bytes()[:n]
		r, err := NewReader(bytes.NewReader(cut))
		if err != nil {
			t.Fatal(err)
		}
		if r.Head.Pages != 3 || r.Head.Seed != 9 {
			t.Fatalf("head %+v", r.Head)
		}
		// A line without its end is whole if only the end is missing.
		want := bytes.Count(cut[head:], []byte("}"))
		got := 0
		for {
			rec, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec.Page != int64(got) {
				t.Fatalf("record %d is of page %d", got, rec.Page)
			}
			got++
		}
		if got != want {
			t.Fatalf("cut at %d: %d records, want %d", n, got, want)
		}
		if whole := n == head || bytes.HasSuffix(cut, []byte("}")) || bytes.HasSuffix(cut, []byte("\n")); r.Cut() == whole {
			t.Fatalf("cut at %d: Cut() = %v", n, r.Cut())
		}
	}
}

func TestDamagedLines(t *testing.T) {
	t.Parallel()
	good := `{"time":"2026-01-02T03:04:05Z","host":"h","path":"/","method":"GET","status":200,"bytes":1,"agent":"","page":null,"conditional":false}` + "\n"
	for _, tt := range []struct{ name, log, want string }{
		{"not JSON", good + "ouch\n" + good, "line 2"},
		{"not a request", good + "{}\n", "line 2: no time or no host"},
		{"wrong type", `{"time":5}` + "\n", "line 1"},
		{"long line", good + `{"x":"` + strings.Repeat("a", maxLine) + "\"}\n", "line 2: longer than"},
	} {
		r, err := NewReader(strings.NewReader(tt.log))
		for err == nil {
			_, err = r.Read()
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A log that another program wrote, with the first nine fields alone.
func TestForeignLog(t *testing.T) {
	t.Parallel()
	line := `{"time":"2026-01-02T03:04:05Z","host":"h","path":"/robots.txt","method":"GET","status":200,"bytes":1,"agent":"x","page":null,"conditional":false}`
	r, err := NewReader(strings.NewReader(line + "\n" + strings.ReplaceAll(line, "/robots.txt", "/a")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Kind{Robots, Other} {
		rec, err := r.Read()
		if err != nil || rec.Kind != want || rec.Page != NoPage {
			t.Errorf("%+v, %v, want kind %s", rec, err, want)
		}
	}
}

type fullDisk struct{ left int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestFullDiskIsTold(t *testing.T) {
	t.Parallel()
	l, err := NewLog(&fullDisk{600}, Head{})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.Add(&Record{Host: "h"})
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error %v", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"kind":"web","pages":5}` + "\n" + `{"time":"2026-01-02T03:04:05Z","host":"h"}`))
	f.Add([]byte("\n\n{"))
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := NewReader(bytes.NewReader(log))
		for range len(log) + 1 {
			if err != nil {
				return
			}
			_, err = r.Read()
		}
		if err == nil {
			t.Error("more records than bytes")
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	l, err := NewLog(io.Discard, Head{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	rec := Record{Time: time.Now(), Host: "www.aabbccdd.cz", Path: "/abcd.html", Method: "GET", Status: 200, Agent: "robot", Kind: Page, Duration: .001}
	b.ReportAllocs()
	for b.Loop() {
		l.Add(&rec)
	}
}
