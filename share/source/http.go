package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// overHTTP reads the directory indexes of web servers: nginx (HTML and JSON),
// Apache, and others that link each name once. Times there have minutes, sizes in
// HTML may be rounded.
type overHTTP struct{ *web }

func dialHTTP(ctx context.Context, u *url.URL, o Options) (Source, error) {
	w, err := newWeb(ctx, u, o)
	if err != nil {
		return nil, err
	}
	return overHTTP{w}, nil
}

func (s overHTTP) List(ctx context.Context, path string) ([]Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	resp, err := s.doRequest(ctx, http.MethodGet, folderPath(path), nil, map[string]string{"Accept": "application/json, text/html;q=0.9"})
	if err != nil {
		return nil, wrapSourceError("list", path, err)
	}
	defer resp.Body.Close()
	limited := &io.LimitedReader{R: resp.Body, N: maxIndex + 1}
	var out []Entry
	switch kind := resp.Header.Get("Content-Type"); {
	case strings.Contains(kind, "json"):
		out, err = parseJSONIndex(limited)
	case strings.Contains(kind, "html"):
		var body []byte
		if body, err = io.ReadAll(limited); err == nil {
			out, err = parseHTMLIndex(body, resp.Request.URL)
		}
	default:
		err = fmt.Errorf("%w: %q is no directory index", errProtocol, kind)
	}
	if limited.N <= 0 {
		out, err = nil, fmt.Errorf("%w: a listing of more than %d bytes", errProtocol, maxIndex)
	}
	return out, wrapSourceError("list", path, err)
}

// maxIndex bounds the bytes of a directory index: a million files fit.
const maxIndex = 128 << 20

// parseJSONIndex reads nginx's autoindex_format json.
func parseJSONIndex(body io.Reader) ([]Entry, error) {
	d := json.NewDecoder(body)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, indexError(err)
	}
	var out []Entry
	for d.More() {
		var n struct {
			Name, Type, Mtime string
			Size              int64
		}
		if err := d.Decode(&n); err != nil {
			return nil, indexError(err)
		}
		if n.Name == "" {
			continue
		}
		e := Entry{Name: n.Name, Dir: n.Type == "directory", Size: n.Size}
		if t, err := http.ParseTime(n.Mtime); err == nil {
			e.Modified = t.Unix()
		}
		out = append(out, e)
	}
	if _, err := d.Token(); err != nil {
		return nil, indexError(err)
	}
	return out, nil
}

// indexError classes an error of the decoder; nil is for JSON that is no list.
func indexError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil, errors.As(err, &syntax), errors.As(err, &kind):
		return fmt.Errorf("%w: directory index: %v", errProtocol, err) //nolint:errorlint // it is of the protocol
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the index breaks off", errLost)
	}
	return err // of the connection
}

var errNoIndex = errors.New("the page is no directory index")

// looksLikeIndex is the title that nginx, Apache, lighttpd, Python and Caddy give
// their indexes. A page without it is content: taking its links for files would
// remove the files that were there.
var looksLikeIndex = regexp.MustCompile(`(?i)<title>\s*(index of|directory listing)|<h1>\s*(index of|directory listing)`)

// parseHTMLIndex reads an index page at self: every link to a name directly below
// it, with the date and size in the text behind the link.
func parseHTMLIndex(body []byte, self *url.URL) ([]Entry, error) {
	if !looksLikeIndex.Match(body) {
		return nil, fmt.Errorf("%w: %w", errProtocol, errNoIndex)
	}
	if !bytes.Contains(bytes.ToLower(body[max(0, len(body)-4096):]), []byte("</html>")) {
		return nil, fmt.Errorf("%w: the index breaks off", errLost)
	}
	dir := strings.TrimSuffix(self.Path, "/") + "/"
	z := html.NewTokenizer(bytes.NewReader(body))
	var out []Entry
	seen := map[string]bool{}
	var text strings.Builder // since the last link
	done := func() {
		if len(out) > 0 {
			parseIndexText(&out[len(out)-1], text.String())
		}
		text.Reset()
	}
	open := false // the texts belong to a link that counts
	for {
		switch z.Next() {
		case html.ErrorToken:
			if open {
				done()
			}
			return out, nil
		case html.TextToken:
			if text.Len() < 4096 {
				text.Write(z.Text())
				text.WriteByte(' ')
			}
		case html.StartTagToken:
			name, attr := z.TagName()
			if string(name) != "a" || !attr {
				continue
			}
			n, isDir, ok := linkName(z, self, dir)
			if !ok || seen[n] {
				continue
			}
			if open {
				done()
			}
			text.Reset()
			seen[n], open = true, true
			out = append(out, Entry{Name: n, Dir: isDir})
		}
	}
}

// linkName returns the name below dir that the anchor on z links to.
func linkName(z *html.Tokenizer, self *url.URL, dir string) (name string, isDir, ok bool) {
	for {
		k, v, more := z.TagAttr()
		if string(k) == "href" {
			ref, err := url.Parse(string(v))
			if err != nil || ref.RawQuery != "" {
				return "", false, false // Apache's ?C=N;O=D sorts columns
			}
			u := self.ResolveReference(ref)
			rest, found := strings.CutPrefix(u.Path, dir)
			name = strings.TrimSuffix(rest, "/")
			ok = found && u.Host == self.Host && name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
			return name, name != rest, ok
		}
		if !more {
			return "", false, false
		}
	}
}

var (
	indexDate = regexp.MustCompile(`(\d{2}-[A-Z][a-z]{2}-\d{4} \d{2}:\d{2}|\d{4}-\d{2}-\d{2} \d{2}:\d{2})(?::\d{2})?`)
	indexSize = regexp.MustCompile(`^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\b`)
)

// parseIndexText takes date and size from the text behind a link.
func parseIndexText(e *Entry, text string) {
	at := indexDate.FindStringSubmatchIndex(text)
	if at == nil {
		return
	}
	date := text[at[2]:at[3]]
	for _, layout := range []string{"02-Jan-2006 15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, date); err == nil {
			e.Modified = t.Unix()
		}
	}
	if m := indexSize.FindStringSubmatch(text[at[1]:]); m != nil && !e.Dir {
		if v, err := strconv.ParseFloat(m[1], 64); err == nil && v < 1<<50 {
			e.Size = int64(v * map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[m[2]])
		}
	}
}
