package render

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/weburl"
)

// Verdict is what a script's text tells of what it can do to a page.
type Verdict string

// Verdicts, the least first.
const (
	Inert  Verdict = "inert"  // neither loads data nor builds elements
	Builds Verdict = "builds" // makes elements or writes markup
	App    Verdict = "app"    // loads data and builds elements of it, or is a framework that does
)

// verdictLevel orders verdicts.
func (v Verdict) verdictLevel() int {
	switch v {
	case App:
		return 2
	case Builds:
		return 1
	}
	return 0
}

// Marks of scripts. Names survive minifiers where they are properties of
// global objects or strings, which all of these are.
var (
	frameworkMarks = []struct{ mark, name string }{
		{"react-dom", "react"},
		{"createRoot(", "react"},
		{"__REACT_DEVTOOLS", "react"},
		{"reactProps$", "react"},
		{"createApp(", "vue"},
		{"__vue__", "vue"},
		{"__VUE__", "vue"},
		{"platformBrowser", "angular"},
		{"bootstrapApplication", "angular"},
		{"ng-version", "angular"},
		{"SvelteComponent", "svelte"},
		{"__svelte", "svelte"},
		{"svelte-", "svelte"},
		{"Ember.Application", "ember"},
		{"Backbone.View", "backbone"},
		{"ko.applyBindings", "knockout"},
		{"preact", "preact"},
		{"solid-js", "solid"},
		{"customElements.define", "web components"},
	}
	dataMarks  = []string{"fetch(", "XMLHttpRequest", "axios", "$.ajax", "$.get(", "getJSON", "EventSource", "WebSocket", "import("}
	buildMarks = []string{
		"innerHTML", "outerHTML", "insertAdjacentHTML", "createElement", "createElementNS", "document.write", "replaceChildren", "attachShadow", "createContextualFragment", "cloneNode",
		".append(", ".prepend(", "appendChild", ".html(", "location.href=", "location.replace", "location.assign",
	}
	// loaders are how analytics put their scripts into a page: they build nothing
	// that can be seen.
	loaders = regexp.MustCompile(`createElement\(\s*["'](script|iframe|img|link|style)["']\s*\)|insertBefore|[a-zA-Z$_]*\.?head\.appendChild|document\.body\.appendChild\(s\)`)
)

// Examined is what was found in a script.
type Examined struct {
	Verdict Verdict  `json:"v"`
	Marks   []string `json:"m,omitempty"` // the first that decided
	Size    int      `json:"n"`
}

// Examine looks for the marks of scripts that build pages.
func Examine(code []byte) Examined {
	e := Examined{Verdict: Inert, Size: len(code)}
	for _, m := range frameworkMarks {
		if bytes.Contains(code, []byte(m.mark)) {
			e.Verdict, e.Marks = App, []string{m.name}
			return e
		}
	}
	rest := loaders.ReplaceAll(code, nil)
	first := func(marks []string) string {
		for _, m := range marks {
			if bytes.Contains(rest, []byte(m)) {
				return m
			}
		}
		return ""
	}
	build := first(buildMarks)
	if build == "" {
		return e
	}
	e.Verdict, e.Marks = Builds, []string{build}
	if data := first(dataMarks); data != "" {
		e.Verdict, e.Marks = App, []string{data, build}
	}
	return e
}

// Keeper keeps small values; store.Store is one.
type Keeper interface {
	Get(ctx context.Context, name string) ([]byte, error)
	Put(ctx context.Context, name string, value []byte) error
}

// scripts is the table of scripts: by address, when it was fetched and what its
// checksum was; by checksum, what was found. A text that many addresses serve
// is examined once. It lives in the keeper, where each address and each checksum has one
// of 65,536 places, so that sites whose scripts have another address or text each time
// fill no disk; memory holds what was used lately.
type scripts struct {
	keep  Keeper
	group singleflight.Group

	mu    sync.Mutex
	known map[string]scriptLine // by address
	texts map[string]Examined   // by checksum

	fetched, examined int64 // since start
}

// scriptLine is one address in the table.
type scriptLine struct {
	Host    string    `json:"h"`
	URL     string    `json:"u"`
	Sum     string    `json:"c"` // "" for one that could not be had
	Fetched time.Time `json:"t"`
}

const (
	scriptAge    = 7 * 24 * time.Hour // an address is asked again after
	missingAge   = 24 * time.Hour     // one that could not be had
	knownScripts = 50_000             // held in memory
	maxScript    = 4 << 20            // bytes examined
)

func newScripts(k Keeper) *scripts {
	return &scripts{keep: k, known: map[string]scriptLine{}, texts: map[string]Examined{}}
}

// place is the name in the keeper of an address or checksum; others share it.
func place(table, s string) string { return "render/" + table + "/" + checksum16([]byte(s))[:4] }

// keptText is what the keeper has of a text.
type keptText struct {
	Sum string `json:"c"`
	Examined
}

func checksum16(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:16])
}

// examineInline examines the code that stands in a page, once per checksum.
func (s *scripts) examineInline(ctx context.Context, code []byte) (Examined, error) {
	if len(bytes.TrimSpace(code)) == 0 {
		return Examined{Verdict: Inert}, nil
	}
	return s.examineText(ctx, checksum16(code), code)
}

// examineText returns what is known of a checksum, or examines its text.
func (s *scripts) examineText(ctx context.Context, sum string, code []byte) (Examined, error) {
	s.mu.Lock()
	e, ok := s.texts[sum]
	s.mu.Unlock()
	if ok {
		return e, nil
	}
	name := place("text", sum)
	v, err := s.keep.Get(ctx, name)
	if err != nil {
		return e, err
	}
	var kept keptText
	if len(v) > 0 && json.Unmarshal(v, &kept) == nil && kept.Sum == sum {
		e = kept.Examined
	} else {
		if code == nil {
			return e, errUnknown
		}
		e = Examine(code[:min(len(code), maxScript)])
		b, err := json.Marshal(keptText{sum, e})
		if err == nil {
			err = s.keep.Put(ctx, name, b)
		}
		if err != nil {
			return e, err
		}
		s.mu.Lock()
		s.examined++
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.texts) >= knownScripts {
		clear(s.texts)
	}
	s.texts[sum] = e
	return e, nil
}

var errUnknown = fmt.Errorf("a checksum without its text")

// examineAddress returns what is known of the script at an address, fetching it if that is
// nothing or too old.
func (s *scripts) examineAddress(ctx context.Context, address string, fetchURL func(context.Context, weburl.URL) (*fetch.Response, error)) (Examined, error) {
	v, err, _ := s.group.Do(address, func() (any, error) {
		l, err := s.tableLine(ctx, address)
		if err != nil {
			return Examined{}, err
		}
		if l.URL != "" {
			if l.Sum == "" {
				return Examined{Verdict: Inert}, nil
			}
			e, err := s.examineText(ctx, l.Sum, nil)
			if err == nil || err != errUnknown {
				return e, err
			}
		}
		if fetchURL == nil {
			return Examined{Verdict: Inert}, errUnknown
		}
		return s.fetchScript(ctx, address, fetchURL)
	})
	e, _ := v.(Examined)
	return e, err
}

// tableLine returns the table's line of an address if it is young enough.
func (s *scripts) tableLine(ctx context.Context, address string) (scriptLine, error) {
	s.mu.Lock()
	l, ok := s.known[address]
	s.mu.Unlock()
	if !ok {
		v, err := s.keep.Get(ctx, place("script", address))
		if err != nil {
			return l, err
		}
		if len(v) > 0 && json.Unmarshal(v, &l) != nil {
			l = scriptLine{}
		}
		s.rememberLine(l)
	}
	age := scriptAge
	if l.Sum == "" {
		age = missingAge
	}
	if l.URL != address || time.Since(l.Fetched) > age {
		return scriptLine{}, nil
	}
	return l, nil
}

func (s *scripts) rememberLine(l scriptLine) {
	if l.URL == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= knownScripts {
		clear(s.known)
	}
	s.known[l.URL] = l
}

// fetchScript fetches a script and notes its checksum.
func (s *scripts) fetchScript(ctx context.Context, address string, fetchURL func(context.Context, weburl.URL) (*fetch.Response, error)) (Examined, error) {
	e := Examined{Verdict: Inert}
	u, err := weburl.Parse(address)
	if err != nil {
		return e, nil //nolint:nilerr // data: and blob: addresses: nothing to fetch
	}
	l := scriptLine{Host: u.Host(), URL: address, Fetched: time.Now()}
	res, err := fetchURL(ctx, u)
	for range 3 { // redirects
		if err != nil {
			break
		}
		to, ok := res.Location(u)
		if !ok {
			break
		}
		u = to
		res, err = fetchURL(ctx, u)
	}
	if ctx.Err() != nil {
		return e, ctx.Err()
	}
	if err == nil && res.Status == 200 && !strings.Contains(res.Header.Get("Content-Type"), "html") {
		l.Sum = checksum16(res.Body)
		if e, err = s.examineText(ctx, l.Sum, res.Body); err != nil {
			return e, err
		}
	}
	b, err := json.Marshal(l)
	if err != nil {
		return e, err
	}
	s.rememberLine(l)
	s.mu.Lock()
	s.fetched++
	s.mu.Unlock()
	return e, s.keep.Put(ctx, place("script", address), b)
}
