package fetch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// pack encodes a text.
func pack(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	_, err := io.WriteString(w, text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Bodies that are packed, and damaged, in each encoding: nothing at all is an empty
// body, what unpacks to too much is a bomb, what came whole and does not unpack is
// told from what did not come.
func TestPacked(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 3)
	// RFC 8878, 3.1.1: magic, a window of 64 MB, one raw block.
	wide := "\x28\xb5\x2f\xfd\x00\x80\x29\x00\x00hello"
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		whole := pack(t, encoding, text)
		for _, tt := range []struct {
			name, head, body, want string
			kind                   Kind
		}{
			{"whole", "200 OK", whole, text, ""},
			{"empty", "200 OK", "", "", ""},
			{"empty redirect", "301 Moved", "", "", ""},
			{"cut", "200 OK", whole[:len(whole)-9], "", Encoding},
			{"not packed", "200 OK", "<!doctype html>" + text, "", Encoding},
			{"bomb", "200 OK", pack(t, encoding, strings.Repeat("a", 80<<20)), "", Bomb},
			{"junk behind, gzip", "200 OK", whole + "\n some junk", text, ""},
			{"window, zstd", "200 OK", wide, "", Encoding},
		} {
			if _, only, ok := strings.Cut(tt.name, ", "); ok && only != encoding {
				continue
			}
			t.Run(encoding+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				for i, answer := range []string{
					fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(tt.body), tt.body),
					"Connection: close\r\n\r\n" + tt.body,
					fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(tt.body)+1, tt.body),
				} {
					base, _ := script(t, "HTTP/1.1 "+tt.head+"\r\nContent-Encoding: "+encoding+"\r\n"+answer)
					want, kind := tt.want, tt.kind
					if i == 2 && kind != Bomb { // not all that was announced came
						if strings.Contains(tt.name, ", ") || tt.name == "not packed" {
							continue // what is wrong is seen before the end
						}
						want, kind = "", Reset
					}
					res, err := client(t).Get(t.Context(), Request{URL: parse(t, base+"/")})
					var fe *Error
					switch {
					case errors.As(err, &fe):
						if fe.Kind != kind {
							t.Errorf("way %d: %v, want %q", i, err, kind)
						}
					case kind != "" || string(res.Body) != want:
						t.Errorf("way %d: %q, want %q %q", i, res.Body, want, kind)
					}
				}
			})
		}
	}
}
