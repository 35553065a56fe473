package attack

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var hrefs = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// naiveCrawl follows every link of every HTML page on the hosts of the seeds, or
// on all hosts, without a thought, up to a number of requests per host.
func naiveCrawl(ctx context.Context, seeds []string, everywhere bool, maxPerHost int) {
	client := &http.Client{Timeout: 2 * time.Second}
	seen, perHost, queue := map[string]bool{}, map[string]int{}, slices.Clone(seeds)
	for len(queue) > 0 && ctx.Err() == nil {
		u, err := url.Parse(queue[0])
		queue = queue[1:]
		if err != nil || seen[u.String()] || perHost[u.Host] >= maxPerHost || !strings.HasPrefix(u.Host, "127.66.") {
			continue
		}
		seen[u.String()] = true
		perHost[u.Host]++
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			continue
		}
		res, err := client.Do(req)
		if err != nil {
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		_ = res.Body.Close()
		for _, m := range hrefs.FindAllSubmatch(body, -1) {
			if to, err := u.Parse(html.UnescapeString(string(m[1]))); err == nil && (everywhere || to.Host == u.Host) {
				queue = append(queue, to.String())
			}
		}
	}
}

func open(t *testing.T) *Web {
	t.Helper()
	w, err := Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// A robot that follows every link anywhere falls into the endless sites and
// reaches the third party; the card says so and says why.
func TestNaiveRobotFails(t *testing.T) {
	t.Parallel()
	w := open(t)
	naiveCrawl(t.Context(), w.Seeds(), true, 2500)
	card := w.Judge(0, 1)
	if card.Passed() || card.Withstood == len(card.Attacks) {
		t.Fatalf("a naive robot withstood %d of %d attacks, want fewer", card.Withstood, len(card.Attacks))
	}
	verdicts := map[string]Verdict{}
	for _, v := range card.Attacks {
		verdicts[v.Name] = v
	}
	for name, want := range map[string]string{
		"new-sessions": "requests; 400 are enough", "calendar": "2000 are enough", "deep-folders": "2000 are enough", "to-other-hosts": "no start page names",
	} {
		if v := verdicts[name]; v.Withstood || !strings.Contains(v.Why, want) {
			t.Errorf("%s: %+v, want a failure with %q", name, v, want)
		}
	}
	if v := verdicts["odd-urls"]; !v.Withstood {
		t.Errorf("odd-urls: %+v, want withstood: the robot found the canary", v)
	}
}

// A web that nobody visited was withstood by nobody.
func TestUnvisited(t *testing.T) {
	t.Parallel()
	card := open(t).Judge(0, 1)
	if card.Withstood != 0 || card.Passed() {
		t.Errorf("%d attacks withstood without a robot, want 0", card.Withstood)
	}
}
