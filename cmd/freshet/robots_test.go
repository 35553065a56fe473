package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// The status of robots.txt decides as RFC 9309, section 2.3.1, says.
func TestRobotsOfServer(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "user-agent: *\ndisallow: /x\nsitemap: /s.xml\n")
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
		fmt.Fprint(w, "user-agent: *\ndisallow: /\n")
	})
	mux.HandleFunc("/hops/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.PathValue("n"), &n)
		to := fmt.Sprintf("/hops/%d", n-1)
		if n == 1 {
			to = "/ok"
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for path, want := range map[string]string{
		"/ok": "disallowed  /x  (line 2: disallow: /x)\nsitemap: " + server.URL + "/s.xml", "/status/404": "allowed     /x  (no rule matches)", "/status/403": "allowed     /x  (no rule matches)",
		"/status/503": "disallowed  /x  (nothing may be fetched while robots.txt cannot be had)", "/hops/5": "disallowed  /x  (line 2: disallow: /x)\nsitemap: " + server.URL + "/s.xml", "/hops/6": "allowed     /x  (no rule matches)",
	} {
		out, err := exec.Command(binary(t), "robots", server.URL+path, "/x").CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}
