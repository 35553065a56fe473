package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/signal"
	"github.com/freshet/freshet/weburl"
)

// newWebSub returns the subscriber of the configured topics, nil without any.
func (n *Node) newWebSub(c *config.Config) (*signal.WebSub, error) {
	if len(c.Signals.Topics) == 0 {
		return nil, nil
	}
	base, err := url.Parse(c.Signals.Callback)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("signals.callback: %q is no address under which hubs reach this server, such as https://search.example.org", c.Signals.Callback)
	}
	for _, t := range c.Signals.Topics {
		if _, err := weburl.Parse(t); err != nil {
			return nil, fmt.Errorf("signals.topics: %s: %w", t, err)
		}
	}
	return &signal.WebSub{
		Topics: c.Signals.Topics, Callback: strings.TrimSuffix(base.String(), "/") + "/websub/", Hubs: newHubs(n.client, n.permitsURL), Sink: n, Log: n.log,
		Pages: func(body []byte, topic string) []string {
			u, err := weburl.Parse(topic)
			if err != nil {
				return nil
			}
			entries, _ := extract.Entries(body, u) // no feed: the topic itself is enough
			out := make([]string, 0, len(entries))
			for _, e := range entries {
				out = append(out, e.URL.String())
			}
			return out
		},
	}, nil
}

// hubs discovers and asks hubs with the robot's client and its check of
// addresses.
type hubs struct {
	client  *fetch.Client
	permits func(weburl.URL) bool // private addresses
	post    *http.Client
}

func newHubs(c *fetch.Client, permits func(weburl.URL) bool) *hubs {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, _, err := c.Dial(ctx, network, address)
		return conn, err
	}
	return &hubs{c, permits, &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dial, MaxIdleConns: 4, IdleConnTimeout: time.Minute}}}
}

// Discover implements signal.Hubs.
func (h *hubs) Discover(ctx context.Context, topic string) (found []string, self string, err error) {
	u, err := weburl.Parse(topic)
	if err != nil {
		return nil, "", err
	}
	res, err := h.client.Get(ctx, fetch.Request{URL: u, Private: h.permits(u)})
	if err != nil {
		return nil, "", err
	}
	if res.Status != http.StatusOK {
		return nil, "", fmt.Errorf("%s: status %d", topic, res.Status)
	}
	add := func(rel, href string) {
		to, err := u.Resolve(href)
		if err != nil {
			return
		}
		for r := range strings.FieldsSeq(strings.ToLower(rel)) {
			switch r {
			case "hub":
				found = append(found, to.String())
			case "self":
				if self == "" {
					self = to.String()
				}
			}
		}
	}
	for _, v := range res.Header.Values("Link") {
		for part := range strings.SplitSeq(v, ",") {
			target, params, ok := strings.Cut(strings.TrimSpace(part), ">")
			_, rel, has := strings.Cut(params, "rel=")
			if ok && has && strings.HasPrefix(target, "<") {
				rel, _, _ = strings.Cut(rel, ";")
				add(strings.Trim(rel, `" `), target[1:])
			}
		}
	}
	if len(found) == 0 {
		documentLinks(res.Body, add)
	}
	return found, self, nil
}

// documentLinks reads the link elements of HTML and of feeds (link, atom:link).
func documentLinks(body []byte, add func(rel, href string)) {
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(1 << 20)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.Data != "link" && !strings.HasSuffix(t.Data, ":link") {
				continue
			}
			var rel, href string
			for _, a := range t.Attr {
				switch a.Key {
				case "rel":
					rel = a.Val
				case "href":
					href = a.Val
				}
			}
			add(rel, href)
		}
	}
}

// Subscribe implements signal.Hubs.
func (h *hubs) Subscribe(ctx context.Context, hub string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hub, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := h.post.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	why, _ := io.ReadAll(io.LimitReader(res.Body, 300))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s: %s", hub, res.Status, bytes.TrimSpace(why))
	}
	return nil
}
