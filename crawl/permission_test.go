package crawl

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/store"
)

// scopeFor is a scope of a test.
func scopeFor(t *testing.T, seed, kind string, private bool, include ...string) Scope {
	t.Helper()
	sc, err := NewScope(mustParse(t, seed), kind, 0, include, nil)
	if err != nil {
		t.Fatal(err)
	}
	sc.Private = private
	return sc
}

// A permission is of the hosts that a private scope covers, of their ports, and ends
// with the scope.
func TestPermissionByScope(t *testing.T) {
	t.Parallel()
	public := scopeFor(t, "http://public.example/", "any", false)
	for _, tt := range []struct {
		scope      Scope
		url        string
		page, host bool
	}{
		{scopeFor(t, "http://intranet/", "host", true), "http://intranet/x", true, true},
		{scopeFor(t, "http://intranet/", "host", true), "https://intranet/x", true, true},
		{scopeFor(t, "http://intranet/", "host", true), "http://intranet:8080/x", false, false},
		{scopeFor(t, "http://intranet/", "host", true), "http://www.intranet/", false, false},
		{scopeFor(t, "http://intranet:8080/", "host", true), "http://intranet:8080/", true, true},
		{scopeFor(t, "http://intranet:8080/", "host", true), "http://intranet/", false, false},
		{scopeFor(t, "http://intranet/", "host", false), "http://intranet/", false, false},
		{scopeFor(t, "http://intranet/", "host", true, "/docs/"), "http://intranet/docs/1", true, true},
		{scopeFor(t, "http://intranet/", "host", true, "/docs/"), "http://intranet/admin", false, true},
		{scopeFor(t, "http://intranet/docs/", "prefix", true), "http://intranet/docs/1", true, true},
		{scopeFor(t, "http://intranet/docs/", "prefix", true), "http://intranet/admin", false, true},
		{scopeFor(t, "http://intranet/docs/", "prefix", true), "http://other/docs/", false, false},
		{scopeFor(t, "http://www.corp.example/", "domain", true), "http://wiki.corp.example:8080/", true, true},
		{scopeFor(t, "http://www.corp.example/", "domain", true), "http://corp.example.evil.test/", false, false},
		{scopeFor(t, "http://10.0.0.1/", "domain", true), "http://10.1.0.1/", false, false},
		{scopeFor(t, "http://10.0.0.1/", "host", true), "http://0x0a.1/", true, true},
		{scopeFor(t, "http://[fd00::1]:81/", "host", true), "http://[fd00::1]:81/x", true, true},
		{scopeFor(t, "http://[fd00::1]:81/", "host", true), "http://[fd00::2]:81/x", false, false},
		{scopeFor(t, "http://intranet/", "any", true), "http://10.9.9.9/", true, true},
		{scopeFor(t, "http://intranet/", "any", true, `^https?://[^/]*\.corp\.example/`), "http://wiki.corp.example/", true, true},
		{scopeFor(t, "http://intranet/", "any", true, `^https?://[^/]*\.corp\.example/`), "http://10.9.9.9/", false, false},
	} {
		r := New(Config{})
		r.AddScope(public)
		r.AddScope(tt.scope)
		u := mustParse(t, tt.url)
		_, port, _ := strings.Cut(u.Host()[strings.LastIndexByte(u.Host(), ']')+1:], ":")
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme()]
		}
		if page, host, dial := r.sources.permitsPage(u), r.PermitsURL(u), r.PermitsHost(u.Hostname(), port); page != tt.page || host != tt.host || dial != tt.host {
			t.Errorf("%s, scope %s of %s: page %v, host %v, dialled %v, want %v, %v, %v", tt.url, tt.scope.Kind, tt.scope.Seed, page, host, dial, tt.page, tt.host, tt.host)
		}
		r.RemoveScope(tt.scope, false)
		if r.sources.permitsPage(u) || r.PermitsURL(u) {
			t.Errorf("%s: permitted after its source was removed", tt.url)
		}
	}
}

// Whatever way leads from the pages of one source to a host at a private address, it
// is contacted only if a source that may is about that very host.
func TestPrivateHostsBySource(t *testing.T) {
	t.Parallel()
	ways := map[string]func(target string) (page string, special map[string]http.HandlerFunc){
		"link": func(target string) (string, map[string]http.HandlerFunc) { return link(target + "/found"), nil },
		"redirect": func(target string) (string, map[string]http.HandlerFunc) {
			return link("/go"), map[string]http.HandlerFunc{"/go": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target+"/found", http.StatusFound) }}
		},
		"robots.txt redirect": func(target string) (string, map[string]http.HandlerFunc) {
			return link("/a"), map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, target+"/robots.txt", http.StatusFound)
			}}
		},
		"sitemap": func(target string) (string, map[string]http.HandlerFunc) {
			return link("/a"), map[string]http.HandlerFunc{
				"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprintf(w, "Sitemap: %s/sitemap.xml\nSitemap: /sitemap.xml\n", target)
				},
				"/sitemap.xml": func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/xml")
					fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>%s/found</loc></url></urlset>`, target)
				},
			}
		},
		"canonical": func(target string) (string, map[string]http.HandlerFunc) {
			return fmt.Sprintf("<link rel=canonical href=%q>", target+"/found") + link("/a"), nil
		},
		"frame": func(target string) (string, map[string]http.HandlerFunc) {
			return fmt.Sprintf("<iframe src=%q></iframe>", target+"/found"), nil
		},
	}
	for name, way := range ways {
		for _, covered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, covered %v", name, covered), func(t *testing.T) {
				t.Parallel()
				target := newSite(t, map[string]string{"/found": link(), "/": link()}, nil)
				page, special := way(target.URL)
				from := newSite(t, map[string]string{"/": page, "/a": link()}, special)
				r := newRig(t)
				client, err := fetch.New(fetch.Config{UserAgent: "freshet-test"})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				r.config.Fetch = client
				// The start is permitted as a source of its own; a public source of the
				// scope any has all links in its scope.
				r.config.Scopes.Add(scopeFor(t, from.URL+"/", "host", true))
				r.config.Scopes.Add(scopeFor(t, from.URL+"/", "any", false))
				if covered {
					r.config.Scopes.Add(scopeFor(t, target.URL+"/", "host", true))
				}
				r.crawl(t, from.URL+"/")
				// A robots.txt that cannot be had forbids all.
				if crawled := from.count("/") == 1; crawled != (covered || name != "robots.txt redirect") {
					t.Errorf("the source itself was crawled: %v, %v", crawled, from.log)
				}
				target.mu.Lock()
				asked := slices.Clone(target.log)
				target.mu.Unlock()
				if name != "canonical" && covered != (len(asked) > 0) || !covered && len(asked) > 0 {
					t.Errorf("the other host was asked for %v", asked)
				}
			})
		}
	}
}

// A page of a source without permission has no scripts from hosts of a source with
// one, be they of the internet or not.
func TestPrivateScripts(t *testing.T) {
	t.Parallel()
	script := newSite(t, nil, map[string]http.HandlerFunc{"/app.js": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "1") }})
	client, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, tt := range []struct {
		page, covered bool // the page is of a source with permission, and so is the script's host
		want          bool
	}{{false, false, false}, {false, true, false}, {true, false, false}, {true, true, true}} {
		r := New(Config{Fetch: client})
		if tt.covered {
			r.AddScope(scopeFor(t, script.URL+"/", "host", true))
		}
		a := testAgent(r, store.Host{Name: "site.example"})
		a.access.Private = tt.page
		script.forget()
		_, err := a.access.GetScript(t.Context(), mustParse(t, script.URL+"/app.js"))
		if got := err == nil; got != tt.want || got != (script.count("/app.js") == 1) {
			t.Errorf("page permitted %v, script's host %v: got %v (%v), want %v", tt.page, tt.covered, got, err, tt.want)
		}
	}
}

// A source that is added or removed while the robot runs gives and takes permission at
// the next request, on a connection that is kept, too.
func TestPermissionWhileRunning(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"/": link()}, nil)
	client, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := New(Config{Fetch: client})
	u := mustParse(t, s.URL+"/")
	sc := scopeFor(t, s.URL+"/", "host", true)
	for i, step := range []func(){func() {}, func() { r.AddScope(sc) }, func() { r.RemoveScope(sc, true) }, func() { r.AddScope(sc) }} {
		step()
		a := testAgent(r, store.Host{Name: u.Host()})
		a.access.Private = r.sources.permitsPage(u)
		if _, err := a.access.GetAuxiliary(t.Context(), fetch.Request{URL: u}); (err == nil) != (i%2 == 1) {
			t.Errorf("step %d: %v", i, err)
		}
	}
}
