package console

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// bench is a Lab that remembers what it was asked.
type bench struct{ asked []string }

func (*bench) Sweeps(context.Context) ([]Sweep, error) {
	return []Sweep{
		{ID: "/results/a b", Plan: "classic <b>", State: "running", Live: true, Runs: 3, Of: 378, Done: .25, Left: 90 * time.Second, Updated: time.Now(), Variants: []SweepVariant{{"plain:1", 3, 61.25, 2e9}}, Latest: []SweepRun{{Field: 7, Variant: "sensor", Freshness: 75.5, Took: time.Second, Curve: []float64{100, 50, 0}}}},
		{ID: "/results/old", State: "failed", Problem: "disk <full>"},
	}, nil
}

func (b *bench) Ask(_ context.Context, sweep, order string) error {
	if order == "dance" {
		return errors.New("a sweep does not dance")
	}
	b.asked = append(b.asked, sweep+" "+order)
	return nil
}

func (*bench) Report(_ context.Context, sweep string) ([]byte, error) {
	if sweep != "/results/a b" {
		return nil, errors.New("no sweep")
	}
	return []byte("<!DOCTYPE html><title>Ways</title><style>b{}</style>"), nil
}

// The page of sweeps shows and controls them, for the operator alone and not for
// foreign pages; without a lab there is none.
func TestLab(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("geese"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	b, r := &bench{}, &robot{}
	s, err := New(Config{Listen: "127.0.0.1:0", Password: string(hash), Tokens: []string{"tok-of-the-lab-page"}, Lab: b}, r, r, r, slog.New(slog.NewTextHandler(io.Discard, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	in := []string{"Authorization", "Bearer tok-of-the-lab-page"}

	if code, _, h := do(t, "GET", srv.URL+"/lab", ""); code != http.StatusSeeOther || h.Get("Location") != "/login?to=%2Flab" {
		t.Errorf("without login: %d, to %s", code, h.Get("Location"))
	}
	for _, path := range []string{"/lab/events", "/lab/report"} {
		if code, _, _ := do(t, "GET", srv.URL+path, ""); code != http.StatusSeeOther {
			t.Errorf("%s without login: %d", path, code)
		}
	}
	code, page, _ := do(t, "GET", srv.URL+"/lab", "", in...)
	for _, want := range []string{"classic &lt;b&gt;", `value="0.25"`, "3 of 378 runs", "1:30 left", "61.25 %", "2.000 GB", `points="0.0,0.0 60.0,14.0 120.0,28.0"`, `value="pause"`, "disk &lt;full&gt;", `href="/lab/report?sweep=%2fresults%2fa%20b"`} {
		if code != 200 || !strings.Contains(page, want) {
			t.Errorf("%d, the page lacks %q:\n%s", code, want, page)
		}
	}
	if strings.Count(page, `value="stop"`) != 1 {
		t.Error("only what runs can be stopped")
	}
	form := append([]string{"Content-Type", "application/x-www-form-urlencoded"}, in...)
	if code, _, _ := do(t, "POST", srv.URL+"/lab", "sweep=%2Fresults%2Fa+b&do=pause", form...); code != http.StatusSeeOther || len(b.asked) != 1 || b.asked[0] != "/results/a b pause" {
		t.Errorf("pause: %d %q", code, b.asked)
	}
	if code, s, _ := do(t, "POST", srv.URL+"/lab", "sweep=x&do=dance", form...); code != http.StatusBadRequest || !strings.Contains(s, "does not dance") {
		t.Errorf("nonsense: %d %s", code, s)
	}
	if code, _, _ := do(t, "POST", srv.URL+"/lab", "sweep=x&do=stop", append(form, "Sec-Fetch-Site", "cross-site")...); code != http.StatusForbidden {
		t.Errorf("from a foreign page: %d", code)
	}
	if code, _, _ := do(t, "POST", srv.URL+"/lab", "sweep=x&do=stop", form[:2]...); code != http.StatusUnauthorized {
		t.Errorf("without login: %d", code)
	}
	if len(b.asked) != 1 {
		t.Errorf("asked %q", b.asked)
	}
	code, page, h := do(t, "GET", srv.URL+"/lab/report?sweep=/results/a%20b", "", in...)
	if csp := h.Get("Content-Security-Policy"); code != 200 || !strings.Contains(page, "Ways") || !strings.HasPrefix(csp, "sandbox") || strings.Contains(csp, "script") {
		t.Errorf("report: %d %s", code, csp)
	}
	if code, _, _ := do(t, "GET", srv.URL+"/lab/report?sweep=/etc", "", in...); code != http.StatusNotFound {
		t.Errorf("report of something else: %d", code)
	}

	_, plain := newServer(t, Config{})
	if code, _, _ := do(t, "GET", plain.URL+"/lab", ""); code != http.StatusNotFound {
		t.Errorf("without a lab: %d", code)
	}
}

// The page follows its sweeps by server-sent events.
func TestLabEvents(t *testing.T) {
	t.Parallel()
	r := &robot{}
	s, err := New(Config{Listen: "127.0.0.1:0", Lab: &bench{}}, r, r, r, slog.New(slog.NewTextHandler(io.Discard, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/lab/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `data: "`) || !strings.Contains(line, `\u003cprogress value`) {
		t.Errorf("%v %q", err, line)
	}
}
