// Package console is the face of a running freshet: the search page for
// everybody, the status page and the controls for the operator, and the JSON
// API for programs. It holds no state of its own beyond sessions; what it shows
// and does comes through two small interfaces, Finder and Operator.
//
// The pages are html/template and one style sheet, embedded; they work without
// JavaScript and without the internet. The status page follows the robot by
// server-sent events where JavaScript runs and refreshes itself where not.
//
// Who may do what: searching is open unless Config.Private. On a server without
// login, which listens on loopback only, everybody there may read the status, and
// the owner of the data directory, known by a token in it, may change things. Where
// there is a login (password, bearer token, or the header of an authenticating
// proxy) operators alone see the status and change things. State-changing requests
// from foreign pages are refused (http.CrossOriginProtection), and so is every
// host name that is not the server's, so that a foreign name that resolves to its
// address cannot reach it.
package console

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/internal/ratelimit"
)

// Finder answers searches.
type Finder interface {
	// Find returns one page of results for a query as the user typed it.
	Find(ctx context.Context, r Request) (*Results, error)
}

// Request is one page of results asked for.
type Request struct {
	Query         string // in the language of index/query
	Kind          string // "" for all
	Limit, Offset int
	ByDate        bool
	Facets        bool
}

// Results is one page of results.
type Results struct {
	Total     int
	Estimated bool // Total is about right: not every match was looked at
	Results   []Result
	Facets    map[string][]index.Count
	Elapsed   time.Duration
}

// Result is one thing found.
type Result struct {
	Title   string
	URL     string
	Kind    string // web, file, audio, video, image, document, ...
	Type    string
	Host    string
	Lang    string
	Snippet index.Snippet
	Score   float64
	Date    time.Time
	Size    int64
	Online  bool
	Cached  bool     // GET /cached?url= shows our copy
	Play    string   // address where the browser can play it, or ""
	Facts   []string // short things worth saying: 3:05, 320 kbit/s, 1080p
	Copies  []Copy
}

// Copy is another place of the same thing.
type Copy struct {
	URL    string   `json:"url"`
	Host   string   `json:"host"`
	Online bool     `json:"online"`
	Facts  []string `json:"facts,omitempty"`
}

// Cacher returns our copy of a page.
type Cacher interface {
	// Cached returns the body of the page as it was fetched last, its content
	// type and the time, or an error that is fs.ErrNotExist.
	Cached(ctx context.Context, url string) (*Copied, error)
}

// Copied is a page as it was fetched.
type Copied struct {
	URL         string
	ContentType string
	Body        []byte
	Fetched     time.Time
}

// Operator is the running robot.
type Operator interface {
	// Status tells how things stand; it is called about once a second for each
	// open status page and must be cheap.
	Status(ctx context.Context) (*Status, error)
	// SetAgents changes how many agents fetch and render; nil keeps the number.
	SetAgents(ctx context.Context, fetch, render *int) error
	// AddSource takes a further web site or share from now on.
	AddSource(ctx context.Context, s Source) error
	// RemoveSource takes back a web site that was added while the process ran.
	// Its pages are visited no more; with keep they stay in the index.
	RemoveSource(ctx context.Context, url string, keep bool) error
	// Pause stops new work and lets running work finish; Resume goes on.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Stop ends the process, at once or after running work is finished.
	Stop(ctx context.Context, drain bool) error
	// SetThrottle changes the thresholds of the agents' controller.
	SetThrottle(ctx context.Context, thresholds, modes []int) error
	// Why tells what is known of a page; ErrUnknown where nothing is.
	Why(ctx context.Context, url string) (*Why, error)
	// Ready is nil when the process can do its work.
	Ready(ctx context.Context) error
}

// Kinds are what a search may be limited to; "" is everything, "file" whatever
// lies on shares.
var Kinds = []string{"", "web", "file", "audio", "video", "image", "document", "archive", "program", "other"}

// Source is a site or share to keep fresh.
type Source struct {
	URL   string `json:"url"`
	Scope string `json:"scope,omitempty"`
	Depth int    `json:"depth,omitempty"`
	// Added says that it was added while the process ran, so that it can be removed.
	Added bool `json:"added,omitempty"`
}

// Config are the options of a Server.
type Config struct {
	Title    string   // on the search page
	Listen   string   // address:port that is listened on
	Password string   // bcrypt hash; "" is no password
	Tokens   []string // bearer tokens of operators' programs, of 16 bytes at least
	// OwnerToken is the bearer token of who owns the data directory.
	OwnerToken string
	Header     string   // header of a trusted proxy that names the user
	Operators  []string // users in Header that are operators; "*" is all
	Proxies    []string // addresses or networks of trusted proxies
	Hosts      []string // further host names that the server answers to; "*" is all
	// Addresses are URLs under which others reach the server; their hosts count
	// as Hosts. PublicURL, if not empty, is the one for browsers.
	Addresses []string
	PublicURL string
	Private   bool    // searching needs a login
	Rate      float64 // searches a second and client; 0 is no limit
	// Media plays files of shares at GET /play; nil plays nothing. Who may search
	// may play.
	Media http.HandlerFunc
	// Lab shows computations of the lab at /lab; nil has no such page.
	Lab Lab
	// Clicked is told which results of searches browsers opened; nil is not.
	Clicked func(url string)
}

// Server serves the pages and the API.
type Server struct {
	config   Config
	finder   Finder
	operator Operator
	cacher   Cacher
	log      *slog.Logger
	auth     *auth
	rate     *ratelimit.Limiter
	searches *searchGate
	streams  chan struct{} // live pages that are open
	pages    *template.Template
	key      []byte // of links through this server
	extra    map[string]http.Handler
}

//go:embed page
var files embed.FS

// New makes a server. cacher may be nil. extra mounts further handlers by
// pattern (metrics, receivers of signals); they authenticate for themselves.
func New(c Config, finder Finder, operator Operator, cacher Cacher, log *slog.Logger, extra map[string]http.Handler) (*Server, error) {
	a, err := newAuth(c)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	pages, err := template.New("").Funcs(functions).ParseFS(files, "page/*.html")
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	if c.Title == "" {
		c.Title = "Freshet"
	}
	return &Server{config: c, finder: finder, operator: operator, cacher: cacher, log: log, auth: a, rate: newLimiter(c.Rate), searches: newSearchGate(), streams: make(chan struct{}, maxStreams), pages: pages, key: newKey(), extra: extra}, nil
}

// Handler returns everything under one handler.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", s.openToSearch(s.searchPage))
	mux.Handle("GET /cached", s.openToSearch(s.cachedPage))
	if s.config.Clicked != nil {
		mux.Handle("POST /clicked", s.openToSearch(s.handleClicked))
		mux.Handle("GET /open", s.openToSearch(s.handleOpened))
	}
	if s.config.Media != nil {
		mux.Handle("GET /play", s.openToSearch(longLived(s.config.Media)))
	}
	mux.HandleFunc("GET /style.css", s.serveAsset)
	mux.HandleFunc("GET /status.js", s.serveAsset)
	mux.HandleFunc("GET /favicon.ico", s.serveAsset)
	mux.HandleFunc("GET /favicon.svg", s.serveAsset)
	mux.HandleFunc("GET /robots.txt", s.serveAsset)
	mux.HandleFunc("GET /login", s.loginPage)
	mux.HandleFunc("GET /login/link", s.loginByLink)
	mux.Handle("POST /api/login-link", s.operatorOnly(s.apiLoginLink))
	mux.HandleFunc("POST /login", s.handleLogin)
	mux.HandleFunc("POST /logout", s.handleLogout)
	mux.Handle("GET /status", s.operatorReads(s.statusPage))
	mux.Handle("GET /events", s.operatorReads(longLived(s.streamStatus)))
	mux.Handle("POST /control", s.operatorOnly(s.controlForm))
	if s.config.Lab != nil {
		mux.Handle("GET /lab", s.operatorReads(s.labPage))
		mux.Handle("GET /lab/events", s.operatorReads(longLived(s.labEvents)))
		mux.Handle("POST /lab", s.operatorOnly(s.labForm))
		mux.Handle("GET /lab/report", s.operatorReads(s.labReport))
	} else {
		mux.Handle("GET /lab", s.operatorReads(s.noLab))
	}
	mux.Handle("GET /api/search", s.openToSearch(s.apiSearch))
	mux.HandleFunc("GET /api/openapi.json", s.serveAsset)
	mux.Handle("GET /api/status", s.operatorReads(s.apiStatus))
	mux.Handle("GET /api/agents", s.operatorReads(s.apiAgents))
	mux.Handle("PUT /api/agents", s.operatorOnly(s.apiSetAgents))
	mux.Handle("PUT /api/throttle", s.operatorOnly(s.apiSetThrottle))
	mux.Handle("GET /api/why", s.operatorReads(s.apiWhy))
	mux.Handle("GET /api/sources", s.operatorReads(s.apiSources))
	mux.Handle("POST /api/sources", s.operatorOnly(s.apiAddSource))
	mux.Handle("DELETE /api/sources", s.operatorOnly(s.apiRemoveSource))
	mux.Handle("POST /api/pause", s.operatorOnly(s.apiAct(func(ctx context.Context, _ *http.Request) error { return s.operator.Pause(ctx) })))
	mux.Handle("POST /api/resume", s.operatorOnly(s.apiAct(func(ctx context.Context, _ *http.Request) error { return s.operator.Resume(ctx) })))
	mux.Handle("POST /api/stop", s.operatorOnly(s.apiAct(func(ctx context.Context, r *http.Request) error {
		return s.operator.Stop(ctx, r.URL.Query().Get("now") == "")
	})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.handleReady)
	for pattern, h := range s.extra {
		mux.Handle(pattern, h)
	}
	return s.protectHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" && r.Method == http.MethodGet && isReader(r) {
			s.handleUnknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

func (s *Server) handleReady(w http.ResponseWriter, r *http.Request) {
	if err := s.operator.Ready(r.Context()); err != nil {
		s.log.Warn("not ready", "err", err)
		http.Error(w, "not ready; the log and the status page say why", http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ready")
}

// serveAsset serves an embedded file by the last element of its path.
func (s *Server) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[len("/"):]
	switch name {
	case "api/openapi.json":
		name = "openapi.json"
	case "favicon.ico": // browsers take any kind of image there
		name = "favicon.svg"
	}
	w.Header().Set("Cache-Control", "max-age=3600")
	http.ServeFileFS(w, r, files, "page/"+name)
}
