package feed

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The log keeps the newest services, survives a line cut by a crash, and goes
// on where it was.
func TestServices(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.UnixMicro(1_700_000_000_123_456)
	l := Services{Dir: dir, Limit: 2000}
	for i := range 200 {
		if err := l.Add([]Service{{Time: at.Add(time.Duration(i) * time.Second), Seconds: float64(i) / 8, Bytes: int64(i), URL: fmt.Sprintf("http://h/%d,%q", i, "ū"), Arrived: at}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, servicesFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("17000,0.1,\n"); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := l.Add([]Service{{Time: at, Seconds: 1, URL: "last"}}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var got []Service
	if err := ReadServices(dir, func(s *Service) error { got = append(got, *s); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) < 30 || len(got) > 150 {
		t.Fatalf("%d services are kept of 201 with room for some 90", len(got))
	}
	if last := got[len(got)-1]; last.URL != "last" {
		t.Errorf("the last is %+v", last)
	}
	for i, s := range got[:len(got)-1] {
		n := 200 - len(got) + 1 + i
		if want := (Service{at.Add(time.Duration(n) * time.Second), at, float64(n) / 8, int64(n), fmt.Sprintf("http://h/%d,%q", n, "ū")}); !s.Arrived.Equal(at) || !s.Time.Equal(want.Time) || s.Seconds != want.Seconds || s.Bytes != want.Bytes || s.URL != want.URL {
			t.Fatalf("service %d: %+v, want %+v", i, s, want)
		}
	}
}
