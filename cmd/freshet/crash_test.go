package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/app"
	"github.com/freshet/freshet/archive"
	"github.com/freshet/freshet/internal/testport"
	bench "github.com/freshet/freshet/lab/bench/crawl"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
)

// witness serves a site on several loopback addresses and remembers when each
// host was asked.
type witness struct {
	site *bench.Site

	mu    sync.Mutex
	busy  map[string]int
	ended map[string]time.Time
	least time.Duration // between the end of an answer and the next request
	twice bool          // a host was asked while it answered
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	now := time.Now()
	w.mu.Lock()
	if last, ok := w.ended[r.Host]; ok {
		w.least = min(w.least, now.Sub(last))
	}
	w.twice = w.twice || w.busy[r.Host] > 0
	w.busy[r.Host]++
	w.mu.Unlock()
	time.Sleep(time.Millisecond)
	w.site.ServeHTTP(rw, r)
	w.mu.Lock()
	w.busy[r.Host]--
	w.ended[r.Host] = time.Now()
	w.mu.Unlock()
}

func newWitness(t *testing.T, pages, hosts int) *witness {
	t.Helper()
	w := &witness{site: bench.NewSite(pages, hosts, 8, 1500), busy: map[string]int{}, ended: map[string]time.Time{}, least: time.Hour}
	server := &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second}
	t.Cleanup(func() { server.Close() })
	var err error
	if w.site.Port, err = testport.Free(); err != nil {
		t.Fatal(err)
	}
	for h := range hosts {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.%d:%d", h+1, w.site.Port))
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Skip("127.0.0.0/8 cannot be listened on here:", err)
		} else if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(l) }()
	}
	return w
}

// binary returns a program that can be killed for good: this test binary under
// the name by which TestMain makes it freshet.
func binary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "freshet")
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

// rounds is the size of a test: small, or large with FRESHET_LONG.
func rounds(few, many int) int {
	if os.Getenv("FRESHET_LONG") != "" {
		return many
	}
	return few
}

// killed runs a crawl and kills it after a while; it reports whether the crawl
// had ended before.
func killed(t *testing.T, after time.Duration, bin string, args ...string) bool {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // SIGKILL
	err := cmd.Wait()
	ended := timer.Stop()
	if ended && err != nil {
		t.Fatalf("crawl: %v: %s", err, stderr.String())
	}
	return ended
}

// A robot that is killed again and again, and let to finish at last, has
// fetched every page; it fetched none twice but those that were not committed
// when it died; store, archive and index agree.
func TestCrashLosesNothing(t *testing.T) {
	t.Parallel()
	const hosts = 4
	pages := rounds(3000, 30_000) // so many that it is killed before it has them
	kills := rounds(6, 60)
	w, bin, data := newWitness(t, pages, hosts), binary(t), t.TempDir()
	args := append([]string{"--data", data, "--quiet", "--json", "crawl", "--allow-private", "--scope", "any", "--agents", "4"}, w.site.Seeds()...)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	died, ended := 0, false
	for range kills {
		ended = killed(t, 200*time.Millisecond+time.Duration(r.Int64N(int64(600*time.Millisecond))), bin, args...)
		if ended || finished(t, data) {
			ended = true
			break // further runs would be further crawls
		}
		died++
	}
	if least := rounds(1, 50); died < least {
		t.Errorf("killed %d times before the end, want %d: more pages are needed", died, least)
	}
	if !ended {
		out, err := exec.Command(bin, args...).Output()
		if err != nil {
			t.Fatalf("the last run: %v", err)
		}
		var sum crawlSummary
		if err := json.Unmarshal(out, &sum); err != nil || sum.URLsSeen != int64(pages) || sum.Indexed != int64(pages) || len(sum.Errors) > 0 {
			t.Errorf("summary %+v, %v", sum, err)
		}
	}
	fresh := w.site.Stats()
	if fresh.Distinct != int64(pages) {
		t.Errorf("%d of %d pages were fetched", fresh.Distinct, pages)
	}
	// In flight are at most the pages of one batch a host.
	if most := int64(died * hosts * 64); fresh.Requests-int64(pages) > most {
		t.Errorf("%d requests for %d pages after %d kills: more than %d were in flight", fresh.Requests, pages, died, most)
	}
	if w.twice {
		t.Error("a host was asked while it still answered")
	}
	t.Logf("killed %d times, %d pages fetched again", died, fresh.Requests-int64(pages))
	agree(t, data, pages)
}

// finished reports whether the last crawl came to its end, if only to be killed
// on its way out.
func finished(t *testing.T, data string) bool {
	t.Helper()
	s, err := local.Open(filepath.Join(data, "store"), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st, err := s.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Get(context.Background(), app.RoundKey)
	if err != nil {
		t.Fatal(err)
	}
	return len(v) == 0 && st.URLs > 0
}

// agree checks that the body of every page of the store is in the archive.
func agree(t *testing.T, data string, pages int) {
	t.Helper()
	s, err := local.Open(filepath.Join(data, "store"), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	err = s.Pages(context.Background(), func(p *store.Page) error {
		n++
		if p.State != store.OK {
			return fmt.Errorf("%s is %s (%s)", p.URL, p.State, p.Error)
		}
		x, err := archive.Read(filepath.Join(data, "warc"), p.Body)
		if err != nil {
			return fmt.Errorf("%s: %w", p.URL, err)
		}
		if x.URL != p.URL || int64(len(x.Body)) != p.Bytes {
			return fmt.Errorf("%s: the archive has %d bytes of %s, want %d", p.URL, len(x.Body), x.URL, p.Bytes)
		}
		return nil
	})
	if err != nil || n != pages {
		t.Errorf("%d pages in the store, want %d: %v", n, pages, err)
	}
}

// killed runs a crawl and kills it some time after its first request: on a busy
// machine a process may take seconds to get there.
func (w *witness) killed(t *testing.T, after time.Duration, bin string, args ...string) {
	t.Helper()
	before := w.site.Stats().Requests
	var stderr bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); w.site.Stats().Requests == before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("no request: %s", stderr.String())
		}
	}
	time.Sleep(after)
	_ = cmd.Process.Kill() // SIGKILL
	_ = cmd.Wait()         // killed: its error is no news
}

// Politeness holds across kills: between the end of one answer and the next
// request to the host lies the delay, whoever sent it.
func TestCrashStaysPolite(t *testing.T) {
	t.Parallel()
	const delay = 150 * time.Millisecond
	w, bin, data := newWitness(t, 400, 2), binary(t), t.TempDir()
	args := append([]string{"--data", data, "--quiet", "crawl", "--allow-private", "--scope", "any", "--no-index", "--delay", delay.String()}, w.site.Seeds()...)
	// The first run is let go far enough to know its hosts.
	w.killed(t, time.Second, bin, args...)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	for range rounds(5, 50) {
		w.killed(t, time.Duration(r.Int64N(int64(500*time.Millisecond))), bin, args...)
	}
	st := w.site.Stats()
	if st.Requests < 4 {
		t.Errorf("only %d pages were fetched", st.Requests)
	}
	if w.twice || w.least < delay-5*time.Millisecond {
		t.Errorf("least pause %v, want %v; asked while answering: %v", w.least, delay, w.twice)
	}
	t.Logf("%d requests, least pause %v", st.Requests, w.least)
}

// A second crawl that finds another one at work says so.
func TestDataDirectoryInUse(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s, err := local.Open(filepath.Join(data, "store"), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var stdout, stderr bytes.Buffer
	code := runArguments(context.Background(), []string{"--data", data, "crawl", "--allow-private", "http://127.0.0.1:1/"}, strings.NewReader(""), &stdout, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "in use by another process") {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}
