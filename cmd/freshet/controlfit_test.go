package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/lab/control"
	"github.com/freshet/freshet/lab/control/fit"
)

// exe runs a command line that must succeed and returns its output.
func exe(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := runArguments(context.Background(), args, strings.NewReader(""), &out, &errs); code != command.ExitOK {
		t.Fatalf("%v: code %d: %s", args, code, errs.String())
	}
	return out.String()
}

// What a crawl left in the store is exported, fitted, and put into a model
// that can be solved.
func TestControlFitOfCrawl(t *testing.T) {
	t.Parallel()
	const pages = 60
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
		fmt.Fprintf(w, "<title>page %d</title>", n)
		for _, to := range []int{2*n + 1, 2*n + 2} {
			if to < pages {
				fmt.Fprintf(w, `<a href="/%d">next</a>`, to)
			}
		}
		fmt.Fprint(w, strings.Repeat(fmt.Sprintf("word%d ", n), 20+n*n%700))
	}))
	defer site.Close()
	dir := t.TempDir()
	exe(t, "crawl", "--data", dir, "--quiet", "--allow-private", "--no-index", site.URL)
	logs := map[string]string{}
	for _, what := range []string{"requests", "pages"} {
		for _, format := range []string{"csv", "jsonl"} {
			name := filepath.Join(dir, what+"."+format)
			exe(t, "export", what, "--data", dir, "--format", format, "--out", name)
			logs[what+format] = name
		}
	}
	var arrivals, service struct {
		fit.BMAP
		fit.PH
		Goodness fit.Goodness `json:"goodness"`
	}
	for _, name := range []string{logs["requestscsv"], logs["requestsjsonl"]} {
		if err := json.Unmarshal([]byte(exe(t, "lab", "control", "fit", "--json", "--quiet", "--regimes", "2", name)), &arrivals); err != nil {
			t.Fatal(err)
		}
		if n := arrivals.Goodness.Samples; n < pages/2 || n >= pages {
			t.Errorf("%s: %d times of %d pages", name, n, pages)
		}
	}
	for _, args := range [][]string{
		{logs["pagescsv"]}, {logs["pagesjsonl"]}, {"--as", "service", logs["requestscsv"]}, {"--as", "service", logs["requestsjsonl"]},
	} {
		if err := json.Unmarshal([]byte(exe(t, append([]string{"lab", "control", "fit", "--json", "--rate", "1e6"}, args...)...)), &service); err != nil {
			t.Fatal(err)
		}
		if service.Goodness.Samples != pages {
			t.Errorf("%v: %d sizes of %d pages", args, service.Goodness.Samples, pages)
		}
	}
	m, err := control.New(control.Spec{
		Capacity: 5,
		Common:   &control.Batches{D: arrivals.D},
		Thinning: []float64{.5, 1},
		Service:  &control.Service{Beta: service.Beta, S: service.S},
		Policy:   []int{2, 2, 2, 1, 1, 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Solve(t.Context(), m.Policy())
	if err != nil {
		t.Fatal(err)
	}
	if sum := r.Loss + r.Obsolete + r.Success; !(sum > .999999 && sum < 1.000001) {
		t.Errorf("the model of the fits: %+v", r)
	}
}
