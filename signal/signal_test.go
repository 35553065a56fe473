package signal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// sink remembers events, or fails.
type sink struct {
	events []Event
	fail   bool
}

func (s *sink) Changed(_ context.Context, _ string, e []Event) (int, error) {
	if s.fail {
		return 0, errors.New("disk full")
	}
	s.events = append(s.events, e...)
	return len(e), nil
}

// keys is a web of key files that counts what it is asked.
type keys struct {
	files map[string]string
	asked int
}

func (k *keys) Key(_ context.Context, address string) ([]byte, error) {
	k.asked++
	if body, ok := k.files[address]; ok {
		return []byte(body), nil
	}
	return nil, errors.New("404")
}

func post(h http.Handler, path, body string, header ...string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestIndexNow(t *testing.T) {
	t.Parallel()
	const key = "a1b2c3d4e5"
	many := strings.Repeat(`"http://h.example/x",`, maxURLs) + `"http://h.example/y"`
	tests := []struct {
		name, body string
		code       int
		want       string
	}{
		{"good", `{"host":"h.example","key":"` + key + `","urlList":["http://h.example/a","http://h.example/b"]}`, 202, ""},
		{"key elsewhere", `{"host":"h.example","key":"` + key + `","keyLocation":"http://h.example/shop/k.txt","urlList":["http://h.example/shop/a"]}`, 202, ""},
		{"outside its folder", `{"host":"h.example","key":"` + key + `","keyLocation":"http://h.example/shop/k.txt","urlList":["http://h.example/a"]}`, 422, "urlList[0]"},
		{"another host", `{"host":"h.example","key":"` + key + `","urlList":["http://h.example/a","http://evil.example/"]}`, 422, "urlList[1]"},
		{"key location on another host", `{"host":"h.example","key":"` + key + `","keyLocation":"http://evil.example/k.txt","urlList":["http://h.example/a"]}`, 400, "is not on h.example"},
		{"host is another", `{"host":"g.example","key":"` + key + `","urlList":["http://h.example/a"]}`, 400, "is not the host of"},
		{"key location with a query", `{"key":"` + key + `","keyLocation":"http://h.example/k.txt?x=1","urlList":["http://h.example/a"]}`, 400, "no plain path"},
		{"key location of an action", `{"key":"` + key + `","keyLocation":"http://h.example/admin/search","urlList":["http://h.example/a"]}`, 400, "no plain path"},
		{"key location with a fragment", `{"key":"` + key + `","keyLocation":"http://h.example/k.txt#a","urlList":["http://h.example/a"]}`, 400, "no plain path"},
		{"key location with dots", `{"key":"` + key + `","keyLocation":"http://h.example/a/../k.txt","urlList":["http://h.example/a"]}`, 400, "no plain path"},
		{"key location with escaped dots", `{"key":"` + key + `","keyLocation":"http://h.example/a/%2e%2e/k.txt","urlList":["http://h.example/a"]}`, 400, "no plain path"},
		{"key location with a user", `{"key":"` + key + `","keyLocation":"http://u:p@h.example/k.txt","urlList":["http://h.example/a"]}`, 400, "no http or https URL"},
		{"key location at another port", `{"key":"` + key + `","keyLocation":"http://h.example:81/k.txt","urlList":["http://h.example/a"]}`, 400, "is not on"},
		{"no key", `{"host":"h.example","urlList":["http://h.example/a"]}`, 400, "key"},
		{"no URL", `{"host":"h.example","key":"` + key + `"}`, 400, "no URL"},
		{"too many", `{"host":"h.example","key":"` + key + `","urlList":[` + many + `]}`, 400, "10001 URLs"},
		{"not JSON", `{`, 400, "body"},
		{"no web address", `{"key":"` + key + `","urlList":["ftp://h/"]}`, 400, "no http or https URL"},
	}
	for _, tt := range tests {
		s := &sink{}
		h := &IndexNow{Keys: &keys{files: map[string]string{"http://h.example/" + key + ".txt": key + "\n", "http://h.example/shop/k.txt": key}}, Sink: s}
		code, body := post(h, "/indexnow", tt.body)
		if code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, code, body, tt.code, tt.want)
		}
		if len(s.events) > 0 {
			t.Errorf("%s: taken before the proof: %v", tt.name, s.events)
		}
		proveAll(t, h)
		if took := len(s.events) > 0; took != (tt.code == 202) {
			t.Errorf("%s: took %v", tt.name, s.events)
		}
	}
	k := &keys{files: map[string]string{"http://h.example/" + key + ".txt": key}}
	s := &sink{}
	h := &IndexNow{Keys: k, Sink: s}
	for range 3 {
		r := httptest.NewRequest(http.MethodGet, "/indexnow?url=http://h.example/a&key="+key, nil)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 202 {
			t.Errorf("GET: %d %s", w.Code, w.Body)
		}
		proveAll(t, h)
	}
	if k.asked != 1 || len(s.events) != 3 {
		t.Errorf("the key file was asked for %d times, want 1; %d notices, want 3", k.asked, len(s.events))
	}
}

// proveAll does what Run does until nothing waits.
func proveAll(t *testing.T, h *IndexNow) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = h.Run(ctx); close(done) }()
	for {
		h.init()
		h.mu.Lock()
		left := len(h.hosts)
		h.mu.Unlock()
		if left == 0 {
			break
		}
		runtime.Gosched()
	}
	cancel()
	<-done
}

// Strangers cannot make the robot ask a site: not by many keys, not by many
// addresses of theirs, and not through somebody's browser.
func TestKeyFilesAreFetchedRarely(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		sender func(i int) string
		key    func(i int) string
	}{
		{"one key", func(int) string { return "192.0.2.1:1" }, func(int) string { return "abcdefgh" }},
		{"many keys", func(int) string { return "192.0.2.1:1" }, func(i int) string { return fmt.Sprintf("abcdefgh%d", i) }},
		{"many senders", func(i int) string { return fmt.Sprintf("192.0.%d.%d:1", i/250, i%250) }, func(i int) string { return fmt.Sprintf("abcdefgh%d", i) }},
	} {
		k, s := &keys{}, &sink{}
		h := &IndexNow{Keys: k, Sink: s}
		for i := range 2000 {
			r := httptest.NewRequest(http.MethodGet, "/indexnow?url=http://h.example/&key="+tt.key(i), nil)
			r.RemoteAddr = tt.sender(i)
			h.ServeHTTP(httptest.NewRecorder(), r)
			if i%10 == 0 {
				proveAll(t, h)
			}
		}
		proveAll(t, h)
		if k.asked > keysAMinute+1 || len(s.events) > 0 {
			t.Errorf("%s: %d key files were asked for, want %d at most; %d notices were taken", tt.name, k.asked, keysAMinute+1, len(s.events))
		}
	}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example", "Referer": "http://evil.example/", "Cookie": "a=b"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			h := &IndexNow{Keys: &keys{}, Sink: &sink{}}
			r := httptest.NewRequest(method, "/indexnow?url=http://h.example/&key=abcdefgh", strings.NewReader("{}"))
			r.Header.Set(name, value)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusForbidden || len(h.queue) != 0 {
				t.Errorf("%s with %s from a page: %d, %d wait, want 403 and none", method, name, w.Code, len(h.queue))
			}
		}
	}
}

// unreadable fails a test in which a body is read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// Who sends, and how often, is looked at before a body is read.
func TestSendersAreCheckedBeforeBodies(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0", 64)
	for name, header := range map[string][2]string{"unknown sensor": {"nobody", sum}, "no sensor": {"", sum}, "no signature": {"www", ""}, "half a signature": {"www", sum[1:]}} {
		r := httptest.NewRequest(http.MethodPost, "/api/signals", unreadable{t})
		r.Header.Set(SensorHeader, header[0])
		r.Header.Set(SignatureHeader, header[1])
		w := httptest.NewRecorder()
		if (&Events{Secrets: map[string]string{"www": "s"}, Sink: &sink{}}).ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", name, w.Code)
		}
	}
	h := &IndexNow{Keys: &keys{}, Sink: &sink{}}
	for range 100 {
		post(h, "/indexnow", "{}")
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/indexnow", unreadable{t})); w.Code != http.StatusTooManyRequests {
		t.Errorf("after a hundred notices: %d, want 429", w.Code)
	}
	var g bodyGate
	leave, _ := g.enterGate("a")
	if _, ok := g.enterGate("a"); !ok {
		t.Error("a second body of a client was refused")
	}
	if _, ok := g.enterGate("a"); ok {
		t.Error("a third body of a client is read")
	}
	for i := range maxBodies - 2 {
		if _, ok := g.enterGate(fmt.Sprint(i)); !ok {
			t.Errorf("body %d was refused", i+3)
		}
	}
	if _, ok := g.enterGate("z"); ok {
		t.Error("one body too many is read")
	}
	leave()
	if _, ok := g.enterGate("z"); !ok {
		t.Error("a place that was left is not free")
	}
}

// Every change that a sensor tells of reaches the robot, a repetition after a lost
// answer does not, and a request that somebody recorded is of no use later.
func TestRepeatedEvents(t *testing.T) {
	t.Parallel()
	s := &sink{}
	secrets := map[string]string{"a": "s"}
	h := &Events{Secrets: secrets, Sink: s}
	send := func(h *Events, body string) string {
		_, answer := post(h, "/", body, SensorHeader, "a", SignatureHeader, Sign("s", []byte(body)))
		return answer
	}
	at := func(age time.Duration) string {
		return fmt.Sprintf(`{"url":"http://h.example/x","seen":%q}`, time.Now().Add(-age).UTC().Format(time.RFC3339Nano))
	}
	for i := range 3 {
		if got := send(h, `{"url":"http://h.example/x"}`); !strings.Contains(got, `"taken":1`) {
			t.Errorf("change %d without a time: %s", i+1, got)
		}
	}
	now := at(0)
	for i, want := range []string{`"taken":1`, `"taken":0`} {
		if got := send(h, now); !strings.Contains(got, want) {
			t.Errorf("the same event, time %d: %s, want %s", i+1, got, want)
		}
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			h = &Events{Secrets: secrets, Sink: s}
		}
		for age, want := range map[time.Duration]string{25 * time.Hour: `"taken":0,"stale":1`, 6 * 365 * 24 * time.Hour: `"taken":0,"stale":1`, -25 * time.Hour: `"taken":0,"stale":1`, 23 * time.Hour: `"taken":1,"stale":0`} {
			if got := send(h, at(age)); !strings.Contains(got, want) {
				t.Errorf("an event %v old, restarted %t: %s, want %s", age, restarted, got, want)
			}
		}
	}
	var r recent
	start := time.Now()
	e := &Event{URL: "http://h.example/x", Seen: start}
	for _, tt := range []struct {
		after time.Duration
		fresh bool
	}{{0, true}, {time.Minute, false}, {repeatAge - time.Second, false}, {3 * repeatAge, true}} {
		if _, ok := r.rememberIfNew(e, start.Add(tt.after)); ok != tt.fresh {
			t.Errorf("after %v fresh is %t, want %t", tt.after, ok, tt.fresh)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := &sink{}
	h := &Events{Secrets: map[string]string{"www": "secret", "empty": ""}, Sink: s}
	good := `{"url":"http://h.example/a","event":"updated","digest":"1"}` + "\n\n" + `{"url":"http://h.example/b"}`
	many := strings.Repeat("{\"url\":\"x\"}\n", burst+1)
	tests := []struct {
		name, sensor, signature, body string
		code                          int
		want                          string
	}{
		{"good", "www", Sign("secret", []byte(good)), good, 200, `"taken":2`},
		{"again", "www", "sha256=" + Sign("secret", []byte(good)), good, 200, `"taken":2`},
		{"forged", "www", Sign("other", []byte(good)), good, 401, ""},
		{"changed on the way", "www", Sign("secret", []byte(good)), good + " ", 401, ""},
		{"unknown sensor", "nobody", Sign("", []byte(good)), good, 401, ""},
		{"no secret", "empty", Sign("", []byte(good)), good, 401, ""},
		{"more than are ever taken at once", "www", Sign("secret", []byte(many)), many, 413, "20000"},
		{"not JSON", "www", Sign("secret", []byte("{\"url\":\"x\"}\nnonsense")), "{\"url\":\"x\"}\nnonsense", 400, "line 2"},
		{"no URL", "www", Sign("secret", []byte("{}")), "{}", 400, "line 1: no url"},
	}
	for _, tt := range tests {
		code, body := post(h, "/api/signals", tt.body, SensorHeader, tt.sensor, SignatureHeader, tt.signature)
		if code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s", tt.name, code, body)
		}
	}
	if len(s.events) != 4 {
		t.Errorf("events %+v", s.events)
	}
	third := `{"url":"http://h.example/c"}`
	s.fail = true
	if code, _ := post(h, "/", third, SensorHeader, "www", SignatureHeader, Sign("secret", []byte(third))); code != 503 {
		t.Errorf("a failing sink: %d", code)
	}
	s.fail = false
	if code, _ := post(h, "/", third, SensorHeader, "www", SignatureHeader, Sign("secret", []byte(third))); code != 200 || len(s.events) != 5 {
		t.Errorf("sent again after a failure: %d, %d events", code, len(s.events))
	}
}

// A sensor that floods is told to wait, and another is not.
func TestFlood(t *testing.T) {
	t.Parallel()
	h := &Events{Secrets: map[string]string{"a": "s", "b": "s"}, Sink: &sink{}}
	send := func(sensor string, from int) int {
		var b strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&b, "{\"url\":\"http://h/%d\"}\n", from+i)
		}
		code, _ := post(h, "/", b.String(), SensorHeader, sensor, SignatureHeader, Sign("s", []byte(b.String())))
		return code
	}
	var codes []int
	for i := range 6 {
		codes = append(codes, send("a", i*5000))
	}
	if codes[0] != 200 || codes[5] != 429 {
		t.Errorf("answers %v", codes)
	}
	if code := send("b", 0); code != 200 {
		t.Errorf("the other sensor: %d", code)
	}
}

func FuzzReceivers(f *testing.F) {
	f.Add([]byte(`{"host":"h","key":"abcdefgh","keyLocation":"http://h","urlList":["http://h/"]}`))
	f.Add([]byte("{\"url\":\"x\",\"seen\":\"2026\"}\n[]"))
	f.Fuzz(func(_ *testing.T, body []byte) {
		post(&IndexNow{Keys: &keys{}, Sink: &sink{}}, "/", string(body))
		post(&Events{Secrets: map[string]string{"a": "s"}, Sink: &sink{}}, "/", string(body), SensorHeader, "a", SignatureHeader, Sign("s", body))
	})
}
