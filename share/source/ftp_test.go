package source_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/shareservers"
	"github.com/freshet/freshet/share/source"
)

// A server that has no TLS is not read in the clear, and one whose certificate
// nobody vouches for not at all.
func TestFTPSRefused(t *testing.T) {
	t.Parallel()
	dial := func(address string, o source.Options) error {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		s, err := source.Dial(t.Context(), u, o)
		if err == nil {
			s.Close()
		}
		return err
	}
	plain := shareservers.VSFTPD(t, shareservers.Reachable(t))
	if err := dial("ftpes"+strings.TrimPrefix(plain.URL, "ftp"), source.Options{}); err == nil || source.ClassOf(err) != source.Protocol || !strings.Contains(err.Error(), "offers no TLS") {
		t.Errorf("no TLS: %v", err)
	}
	for _, start := range []shareservers.Start{shareservers.FTPS, shareservers.ImplicitFTPS} {
		s := start(t, shareservers.Reachable(t))
		if err := dial(s.URL, source.Options{}); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: not trusted: %v", s.Name, err)
		}
		if err := dial(s.URL, s.Options); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
