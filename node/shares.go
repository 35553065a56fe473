package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/index/files"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
	"github.com/freshet/freshet/share/state"
)

// Shares are the files of shares: their store, and the index over it in memory.
type Shares struct {
	Store *state.Store
	Index *files.Index
}

// OpenShares opens the shares of a data directory, or returns nil where there
// are none and none are wanted.
func OpenShares(ctx context.Context, dir string, wanted bool) (*Shares, error) {
	dir = filepath.Join(dir, "shares")
	if _, err := os.Stat(dir); err != nil {
		if !wanted {
			return nil, nil
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("shares: %w", err)
		}
	}
	s, err := state.Open(dir, state.Config{})
	if err != nil {
		return nil, explain(err)
	}
	x := files.New()
	if err := x.Load(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("shares: load the index: %w", err), s.Close())
	}
	return &Shares{s, x}, nil
}

// newShareRobot makes the robot of the configured shares.
func newShareRobot(ctx context.Context, c *config.Config, s *Shares, log *slog.Logger) (*share.Robot, error) {
	var known *media.Knowledge
	if c.Share.Knowledge != "" {
		var err error
		if known, err = media.LoadKnowledge(c.Share.Knowledge); err != nil {
			return nil, fmt.Errorf("share.knowledge: %w", err)
		}
	}
	return share.New(ctx, s.Store, s.Index, share.Config{
		Knowledge: known, Policy: share.Policy(c.Share.Policy),
		Robots: c.Share.Robots, Bound: part.Bound{Time: c.Share.PartTime, Bytes: int64(c.Share.PartMemory)}, Media: c.Share.Media, ForgetAfter: c.Share.ForgetAfter, Log: log,
	})
}

// specOf is a source with its credentials, as the share robot reads it. A
// password may stand in $FRESHET_SHARE_PASSWORD_<HOST>, the host's name in
// capitals with _ for all but letters and digits.
func specOf(s config.Source) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil || (s.User == "" && s.Password == "") {
		return s.URL, nil // ranges and lists are no URLs; the robot checks them
	}
	password := s.Password
	if password == "" {
		password = os.Getenv("FRESHET_SHARE_PASSWORD_" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 'A'
			}
			if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
				return r
			}
			return '_'
		}, u.Hostname()))
	}
	u.User = url.UserPassword(s.User, password)
	return u.String(), nil
}

// statusOf tells of the hosts with shares.
func statusOf(r *share.Robot) []console.ShareStatus {
	if r == nil {
		return nil
	}
	var out []console.ShareStatus
	for _, h := range r.Status().Hosts {
		state := "online"
		switch {
		case h.Scanning:
			state = "scanning"
		case !h.Online:
			state = "offline"
		}
		out = append(out, console.ShareStatus{Host: h.Name, State: state, Files: h.Files, Parts: int64(h.Parts), LastScan: h.Seen, Error: h.Error})
	}
	return out
}

// fileResult makes a result of a title and its copies.
func fileResult(h *files.Hit, play bool) console.Result {
	best := &h.Copies[0]
	out := console.Result{
		Title: h.Title, URL: best.URL, Kind: string(h.Kind), Type: strings.TrimPrefix(strings.ToLower(path.Ext(best.Name)), "."), Host: best.Host,
		Score: h.Score, Date: best.Modified, Size: best.Size, Online: h.Online, Snippet: []string{best.Path}, Facts: facts(best),
	}
	if h.Media.Artist != "" && !strings.Contains(h.Title, h.Media.Artist) {
		out.Title = h.Media.Artist + " – " + out.Title
	}
	for _, f := range []string{h.Media.Album, h.Media.Genre} {
		if f != "" {
			out.Facts = append(out.Facts, f)
		}
	}
	if h.Media.Year > 0 {
		out.Facts = append(out.Facts, fmt.Sprint(h.Media.Year))
	}
	if best.UNC != "" {
		out.Facts = append(out.Facts, best.UNC)
	}
	if play && best.Online && (h.Kind == "audio" || h.Kind == "video") {
		out.Play = "/play?" + url.Values{"host": {best.Host}, "path": {best.Path}}.Encode()
	}
	for i := range h.Copies[1:] {
		c := &h.Copies[i+1]
		out.Copies = append(out.Copies, console.Copy{URL: c.URL, Host: c.Host, Online: c.Online, Facts: facts(c)})
	}
	return out
}

func facts(c *files.Copy) []string {
	var out []string
	if c.Duration > 0 {
		s := int(c.Duration.Seconds())
		out = append(out, fmt.Sprintf("%d:%02d", s/60, s%60))
	}
	if c.BitRate > 0 {
		out = append(out, fmt.Sprintf("%d kbit/s", c.BitRate/1000))
	}
	if c.Width > 0 {
		out = append(out, fmt.Sprintf("%d×%d", c.Width, c.Height))
	}
	return out
}

// play streams a file of a share to the browser, in the ranges that it asks
// for. Only files that the index has can be asked for, so that it is no way
// into the rest of a host.
func (n *Node) play(w http.ResponseWriter, r *http.Request) {
	host, name := r.URL.Query().Get("host"), r.URL.Query().Get("path")
	ctx := r.Context()
	f := share.File{Host: host, Path: name}
	known := false
	err := n.shares.Store.Files(ctx, host, f.Key(), f.Key()+"\x00", func(_ string, got *share.File) error {
		known, f = true, *got
		return nil
	})
	if err != nil || !known {
		http.Error(w, "There is no such file in the index.", http.StatusNotFound)
		return
	}
	spec := host
	for _, s := range n.config.Sources {
		if s.Share() && strings.HasPrefix(host, s.URL) {
			if spec, err = specOf(config.Source{URL: host, User: s.User, Password: s.Password}); err != nil {
				spec = host
			}
		}
	}
	u, err := url.Parse(spec)
	if err != nil {
		http.Error(w, "The host's address cannot be read.", http.StatusInternalServerError)
		return
	}
	src, err := source.Dial(ctx, u, source.Options{})
	if err != nil {
		n.log.Warn("play", "host", host, "err", err)
		http.Error(w, "The host does not answer.", http.StatusBadGateway)
		return
	}
	defer src.Close()
	file, err := src.Open(ctx, name)
	if err != nil {
		n.log.Warn("play", "host", host, "path", name, "err", err)
		http.Error(w, "The file cannot be opened.", http.StatusBadGateway)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; media-src 'self'")
	http.ServeContent(w, r, path.Base(name), time.Unix(f.Modified, 0), io.NewSectionReader(file, 0, file.Size()))
}
