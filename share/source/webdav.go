package source

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// webDAV reads folders by PROPFIND (RFC 4918), files by ranged GET.
type webDAV struct{ *web }

func dialWebDAV(ctx context.Context, u *url.URL, o Options) (Source, error) {
	w, err := newWeb(ctx, u, o)
	if err != nil {
		return nil, err
	}
	return webDAV{w}, nil
}

const propfind = `<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/></prop></propfind>`

func (s webDAV) List(ctx context.Context, path string) ([]Entry, error) {
	var out []Entry
	err := s.ListEach(ctx, path, func(entries []Entry) error {
		out = append(out, entries...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ListEach implements Streamer.
func (s webDAV) ListEach(ctx context.Context, path string, f func([]Entry) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	resp, err := s.doRequest(ctx, "PROPFIND", folderPath(path), strings.NewReader(propfind), map[string]string{"Depth": "1", "Content-Type": "application/xml"})
	if err != nil {
		return wrapSourceError("list", path, s.blameForLoss(ctx, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMultiStatus {
		return wrapSourceError("list", path, fmt.Errorf("%w: HTTP status %d to PROPFIND: no WebDAV here", errProtocol, resp.StatusCode))
	}
	var ours error
	err = parseMultistatus(io.LimitReader(resp.Body, maxListing), resp.Request.URL, func(entries []Entry) error {
		ours = f(entries)
		return ours
	})
	if ours != nil {
		return ours
	}
	return wrapSourceError("list", path, err)
}

// davResponse is one entry of a multistatus answer.
type davResponse struct {
	Href     string `xml:"DAV: href"`
	Propstat []struct {
		Status string `xml:"DAV: status"`
		Prop   struct {
			Type struct {
				Collection *struct{} `xml:"DAV: collection"`
			} `xml:"DAV: resourcetype"`
			Length   string `xml:"DAV: getcontentlength"`
			Modified string `xml:"DAV: getlastmodified"`
		} `xml:"DAV: prop"`
	} `xml:"DAV: propstat"`
}

// parseMultistatus reads the answer to a PROPFIND of the folder at self, and calls f
// for its entries, piece by piece. An answer without its end is an error.
func parseMultistatus(r io.Reader, self *url.URL, f func([]Entry) error) error {
	responses := &boundedResponses{r: r}
	d := xml.NewDecoder(responses)
	var out []Entry
	complete := false
	for {
		tok, err := d.Token()
		if err == io.EOF {
			if !complete {
				return fmt.Errorf("%w: the answer breaks off", errLost)
			}
			return f(out)
		}
		if err != nil {
			if strings.Contains(err.Error(), "unexpected EOF") {
				return fmt.Errorf("%w: the answer breaks off: %w", errLost, err)
			}
			return fmt.Errorf("%w: %w", errProtocol, err)
		}
		switch t := tok.(type) {
		case xml.EndElement:
			complete = complete || t.Name.Local == "multistatus"
		case xml.StartElement:
			if t.Name.Space != "DAV:" || t.Name.Local != "response" {
				continue
			}
			var resp davResponse
			if err := d.DecodeElement(&resp, &t); err != nil {
				return fmt.Errorf("%w: %w", errProtocol, err)
			}
			responses.n = 0
			if e, ok := resp.toEntry(self); ok {
				out = append(out, e)
			}
			if len(out) == listingPiece {
				if err := f(out); err != nil {
					return err
				}
				out = nil
			}
		}
	}
}

// boundedResponses fails where one response is longer than maxResponse: the decoder
// gathers it in memory.
type boundedResponses struct {
	r io.Reader
	n int // bytes read since the last response
}

const maxResponse = 1 << 20

func (b *boundedResponses) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.n += n; b.n > maxResponse && err == nil {
		err = fmt.Errorf("an entry of more than %d bytes", maxResponse)
	}
	return n, err
}

// toEntry makes an Entry of a response; ok is false for the folder itself and for
// what lies elsewhere.
func (r *davResponse) toEntry(self *url.URL) (e Entry, ok bool) {
	ref, err := url.Parse(r.Href)
	if err != nil {
		return e, false
	}
	dir := strings.TrimSuffix(self.Path, "/") + "/"
	name, found := strings.CutPrefix(self.ResolveReference(ref).Path, dir)
	name = strings.TrimSuffix(name, "/")
	if !found || name == "" || strings.Contains(name, "/") {
		return e, false
	}
	e.Name = name
	for i := range r.Propstat {
		ps := &r.Propstat[i]
		if ps.Status != "" && !strings.Contains(ps.Status, " 200") {
			continue
		}
		if ps.Prop.Type.Collection != nil {
			e.Dir = true
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(ps.Prop.Length), 10, 64); err == nil && n >= 0 {
			e.Size = n
		}
		if t, err := http.ParseTime(strings.TrimSpace(ps.Prop.Modified)); err == nil {
			e.Modified = t.Unix()
		}
	}
	if e.Dir {
		e.Size = 0
	}
	return e, true
}
