package main

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/lab/control/tune"
)

// The indexer's log becomes thresholds; they are given to the running serve, and
// the model is one that control solve takes.
func TestControlTune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := feed.Services{Dir: dir}
	r := rand.New(rand.NewPCG(1, 1))
	now, free := time.Now().Add(-time.Hour), time.Time{}
	for range 1000 { // robots bring 1.5 times what the indexer can do
		now = now.Add(time.Duration(r.ExpFloat64() * float64(20*time.Millisecond)))
		service := time.Duration(r.ExpFloat64() * float64(30*time.Millisecond))
		if free.Before(now) {
			free = now
		}
		free = free.Add(service)
		if err := log.Add([]feed.Service{{Time: free, Arrived: now, Seconds: service.Seconds(), Bytes: 1, URL: "http://h/"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var set struct{ Thresholds, Modes []int }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPut || r.URL.Path != "/api/throttle" || json.Unmarshal(b, &set) != nil {
			http.Error(w, `{"error":"no"}`, http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	model := filepath.Join(dir, "model.json")
	out := exe(t, "--json", "--data", dir, "lab", "control", "tune", "--agents", "1,2,4", "--capacity", "40", "--stale", "5", "--starvation", "20", "--response", "0.5", "--model", model, "--apply", "--address", server.URL)
	var p tune.Proposal
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	if p.Expected.Cost > p.Without.Cost || p.Log.Pages != 1000 || len(p.Thresholds) == 0 {
		t.Errorf("cost %g with, %g without; %d pages, thresholds %v", p.Expected.Cost, p.Without.Cost, p.Log.Pages, p.Thresholds)
	}
	if !slices.Equal(set.Thresholds, p.Thresholds) || !slices.Equal(set.Modes, p.Agents) {
		t.Errorf("set %+v, proposed %v %v", set, p.Thresholds, p.Agents)
	}
	if solved := exe(t, "--json", "lab", "control", "solve", model); !strings.Contains(solved, `"p_starvation"`) {
		t.Errorf("solve: %s", solved)
	}
	var errs strings.Builder
	if code := runArguments(context.Background(), []string{"--data", t.TempDir(), "lab", "control", "tune"}, strings.NewReader(""), io.Discard, &errs); code != command.ExitFailed || !strings.Contains(errs.String(), "too few pages") {
		t.Errorf("no log: exit %d, %s", code, errs.String())
	}
	errs.Reset()
	if code := runArguments(context.Background(), []string{"--data", dir, "lab", "control", "tune", "--agents", "4"}, strings.NewReader(""), io.Discard, &errs); code != command.ExitUsage {
		t.Errorf("one number of agents: exit %d, %s", code, errs.String())
	}
}
