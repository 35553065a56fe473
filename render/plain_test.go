package render

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/freshet/freshet/fetch"
)

// A site that is served by HTTP at the usual port, and not by HTTPS, is seen as it
// is: browsers would ask for it by HTTPS, and the robot's copy of the page, given
// to them as that, would have links that lead nowhere and scripts that load nothing.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var d net.Dialer
	client, err := fetch.New(fetch.Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if !strings.HasSuffix(address, ":80") {
			address = "127.0.0.1:1" // nobody listens
		} else {
			address = s.Listener.Addr().String()
		}
		return d.DialContext(ctx, network, address)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	remote, _ := chromiumAt(t)
	for _, pool := range []*Pool{newPool(t, Config{Tabs: 1, Client: client}), newPool(t, Config{Tabs: 1, Client: client, Remote: remote})} {
		page := s.page(t, "/fetch")
		page.URL = parse(t, "http://shop.example/fetch")
		doc, err := pool.Render(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		if doc.URL != page.URL.String() || !slices.Contains(doc.Links, "http://shop.example/a") {
			t.Errorf("the page is at %s, with links to %q", doc.URL, doc.Links)
		}
	}
}
