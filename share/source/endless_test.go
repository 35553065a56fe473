package source_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/share/source"
)

// repeated repeats a text without end.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(b), nil
}

// A server that lists without end is refused for what it sends: neither its folder nor
// one of its entries grows in memory until the timeout.
func TestEndlessListings(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "PROPFIND" && strings.HasPrefix(r.URL.Path, "/dav/"):
			w.WriteHeader(http.StatusMultiStatus)
			_, _ = io.Copy(w, io.MultiReader(strings.NewReader(`<multistatus xmlns="DAV:"><response><href>`), &repeated{text: "name"}))
		case r.Method == "PROPFIND":
			w.WriteHeader(http.StatusMultiStatus)
			_, _ = io.Copy(w, io.MultiReader(strings.NewReader(`<multistatus xmlns="DAV:">`), &repeated{text: "<response>"}))
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, io.MultiReader(strings.NewReader("[{}"), &repeated{text: `,{"type":"` + strings.Repeat("x", 4000) + `"}`}))
		}
	}))
	t.Cleanup(web.Close)
	host := strings.TrimPrefix(web.URL, "http://")
	for _, address := range []string{"webdav://" + host + "/dav", "webdav://" + host + "/nested", "index+http://" + host, "ftp://" + endlessFTP(t)} {
		t.Run(address[:strings.IndexByte(address, ':')], func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			s, err := source.Dial(ctx, u, source.Options{Timeout: 5 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			entries, err := s.List(ctx, "")
			if source.ClassOf(err) != source.Protocol || !strings.Contains(err.Error(), "more than") || len(entries) != 0 {
				t.Errorf("%d entries, %v; want none and an error that names a bound", len(entries), err)
			}
		})
	}
}

// endlessFTP serves listings without end.
func endlessFTP(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveEndlessFTP(c)
		}
	}()
	return l.Addr().String()
}

func serveEndlessFTP(c net.Conn) {
	defer c.Close()
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer data.Close()
	say := func(text string) { fmt.Fprint(c, text+"\r\n") }
	say("220 ready")
	for in := bufio.NewScanner(c); in.Scan(); {
		switch command, _, _ := strings.Cut(in.Text(), " "); command {
		case "USER":
			say("331 password")
		case "PASS":
			say("230 in")
		case "EPSV":
			say(fmt.Sprintf("229 (|||%d|)", data.Addr().(*net.TCPAddr).Port))
		case "LIST", "MLSD":
			say("150 here it comes")
			d, err := data.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(d, &repeated{text: "-rw-r--r-- 1 ftp ftp 12 Jan 01 2020 " + strings.Repeat("a", 4000) + "\r\n"})
			d.Close()
			say("226 done")
		case "CWD":
			say("250 done")
		case "TYPE", "OPTS":
			say("200 well")
		default:
			say("502 what?")
		}
	}
}
