package console

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A browser that sends no pings is led to a result through the server, which
// counts it; a link that the server did not make leads nowhere; other browsers
// have the address itself.
func TestClicksWithoutPing(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var clicked []string
	_, server := newServer(t, Config{Listen: "127.0.0.1:0", Clicked: func(u string) {
		mu.Lock()
		defer mu.Unlock()
		clicked = append(clicked, u)
	}})
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(path, agent string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", agent)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(b)
	}
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	title := regexp.MustCompile(`<h2><a href="([^"]*)"`)
	link := func(agent string) string {
		t.Helper()
		_, body := get("/?q=heron", agent)
		m := title.FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no result in %s", body)
		}
		return html.UnescapeString(m[1])
	}
	direct, through := link("Mozilla/5.0 Chrome/140.0"), link(firefox)
	if !strings.HasPrefix(direct, "http") || !strings.HasPrefix(through, "/open?") {
		t.Fatalf("links %q, %q", direct, through)
	}
	if res, _ := get(through, firefox); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != direct || res.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%s, to %q", res.Status, res.Header.Get("Location"))
	}
	for _, forged := range []string{strings.Replace(through, "url=http", "url=https", 1), "/open?url=http%3A%2F%2Fevil.example%2F&sig=00", "/open"} {
		if res, _ := get(forged, firefox); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", forged, res.Status)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(clicked) != 1 || clicked[0] != direct {
		t.Errorf("clicked %q", clicked)
	}
}
