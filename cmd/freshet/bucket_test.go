package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/freshet/freshet/internal/pgtest"
)

// With a bucket a node needs nothing of its disk: after the loss of folder and
// index, another node builds the index from the bodies in the bucket.
func TestBodiesInBucket(t *testing.T) {
	t.Parallel()
	const pages = 60
	memory := s3mem.New()
	if err := memory.CreateBucket("bodies"); err != nil {
		t.Fatal(err)
	}
	s3 := httptest.NewServer(gofakes3.New(memory).Server())
	t.Cleanup(s3.Close)
	bucket := "s3://bodies/web?insecure=true&region=us-east-1&endpoint=" + strings.TrimPrefix(s3.URL, "http://")
	w, bin, dir := newWitness(t, pages, 2), binary(t), t.TempDir()
	database := pgtest.New(t).Database(t)
	crawl := func(node string, more ...string) (sum crawlSummary) {
		t.Helper()
		args := append([]string{"--data", filepath.Join(dir, node), "--quiet", "--json", "crawl", "--database", database, "--bucket", bucket, "--allow-private", "--scope", "any"}, more...)
		cmd := exec.Command(bin, append(args, w.site.Seeds()...)...)
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		if err := json.Unmarshal(stdout.Bytes(), &sum); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if sum := crawl("anna", "--no-index"); sum.Pages != pages || sum.Indexed != 0 {
		t.Fatalf("first crawl: %+v", sum)
	}
	if err := os.RemoveAll(filepath.Join(dir, "anna")); err != nil {
		t.Fatal(err)
	}
	if sum := crawl("boris"); sum.Unchanged != pages || sum.Indexed != pages {
		t.Errorf("another node, after the loss of the first one's disk: %+v", sum)
	}
}
