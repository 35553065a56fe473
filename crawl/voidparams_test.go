package crawl

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// paragraph is text that no other name has.
func paragraph(name string) string {
	h, b := appendHash(hashStart, name), strings.Builder{}
	for range 60 {
		h = (h ^ h>>29) * hashSpread
		fmt.Fprintf(&b, "w%c%c%c%c ", 'a'+h>>20%26, 'a'+h>>30%26, 'a'+h>>40%26, 'a'+h>>50%26)
	}
	return b.String()
}

// parameterSite answers each request with what page makes of it; "" is 404, "redirect to" is 302. It counts
// requests by their targets.
type parameterSite struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
}

func newParameterSite(t *testing.T, page func(r *http.Request) string) *parameterSite {
	t.Helper()
	s := &parameterSite{asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.URL.RequestURI()]++
		s.mu.Unlock()
		body := page(r)
		if body == "" {
			http.NotFound(w, r)
			return
		}
		if to, ok := strings.CutPrefix(body, "redirect to "); ok {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// targets are those that were asked for and hold what part names.
func (s *parameterSite) targets(part string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for target := range s.asked {
		if strings.Contains(target, part) {
			out = append(out, target)
		}
	}
	slices.Sort(out)
	return out
}

// scripted is a Renderer of pages whose scripts add a parameter to all links.
type scripted struct {
	puppet
	parameter string
	links     func(u weburl.URL) []string
	rendered  []string
	text      func(u weburl.URL) string
}

func (s *scripted) Wants(context.Context, *Fetched) Decision { return Decision{Render: true, Tag: 7} }

func (s *scripted) Render(_ context.Context, f *Fetched) (*Rendered, error) {
	s.mu.Lock()
	s.rendered = append(s.rendered, f.URL.Target())
	s.mu.Unlock()
	html := "<title>" + f.Page.Title + "</title>" + s.text(f.URL)
	for _, l := range s.links(f.URL) {
		html += "<a href='" + l + s.parameter + "'>x</a>"
	}
	page := extract.HTML([]byte(html), "text/html", f.URL, extract.Options{Token: "t"})
	return &Rendered{HTML: []byte(html), Page: page}, nil
}

// Scripts of static pages that add a parameter to all links double neither fetching nor
// rendering; what was learned survives a restart.
func TestVoidParameterOfScripts(t *testing.T) {
	t.Parallel()
	const pages = 600
	var paths []string
	for i := range pages {
		paths = append(paths, fmt.Sprintf("/text/%d.html", i))
	}
	s := newParameterSite(t, func(r *http.Request) string {
		if r.URL.Path == "/" {
			return link(paths...)
		}
		if !slices.Contains(paths, r.URL.Path) {
			return ""
		}
		return "<title>help</title>" + paragraph(r.URL.Path)
	})
	r := newRig(t)
	render := &scripted{parameter: "?DbPAR=WRITER", links: func(u weburl.URL) []string {
		i := slices.Index(paths, u.Path()) + 1
		return paths[min(i, pages):min(i+10, pages)]
	}, text: func(u weburl.URL) string { return paragraph(u.Path()) + paragraph("menu") }}
	r.config.Render = render
	robot := r.crawl(t, s.URL+"/")
	doubles := s.targets("DbPAR")
	if len(doubles) < 5 || len(doubles) > pages/3 {
		t.Errorf("%d doubles of %d pages fetched, want the few that teach and one in %d", len(doubles), pages, checkedBases)
	}
	if n := len(s.targets("/text/")) - len(doubles); n != pages {
		t.Errorf("%d of %d pages fetched", n, pages)
	}
	again := slices.DeleteFunc(slices.Clone(render.rendered), func(s string) bool { return !strings.Contains(s, "DbPAR") })
	if len(again) > 2*promotedPairs {
		t.Errorf("%d doubles rendered: %q", len(again), again)
	}
	if len(render.relearned) == 0 {
		t.Error("what renders gained was not forgotten")
	}
	if n := robot.Status().Skipped[store.ReasonDuplicate]; n == 0 {
		t.Error("no queued double was excluded")
	}
	u, err := weburl.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	r.open(t)
	h, err := r.store.Host(t.Context(), u.Host())
	if err != nil {
		t.Fatal(err)
	}
	if p := h.Parameters["DbPAR"]; !p.IsVoid(time.Now()) {
		t.Errorf("after a restart: %+v, want void", p)
	}
}

// A parameter that chooses content stays, whatever pages ignore it and whoever links to them.
func TestParametersThatMatter(t *testing.T) {
	t.Parallel()
	numbers := func(path, name string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%s?%s=%d", path, name, i))
		}
		return out
	}
	var about []string
	for i := range 12 {
		about = append(about, fmt.Sprintf("/about%d", i), fmt.Sprintf("/about%d?id=1", i), fmt.Sprintf("/about%d?id=2", i))
	}
	item := func(r *http.Request) string {
		return "<title>Shop</title>" + paragraph("item "+r.URL.Query().Get("id")) + paragraph("menu")
	}
	// Items are linked behind five other pages, after pages that ignore the parameter.
	lateItems := func(r *http.Request) string {
		switch r.URL.Path {
		case "/":
			return link(slices.Concat(about, []string{"/n1"})...)
		case "/n1", "/n2", "/n3", "/n4":
			return paragraph(r.URL.Path) + link("/n"+string(r.URL.Path[2]+1))
		case "/n5":
			return link(numbers("/item", "id", 40)...)
		case "/item":
			return item(r)
		}
		return paragraph(r.URL.Path)
	}
	for _, tt := range []struct {
		name string
		page func(r *http.Request) string
		want []string
	}{
		{"ids of a shop", func(r *http.Request) string {
			if r.URL.Path == "/" {
				return link(slices.Concat(about, numbers("/item", "id", 40))...)
			}
			if r.URL.Path == "/item" {
				return item(r)
			}
			return paragraph(r.URL.Path)
		}, numbers("/item", "id", 40)},
		{"languages", func(r *http.Request) string {
			if r.URL.Path == "/" {
				return link("/a", "/a?lang=0", "/a?lang=1", "/b", "/b?lang=0", "/b?lang=1", "/c?lang=0", "/c?lang=1", "/d?lang=0", "/d?lang=1", "/e?lang=0", "/e?lang=1", "/f?lang=0", "/f?lang=1")
			}
			return paragraph(r.URL.Path + r.URL.Query().Get("lang"))
		}, slices.Concat(numbers("/a", "lang", 2), numbers("/d", "lang", 2), numbers("/f", "lang", 2))},
		{"one text for all: items sold out, behind a login", func(r *http.Request) string {
			if r.URL.Path == "/" {
				return link(slices.Concat(numbers("/old1", "id", 5), numbers("/old2", "id", 5), numbers("/old3", "id", 5), numbers("/old4", "id", 5), numbers("/old5", "id", 5), []string{"/next"})...)
			}
			if r.URL.Path == "/next" {
				return link("/next2")
			}
			if r.URL.Path == "/next2" {
				return link(numbers("/item", "id", 40)...)
			}
			if r.URL.Path == "/item" {
				return item(r)
			}
			return paragraph("sold out")
		}, numbers("/item", "id", 40)},
		{"pages that ignore it come first, made for that", lateItems, numbers("/item", "id", 40)},
		{"the same, where no page is without the parameter", func(r *http.Request) string {
			if r.URL.Path == "/item" && r.URL.Query().Get("id") == "" {
				return ""
			}
			return lateItems(r)
		}, numbers("/item", "id", 40)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newParameterSite(t, tt.page)
			r := newRig(t)
			r.crawl(t, s.URL+"/")
			for _, target := range tt.want {
				if s.targets(target) == nil {
					t.Errorf("got no request for %s, want one", target)
				}
			}
		})
	}
}

// A page that scripts build by a parameter is its own page, though the server sends the same
// document for all values.
func TestParameterOfScriptsThatMatters(t *testing.T) {
	t.Parallel()
	var links []string
	for c := range 8 {
		for n := range 3 {
			links = append(links, fmt.Sprintf("/list%d?page=%d", c, n))
		}
	}
	s := newParameterSite(t, func(r *http.Request) string {
		if r.URL.Path == "/" {
			return link(links...)
		}
		return "<title>list</title>" + paragraph(r.URL.Path)
	})
	r := newRig(t)
	render := &scripted{links: func(weburl.URL) []string { return nil }, text: func(u weburl.URL) string { return paragraph(u.Path()) + paragraph(u.Target()) }}
	r.config.Render = render
	r.crawl(t, s.URL+"/")
	for _, l := range links {
		if !slices.Contains(render.rendered, l) {
			t.Errorf("%s was not rendered", l)
		}
	}
}

// The answer of a page's own address that leads to a variant of it is followed.
func TestRedirectToVoidVariant(t *testing.T) {
	t.Parallel()
	var links []string
	for i := range 12 {
		links = append(links, fmt.Sprintf("/p%d", i), fmt.Sprintf("/p%d?x=1", i))
	}
	s := newParameterSite(t, func(r *http.Request) string {
		switch r.URL.Path {
		case "/":
			return link(slices.Concat(links, []string{"/n1"})...)
		case "/n1":
			return link("/n2")
		case "/n2":
			return link("/strict")
		case "/strict":
			if r.URL.Query().Get("x") == "" {
				return "redirect to /strict?x=1"
			}
		}
		return paragraph(r.URL.Path)
	})
	r := newRig(t)
	r.crawl(t, s.URL+"/")
	if s.targets("/strict?x=1") == nil {
		t.Error("the variant to which its base leads was not fetched")
	}
}
