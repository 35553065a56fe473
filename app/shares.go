package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/index/engine"
	"github.com/freshet/freshet/index/files"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
	"github.com/freshet/freshet/share/state"
	"github.com/freshet/freshet/weburl"
)

// Shares are the files of shares: their store, and the index that follows it.
type Shares struct {
	Store *state.Store
	Index *files.Index // nil for a scan alone
	Dir   string       // the data directory
}

// OpenShares opens the shares of a data directory, or returns nil where there
// are none and none are wanted.
func OpenShares(ctx context.Context, dir string, wanted bool, log *slog.Logger) (*Shares, error) {
	if _, err := os.Stat(filepath.Join(dir, sharesDir)); err != nil && !wanted {
		return nil, nil
	}
	s, err := OpenShareStore(dir)
	if err != nil {
		return nil, err
	}
	x, err := openNames(dir, log)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	shares := &Shares{s, x, dir}
	if err := x.Follow(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("shares: bring the index in step: %w", err), shares.Close())
	}
	return shares, nil
}

// sharesDir is the folder of the shares in the data directory.
const sharesDir = "shares"

// OpenShareStore opens the store of shares of a data directory, making it if it is
// missing. It keeps a journal of changes for the index, which may follow later.
func OpenShareStore(dir string) (*state.Store, error) {
	dir = filepath.Join(dir, sharesDir)
	if err := makeDataDir(dir); err != nil {
		return nil, fmt.Errorf("shares: %w", err)
	}
	s, err := state.Open(dir, state.Config{Journal: true})
	return s, explain(err)
}

// openNames opens the index of the files of shares. A damaged one, or one of another
// version, is emptied: it is filled again from the store.
func openNames(dir string, log *slog.Logger) (*files.Index, error) {
	x, err := OpenNames(dir, log)
	if errors.Is(err, engine.ErrDamaged) || errors.Is(err, engine.ErrVersion) {
		log.Warn("the index of files is built again from the store of shares", "err", err)
		if err := ResetNames(dir); err != nil {
			return nil, err
		}
		x, err = OpenNames(dir, log)
	}
	return x, err
}

func namesDir(dir string) string { return filepath.Join(dir, "names") }

// HasNames reports whether a data directory has an index of the files of shares.
func HasNames(dir string) bool {
	_, err := os.Stat(namesDir(dir))
	return err == nil
}

// OpenNames opens the index of the files of shares as it is.
func OpenNames(dir string, log *slog.Logger) (*files.Index, error) {
	x, err := files.Open(namesDir(dir), files.Config{Log: log})
	if err != nil {
		return nil, explain(err)
	}
	return x, nil
}

// ResetNames empties the index of the files of shares.
func ResetNames(dir string) error { return explain(files.Reset(namesDir(dir))) }

// Close closes index and store.
func (s *Shares) Close() error {
	var err error
	if s.Index != nil {
		err = s.Index.Close()
	}
	return errors.Join(err, s.Store.Close())
}

// newShareRobot makes the robot of the configured shares.
func newShareRobot(ctx context.Context, c *config.Config, s *Shares, pdf *pdftext.Pool, log *slog.Logger) (*share.Robot, error) {
	var known *media.Knowledge
	if c.Share.Knowledge != "" {
		var err error
		if known, err = media.LoadKnowledge(c.Share.Knowledge); err != nil {
			return nil, fmt.Errorf("share.knowledge: %w", err)
		}
	}
	var sink share.Sink
	if s.Index != nil {
		sink = s.Index
	}
	return share.New(ctx, s.Store, sink, share.Config{
		PDF: pdf, Source: source.Options{Timeout: c.Share.Timeout}, Knowledge: known, Policy: share.Policy(c.Share.Policy),
		Robots: c.Share.Robots, Bound: part.Bound{Time: c.Share.PartTime, Bytes: int64(c.Share.PartMemory)}, Media: c.Share.Media, ForgetAfter: c.Share.ForgetAfter, Log: log, TempDir: s.Dir,
	})
}

// specOf is a source with its credentials, as the share robot reads it.
func specOf(s config.Source) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil || s.User == "" && s.Password == "" && s.PasswordFile == "" {
		return s.URL, nil // ranges and lists are no URLs; the robot checks them
	}
	password, err := passwordOf(&s, u.Hostname())
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(s.User, password)
	return u.String(), nil
}

// sourceOptions are the options that a share is read with.
func sourceOptions(s *config.Source, timeout time.Duration) (source.Options, error) {
	o := source.Options{Timeout: timeout, HostKeys: []byte(strings.Join(s.HostKeys, "\n")), KnownHosts: s.KnownHosts, TrustRange: s.TrustRange}
	if s.KeyFile != "" {
		key, err := os.ReadFile(s.KeyFile)
		if err != nil {
			return o, fmt.Errorf("source %s: key_file: %w", weburl.Redact(s.URL), err)
		}
		o.Key = key
	}
	return o, nil
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
		out = append(out, console.ShareStatus{Host: h.Name, State: state, Files: h.Files, Parts: int64(h.Parts), LastScan: h.Seen, Error: reasonsOf(&h)})
	}
	return out
}

// reasonsOf tells why a host is offline, else what could not be read there since the
// start, by reason.
func reasonsOf(h *share.HostStatus) string {
	if h.Reason != "" {
		return h.Reason
	}
	if h.Error != "" {
		return h.Error
	}
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(h.Errors)) {
		out = append(out, fmt.Sprintf("%s: %d", reason, h.Errors[reason]))
	}
	return strings.Join(out, ", ")
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

// play streams audio or video of a share to the browser, in the ranges that it asks
// for. Only files that the index has can be asked for, on hosts that a source names,
// with that host's own login.
func (n *Node) play(w http.ResponseWriter, r *http.Request) {
	host, name := r.URL.Query().Get("host"), r.URL.Query().Get("path")
	ctx := r.Context()
	f := share.File{Host: host, Path: name}
	known := false
	err := n.shares.Store.Files(ctx, host, f.Key(), f.Key()+"\x00", func(_ string, got *share.File) error {
		known, f = got.Path == name, *got
		return nil
	})
	u, options, named := n.files.Address(host)
	if err != nil || !known || !named {
		http.Error(w, "There is no such file in the index.", http.StatusNotFound)
		return
	}
	if k := f.Kind(); k != media.Audio && k != media.Video {
		http.Error(w, "Only audio and video are played. Open the file at its share.", http.StatusForbidden)
		return
	}
	src, err := source.Dial(ctx, u, options)
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
	h := w.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; media-src 'self'")
	h.Set("X-Content-Type-Options", "nosniff")
	kind := mime.TypeByExtension(path.Ext(name))
	if !strings.HasPrefix(kind, "audio/") && !strings.HasPrefix(kind, "video/") {
		kind = "application/octet-stream"
	}
	h.Set("Content-Type", kind)
	http.ServeContent(w, r, path.Base(name), time.Unix(f.Modified, 0), io.NewSectionReader(file, 0, file.Size()))
}
