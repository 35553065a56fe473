package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/internal/testport"
	"github.com/freshet/freshet/signal"
	"github.com/freshet/freshet/weburl"
)

// start runs a node and returns the address of its console.
func start(t *testing.T, c *config.Config, dir string) (*Node, string) {
	t.Helper()
	c.Console.Listen = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	n, err := Open(c, Options{Dir: dir, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	done := make(chan error, 1)
	go func() { done <- n.Serve(ctx, func(a string) { address <- "http://" + a }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-address:
		return n, a
	case err := <-done:
		done <- err
		t.Fatalf("the node ended: %v", err)
	}
	return nil, ""
}

func get(t *testing.T, u string, header ...string) (int, string) {
	t.Helper()
	return request(t, http.MethodGet, u, "", header...)
}

// request returns the status and body of an answer; header has names and values in turn.
func request(t *testing.T, method, u, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, u, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// One process keeps a web site and a share, and finds things of both.
func TestPagesAndFiles(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `<title>Heron page</title><p>All about herons.`)
	}))
	defer site.Close()
	folder := t.TempDir()
	for name, text := range map[string]string{"Garnys heron.txt": "A heron, garnys in Lithuanian.", "heron.mp3": "a heron's call", "цапля.txt": "heron по-русски"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := config.Default()
	c.Console.Media = true
	c.Sources = []config.Source{{URL: site.URL + "/"}, {URL: "file://" + folder}}
	_, address := start(t, c, t.TempDir())
	search := func(q string) string {
		_, body := get(t, address+"/api/search?q="+url.QueryEscape(q))
		return body
	}
	eventually(t, "page and files are found", func() bool {
		s := search("heron")
		return strings.Contains(s, "Heron page") && strings.Contains(s, "Garnys") && strings.Contains(s, "цапля")
	})
	if s := search("heron kind:web"); strings.Contains(s, "Garnys") || !strings.Contains(s, "Heron page") {
		t.Errorf("only pages: %s", s)
	}
	if s := search("heron kind:document"); strings.Contains(s, "Heron page") || !strings.Contains(s, "Garnys") {
		t.Errorf("only documents: %s", s)
	}
	for _, part := range []string{"\"pages\":1", "\"online\"", "file://"} {
		if _, s := get(t, address+"/api/status"); !strings.Contains(s, part) {
			t.Errorf("the status lacks %s: %s", part, s)
		}
	}
	if _, s := get(t, address+"/metrics"); !strings.Contains(s, "freshet_pages 1") {
		t.Error("the metrics lack the page")
	}
	play := address + "/play?" + url.Values{"host": {"file://" + folder}, "path": {"heron.mp3"}}.Encode()
	if code, body := get(t, play, "Range", "bytes=2-6"); code != http.StatusPartialContent || body != "heron" {
		t.Errorf("a range of the file: %d %q", code, body)
	}
	for _, name := range []string{"../../etc/passwd", "none.mp3", ""} {
		bad := address + "/play?" + url.Values{"host": {"file://" + folder}, "path": {name}}.Encode()
		if code, _ := get(t, bad); code != http.StatusNotFound {
			t.Errorf("%q is played: %d", name, code)
		}
	}
}

// A signed notice has a page fetched again at once; a forged one, or one about a
// page that is not ours, has no effect.
func TestSignals(t *testing.T) {
	t.Parallel()
	var version atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			fmt.Fprintf(w, "<title>Page</title><p>heron edition%d", version.Load())
		case "/abcdef123456.txt":
			fmt.Fprint(w, "abcdef123456")
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	c := config.Default()
	c.Sources = []config.Source{{URL: site.URL + "/"}}
	c.Signals.Secrets, c.Signals.IndexNow = map[string]string{"www": "geheim"}, true
	_, address := start(t, c, t.TempDir())
	found := func(q string) func() bool {
		return func() bool {
			_, s := get(t, address+"/api/search?q="+q)
			return strings.Contains(s, `"url":"`+site.URL)
		}
	}
	eventually(t, "the first edition is found", found("edition0"))
	send := func(path, body, signature string) int {
		req, err := http.NewRequest(http.MethodPost, address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(signal.SensorHeader, "www")
		req.Header.Set(signal.SignatureHeader, signature)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	version.Store(1)
	event := fmt.Sprintf(`{"url":%q,"digest":"1"}`+"\n"+`{"url":"http://elsewhere.example/"}`, site.URL+"/")
	if code := send("/api/signals", event, "forged"); code != http.StatusUnauthorized {
		t.Errorf("forged: %d", code)
	}
	if code := send("/api/signals", event, signal.Sign("geheim", []byte(event))); code != http.StatusOK {
		t.Errorf("signed: %d", code)
	}
	eventually(t, "the second edition is found", found("edition1"))
	version.Store(2)
	notice := fmt.Sprintf(`{"key":"abcdef123456","urlList":[%q]}`, site.URL+"/")
	if code := send("/indexnow", notice, ""); code != http.StatusAccepted {
		t.Errorf("IndexNow: %d", code)
	}
	eventually(t, "the third edition is found", found("edition2"))
}

// The controls of the console reach the robot; a source can be added while it
// runs, and a page's copy is kept.
func TestControls(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<title>Added later</title><p>pelican`)
	}))
	defer site.Close()
	n, address := start(t, config.Default(), t.TempDir())
	for _, path := range []string{"/indexnow?url=http://h.example/&key=abcdef123456", "/websub/x"} { // not configured
		if code, _ := get(t, address+path); code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, code)
		}
	}
	ctx := context.Background()
	four := 4
	if err := n.SetAgents(ctx, &four, nil); err != nil {
		t.Fatal(err)
	}
	if err := n.AddSource(ctx, console.Source{URL: site.URL + "/"}); err != nil {
		t.Fatal(err)
	}
	if err := n.AddSource(ctx, console.Source{URL: site.URL + "/", Scope: "host"}); err != nil { // once more
		t.Fatal(err)
	}
	for _, bad := range []console.Source{{URL: site.URL + "/", Scope: "any"}, {URL: "http://www.example.org/"}, {URL: "nonsense"}, {URL: site.URL, Scope: "all"}, {URL: "smb://h/s"}} {
		if err := n.AddSource(ctx, bad); err == nil {
			t.Errorf("took %+v", bad)
		}
	}
	eventually(t, "the added page is found", func() bool {
		_, s := get(t, address+"/api/search?q=pelican")
		return strings.Contains(s, "Added later")
	})
	if code, s := get(t, address+"/cached?url="+url.QueryEscape(site.URL+"/")); code != http.StatusOK || !strings.Contains(s, "pelican") {
		t.Errorf("copy: %d %s", code, s)
	}
	if err := n.SetThrottle(ctx, []int{10}, []int{1, 4}); err != nil {
		t.Fatal(err)
	}
	s, err := n.Status(ctx)
	if err != nil || s.Agents.FetchLimit != 4 || s.Throttle == nil || s.Throttle.Active != 4 || len(s.Sources) != 1 {
		t.Errorf("status %+v, %v", s, err)
	}
	if err := n.SetThrottle(ctx, []int{10}, []int{1}); err == nil {
		t.Error("took one mode for one threshold")
	}
	if err := n.Ready(ctx); err != nil {
		t.Error(err)
	}
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger was asked for a key") }))
	defer stranger.Close()
	if _, err := (keyFiles{n}).Key(ctx, stranger.URL+"/key.txt"); err == nil {
		t.Error("a key of a stranger")
	}
	if body, err := (keyFiles{n}).Key(ctx, site.URL+"/key.txt"); err != nil || len(body) == 0 {
		t.Errorf("a key of a source: %q, %v", body, err)
	}
	u, err := weburl.Parse(site.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.RemoveSource(ctx, site.URL+"/", false); err != nil || n.robot.InScope(u, 0) == "" {
		t.Errorf("a source that was added twice and taken back: %v; it is followed: %v", err, n.robot.InScope(u, 0) == "")
	}
}

// A public site without a contact, a second process, and an address that is
// taken end with an error that says what to do.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := config.Default()
	c.Sources = []config.Source{{URL: "http://www.example.org/"}}
	if _, err := Open(c, Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "agent.contact") {
		t.Errorf("no contact: %v", err)
	}
	_, address := start(t, config.Default(), dir)
	second, err := Open(config.Default(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Serve(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "is running on this data directory") {
		t.Errorf("second process: %v", err)
	}
	taken := config.Default()
	taken.Console.Listen = strings.TrimPrefix(address, "http://")
	n, err := Open(taken, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Serve(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "console.listen") {
		t.Errorf("address in use: %v", err)
	}
}

// A feed's hub is found, verifies us, and what it sends makes new pages
// searchable.
func TestWebSub(t *testing.T) {
	t.Parallel()
	var secret, callback atomic.Value
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // the robot, to which it is a source
			http.NotFound(w, r)
			return
		}
		secret.Store(r.FormValue("hub.secret"))
		callback.Store(r.FormValue("hub.callback"))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer hub.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/feed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/atom+xml")
		fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href=%q/></feed>`, hub.URL)
	})
	mux.HandleFunc("/new.html", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Fresh</title><p>cormorant")
	})
	site := httptest.NewServer(mux)
	defer site.Close()
	free, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", free)
	c := config.Default()
	c.Sources = []config.Source{{URL: site.URL + "/feed", AllowPrivate: true}, {URL: hub.URL + "/", AllowPrivate: true}} // a hub at a private address is a source, too
	c.Signals.Topics, c.Signals.Callback = []string{site.URL + "/feed"}, "http://"+address
	c.Console.Listen = address
	ctx, cancel := context.WithCancel(t.Context())
	n, err := Open(c, Options{Dir: t.TempDir(), AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- n.Serve(ctx, nil) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the hub is asked", func() bool { return callback.Load() != nil })
	q := url.Values{"hub.mode": {"subscribe"}, "hub.topic": {site.URL + "/feed"}, "hub.challenge": {"42"}}
	if code, s := get(t, callback.Load().(string)+"?"+q.Encode()); code != http.StatusOK || s != "42" {
		t.Fatalf("verification: %d %q", code, s)
	}
	body := `<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/new.html"/></entry></feed>`
	mac := hmac.New(sha256.New, []byte(secret.Load().(string)))
	mac.Write([]byte(body))
	req, err := http.NewRequest(http.MethodPost, callback.Load().(string), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Hub-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		t.Fatalf("notification: %s", res.Status)
	}
	eventually(t, "the new page is found", func() bool {
		_, s := get(t, "http://"+address+"/api/search?q=cormorant")
		return strings.Contains(s, "new.html")
	})
}
