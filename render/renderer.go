package render

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/weburl"
)

// ErrNoBrowser is the error where no Chromium is found or can be started, or no
// tab is allowed.
var ErrNoBrowser = crawl.ErrNoBrowser

// Renderer is a Chooser and a Pool as crawl.Robot takes them.
type Renderer struct {
	*Chooser
	Pool  *Pool
	Token string // product token of the robot, for its own meta element
}

// Ready implements crawl.Renderer.
func (r *Renderer) Ready() error { return r.Pool.Available() }

// Slots implements crawl.Renderer.
func (r *Renderer) Slots() int {
	_, _, limit := r.Pool.Tabs()
	return limit
}

// Render implements crawl.Renderer.
func (r *Renderer) Render(ctx context.Context, f *crawl.Fetched) (*crawl.Rendered, error) {
	doc, err := r.Pool.Render(ctx, &Page{
		URL: f.URL, Header: f.Answer.Header, Body: f.Answer.Body,
		Allowed: f.Allowed,
	})
	if err != nil {
		return nil, err
	}
	if len(doc.HTML) == 0 {
		return nil, errors.New("the browser showed nothing")
	}
	return &crawl.Rendered{HTML: doc.HTML, Page: Read(f.Page, doc, f.URL, r.Token), Bytes: doc.Bytes, Requests: doc.Requests}, nil
}

// Read extracts a rendered document, and adds what only the fetched page had:
// a render shows more, never less.
func Read(fetched *extract.Page, doc *Document, u weburl.URL, token string) *extract.Page {
	base := u
	if at, err := weburl.Parse(doc.URL); err == nil {
		base = at
	}
	p := extract.HTML(doc.HTML, "text/html; charset=utf-8", base, extract.Options{Token: token})
	known := make(map[weburl.URL]bool, len(p.Links)+len(doc.Links))
	for _, l := range p.Links {
		known[l.URL] = true
	}
	nofollow := map[weburl.URL]bool{}
	for _, l := range fetched.Links {
		if l.NoFollow {
			nofollow[l.URL] = true
		}
		if !known[l.URL] {
			known[l.URL] = true
			p.Links = append(p.Links, l)
		}
	}
	for _, raw := range doc.Links {
		address, _, _ := strings.Cut(raw, "#")
		l, err := u.Resolve(address)
		if err != nil || known[l] || nofollow[l] {
			continue
		}
		known[l] = true
		p.Links = append(p.Links, extract.Link{URL: l, Kind: extract.Anchor})
	}
	if p.Length < fetched.Length/2 { // scripts that fail leave less than there was
		p.Text, p.Length, p.Digest, p.Simhash = fetched.Text, fetched.Length, fetched.Digest, fetched.Simhash
	}
	if p.Title == "" {
		p.Title = fetched.Title
	}
	if p.Description == "" {
		p.Description = fetched.Description
	}
	if p.Canonical.IsZero() {
		p.Canonical = fetched.Canonical
	}
	if p.Robots.Until.IsZero() {
		p.Robots.Until = fetched.Robots.Until
	}
	p.Robots.NoIndex = p.Robots.NoIndex || fetched.Robots.NoIndex
	p.Robots.NoArchive = p.Robots.NoArchive || fetched.Robots.NoArchive
	p.Robots.NoFollow = p.Robots.NoFollow || fetched.Robots.NoFollow
	p.Traits = fetched.Traits
	p.Skipped += fetched.Skipped
	return p
}

// ParseRules compiles the expressions of a configuration.
func ParseRules(always, never []string, r Rules) (Rules, error) {
	for _, list := range []struct {
		name string
		from []string
	}{{"always", always}, {"never", never}} {
		for _, s := range list.from {
			re, err := regexp.Compile(s)
			if err != nil {
				return r, fmt.Errorf("render.%s: %q: %w", list.name, s, err)
			}
			if list.name == "always" {
				r.Always = append(r.Always, re)
			} else {
				r.Never = append(r.Never, re)
			}
		}
	}
	return r, nil
}
