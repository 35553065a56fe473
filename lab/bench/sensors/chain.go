// Package sensors measures what sensors are worth, and what they cost, with the
// real programs: from the change of a file of a web server, through a sensor, a
// serve that is killed and started again, its robot and its index, to the search
// that finds the new word; and the CPU time that the middleware takes of a
// server.
package sensors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/internal/testport"
)

// Config describes a chain.
type Config struct {
	Self     string // this program
	Work     string // folder for everything
	Sensor   string // proxy, log, watch: before and beside nginx; middleware: in a Go server
	Pages    int
	Visitors int
	Changes  int
	Every    time.Duration // between changes
	Kill     bool          // serve is killed in the middle of the changes and started again
	Patience time.Duration // until a change that is not found counts as lost
	Seed     uint64
}

// Sensors are the ways to watch a server.
func Sensors() []string { return []string{"proxy", "log", "watch", "middleware"} }

// Result is what became of the changes.
type Result struct {
	Sensor   string `json:"sensor"`
	Changes  int    `json:"changes"`
	Found    int    `json:"found"` // by a search for their word
	Lost     int    `json:"lost"`
	Killed   bool   `json:"receiver_killed"`
	Requests int64  `json:"requests"` // of visitors
	Failed   int64  `json:"failed"`
	// Delays are seconds from the change of the file to its word being found; the
	// quantiles of changes before serve was killed, the greatest of all.
	P50 float64 `json:"delay_p50"`
	P90 float64 `json:"delay_p90"`
	P99 float64 `json:"delay_p99"`
	Max float64 `json:"delay_max"`
}

const (
	secret = "a secret of the bench"
)

// chain is one under way.
type chain struct {
	Config
	root    string // of documents
	site    string // address that visitors and the robot use
	console string
	serve   *process
	failed  atomic.Int64
	asked   atomic.Int64
}

// Run makes the changes and waits for them to be found.
func Run(ctx context.Context, c Config) (r Result, err error) {
	r = Result{Sensor: c.Sensor, Killed: c.Kill}
	if !slices.Contains(Sensors(), c.Sensor) || c.Pages < 1 || c.Changes < 1 || c.Visitors < 0 {
		return r, fmt.Errorf("sensor %q (there are %s), %d pages, %d changes: at least one of each", c.Sensor, strings.Join(Sensors(), ", "), c.Pages, c.Changes)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ch := &chain{Config: c, root: filepath.Join(c.Work, "root")}
	if err := os.Mkdir(ch.root, 0o755); err != nil {
		return r, err
	}
	for page := range c.Pages {
		if err := ch.writeWordPage(page, ""); err != nil {
			return r, err
		}
	}
	stop, err := ch.startChain(ctx)
	defer stop()
	if err != nil {
		return r, err
	}
	if err := ch.pollUntil(ctx, "all pages are found", func() bool { return ch.searchHits("ancientword") >= c.Pages }); err != nil {
		return r, err
	}
	var visitors sync.WaitGroup
	visiting, quit := context.WithCancel(ctx)
	defer visitors.Wait()
	defer quit()
	for i := range c.Visitors {
		visitors.Go(func() { ch.visitPages(visiting, i) })
	}
	time.Sleep(2 * time.Second) // the sensor has seen all pages
	delays, before, err := ch.changePages(ctx)
	r.Changes, r.Found, r.Lost = c.Changes, len(delays), c.Changes-len(delays)
	r.Requests, r.Failed = ch.asked.Load(), ch.failed.Load()
	if len(before) > 0 {
		slices.Sort(before)
		at := func(q float64) float64 { return before[min(len(before)-1, int(q*float64(len(before))))].Seconds() }
		r.P50, r.P90, r.P99, r.Max = at(.5), at(.9), at(.99), slices.Max(delays).Seconds()
	}
	return r, err
}

// writeWordPage makes a page with a word that no other version of any page has.
func (c *chain) writeWordPage(page int, word string) error {
	name := filepath.Join(c.root, fmt.Sprintf("%d.html", page))
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html><title>Page %d</title><p>ancientword %s\n", page, word)
	if page == 0 {
		for p := range c.Pages {
			fmt.Fprintf(&b, "<a href=/%d.html>%d</a>\n", p, p)
		}
	}
	for b.Len() < 12_000 {
		b.WriteString("<p>text that fills the page and stays as it is\n")
	}
	if err := os.WriteFile(name+".new", []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// changePages makes the changes, each of another page, kills the receiver in the
// middle of them, and returns how long each took to be found, of all and of those
// before the receiver was killed.
func (c *chain) changePages(ctx context.Context) (delays, before []time.Duration, err error) {
	type one struct {
		word  string
		at    time.Time
		early bool
	}
	made := make(chan one, c.Changes)
	failed := make(chan error, 1)
	go func() {
		defer close(made)
		r := rng.New(c.Seed, "changes")
		order := r.Perm(c.Pages)
		for i := range c.Changes {
			word := fmt.Sprintf("w%dx%x", i, r.Uint32())
			if err := c.writeWordPage(order[i%len(order)], word); err != nil {
				failed <- err
				return
			}
			made <- one{word, time.Now(), !c.Kill || i < c.Changes/2-c.Changes/10}
			if c.Kill && i == c.Changes/2 {
				if err := c.restartServe(ctx); err != nil {
					failed <- err
					return
				}
			}
			if !sleepContext(ctx, c.Every) {
				return
			}
		}
	}()
	var open []one
	for made != nil || len(open) > 0 {
		select {
		case err := <-failed:
			return delays, before, err
		case <-ctx.Done():
			return delays, before, ctx.Err()
		case m, ok := <-made:
			if !ok {
				made = nil
				continue
			}
			open = append(open, m)
			continue
		case <-time.After(20 * time.Millisecond):
		}
		kept := open[:0]
		for i, m := range open {
			switch {
			case i < 64 && c.searchHits(m.word) > 0:
				d := time.Since(m.at)
				if delays = append(delays, d); m.early {
					before = append(before, d)
				}
			case time.Since(m.at) < c.Patience:
				kept = append(kept, m)
			}
		}
		open = kept
	}
	return delays, before, nil
}

// restartServe kills serve without a warning, leaves it dead for a moment and starts
// it again.
func (c *chain) restartServe(ctx context.Context) error {
	c.serve.killProcess()
	if !sleepContext(ctx, 2*time.Second) {
		return ctx.Err()
	}
	return c.beginServe(ctx)
}

// searchHits is how many pages a search finds; 0 while nobody answers.
func (c *chain) searchHits(word string) int {
	res, err := http.Get(c.console + "/api/search?n=1&q=" + url.QueryEscape(word))
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	var answer struct {
		Total int `json:"total"`
	}
	if json.NewDecoder(res.Body).Decode(&answer) != nil {
		return 0
	}
	return answer.Total
}

// visitPages is one visitor, who looks at one page after the other.
func (c *chain) visitPages(ctx context.Context, number int) {
	r := rng.New(c.Seed, "visitor", number)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		c.requestPage(ctx, client, r)
		sleepContext(ctx, time.Duration(r.IntN(10))*time.Millisecond)
	}
}

func (c *chain) requestPage(ctx context.Context, client *http.Client, r *rand.Rand) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/%d.html", c.site, r.IntN(c.Pages)), nil)
	if err != nil {
		return
	}
	res, err := client.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		err = errors.Join(err, res.Body.Close())
	}
	if ctx.Err() != nil {
		return
	}
	c.asked.Add(1)
	if err != nil || res.StatusCode != http.StatusOK {
		c.failed.Add(1)
	}
}

func (c *chain) pollUntil(ctx context.Context, what string, f func() bool) error {
	for end := time.Now().Add(2 * time.Minute); !f(); {
		if time.Now().After(end) {
			return fmt.Errorf("not within 2 min: %s", what)
		}
		if !sleepContext(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

func sleepContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// freeAddress returns a loopback address that nobody listens at.
func freeAddress() (string, error) {
	n, err := testport.Free()
	return fmt.Sprintf("127.0.0.1:%d", n), err
}
