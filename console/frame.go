package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// frame is what every page has around its content.
type frame struct {
	Title  string
	Links  []siteLink
	Logout bool
}

type siteLink struct {
	Label, Href string
	On          bool
}

// pageFrame is that of the page at the address here, as the reader may see it.
func (s *Server) pageFrame(r *http.Request, here string) frame {
	f := frame{Title: s.config.Title}
	add := func(label, href string) { f.Links = append(f.Links, siteLink{label, href, href == here}) }
	password := len(s.auth.hash) > 0
	switch {
	case s.mayRead(r):
		add("search", "/")
		add("status", "/status")
		if s.config.Lab != nil {
			add("lab", "/lab")
		}
		_, err := r.Cookie(s.cookieName(r))
		f.Logout = err == nil
	case password:
		if here != "/" {
			add("search", "/")
		}
		add("log in", "/login")
	}
	return f
}

// problemView is a page that says what went wrong and where to go from there.
type problemView struct {
	frame
	What, Why, Back, BackLabel string
}

// failWith tells what went wrong: browsers by a page, programs by a line.
func (s *Server) failWith(w http.ResponseWriter, r *http.Request, code int, why string) {
	if !isReader(r) {
		http.Error(w, why, code)
		return
	}
	v := problemView{frame: s.pageFrame(r, ""), What: http.StatusText(code), Why: why, Back: "/", BackLabel: "Search"}
	switch path := r.URL.Path; {
	case path == "/control":
		v.Back, v.BackLabel = "/status", "Back to the status"
	case path == "/lab" && s.config.Lab != nil:
		v.Back, v.BackLabel = "/lab", "Back to the lab"
	}
	s.renderTemplate(w, code, "problem.html", v)
}

// isReader tells whether a person reads the answer in a browser.
func isReader(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// handleUnknown answers for addresses that nothing is at.
func (s *Server) handleUnknown(w http.ResponseWriter, r *http.Request) {
	s.failWith(w, r, http.StatusNotFound, fmt.Sprintf("There is nothing at %s.", r.URL.Path))
}

// noLab answers for the lab where none is set up.
func (s *Server) noLab(w http.ResponseWriter, r *http.Request) {
	s.failWith(w, r, http.StatusNotFound, "No sweeps are watched here: name their directories, those of monitor sweep --out, under lab.sweeps in the configuration.")
}

// assetAddress is the address of an embedded file, another one for other contents, so
// that browsers may keep it and see a new version at once.
func assetAddress(name string) (string, error) {
	b, err := files.ReadFile("page/" + name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "/" + name + "?v=" + hex.EncodeToString(sum[:6]), nil
}
