package crawl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The bare loop reaches every page from the seeds, each once, and the site
// counts what it served.
func TestBareReachesAll(t *testing.T) {
	t.Parallel()
	const pages, hosts = 300, 3
	track, err := Open(NewSite(pages, hosts, 5, 2000), "")
	if err != nil {
		t.Fatal(err)
	}
	defer track.Close()
	n, err := Bare(context.Background(), track.Site.Seeds(), 4)
	if err != nil {
		t.Skip("127.0.0.0/8 cannot be reached here:", err)
	}
	if st := track.Site.Stats(); n != pages || st.Distinct != pages || st.Requests != pages || st.Repeats != 0 {
		t.Errorf("%d pages, %+v", n, st)
	}
}

// A robot that fails is told apart from one that fetches nothing.
func TestRun(t *testing.T) {
	t.Parallel()
	track, err := Open(NewSite(10, 1, 3, 1000), "")
	if err != nil {
		t.Fatal(err)
	}
	defer track.Close()
	var out strings.Builder
	if res := Run(context.Background(), "no robot", track.Address(), []string{"false"}, &out); res.Error == "" {
		t.Errorf("%+v", res)
	}
	if res := Run(context.Background(), "idle", track.Address(), []string{"true"}, &out); res.Error != "" || res.Pages != 0 || res.Memory == 0 {
		t.Errorf("%+v", res)
	}
	a, b := track.Site.sitePage(3), NewSite(10, 1, 3, 1000)
	b.Port = track.Site.Port
	if string(a) != string(b.sitePage(3)) {
		t.Error("the same site is served differently")
	}
}

// A site over HTTPS is served under the certificate that it wrote, and its pages link by
// https.
func TestServesHTTPS(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "site.pem")
	track, err := Open(NewSite(10, 2, 3, 1000), file)
	if err != nil {
		t.Fatal(err)
	}
	defer track.Close()
	cert, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(cert)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	defer client.CloseIdleConnections()
	for _, seed := range track.Site.Seeds() {
		links, err := bareLinks(t.Context(), client, seed)
		if err != nil {
			t.Skip("127.0.0.0/8 cannot be reached here:", err)
		}
		for _, link := range links {
			if !strings.HasPrefix(link, "https://127.0.0.") {
				t.Errorf("%s links to %s, want https", seed, link)
			}
		}
	}
}
