package signal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
		{"wrong key", `{"host":"h.example","key":"zzzzzzzzzz","urlList":["http://h.example/a"]}`, 403, "does not hold the key"},
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
			t.Errorf("%s: %d %s", tt.name, code, body)
		}
		if took := len(s.events) > 0; took != (tt.code == 202) {
			t.Errorf("%s: took %v", tt.name, s.events)
		}
	}
	k := &keys{files: map[string]string{"http://h.example/" + key + ".txt": key}}
	h := &IndexNow{Keys: k, Sink: &sink{}}
	for range 3 {
		r := httptest.NewRequest(http.MethodGet, "/indexnow?url=http://h.example/a&key="+key, nil)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 202 {
			t.Errorf("GET: %d %s", w.Code, w.Body)
		}
	}
	if k.asked != 1 {
		t.Errorf("the key file was asked for %d times", k.asked)
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
		{"again", "www", "sha256=" + Sign("secret", []byte(good)), good, 200, `"taken":0`},
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
	if len(s.events) != 2 {
		t.Errorf("events %+v", s.events)
	}
	third := `{"url":"http://h.example/c"}`
	s.fail = true
	if code, _ := post(h, "/", third, SensorHeader, "www", SignatureHeader, Sign("secret", []byte(third))); code != 503 {
		t.Errorf("a failing sink: %d", code)
	}
	s.fail = false
	if code, _ := post(h, "/", third, SensorHeader, "www", SignatureHeader, Sign("secret", []byte(third))); code != 200 || len(s.events) != 3 {
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
