package fetch

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// heads are answers, and whether their headers are ordinary.
var heads = map[string]bool{
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok": true,
	"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 17:00:00 GMT\r\nserver: nginx\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\nConnection: keep-alive\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nETag: \"x\"\r\nX-Empty:\r\n\r\nhello": true,
	"HTTP/1.1 404 \r\ncontent-length:\t0 \t\r\n\r\n":                                           true,
	"HTTP/1.1 301 Moved: for good\r\nLocation: /é\r\nContent-Length: 000000000000001\r\n\r\nx": true,
	"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx":                                               true,

	"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok":                                   false,
	"HTTP/1.1 200 OK\r\n\r\nok":                                                        false,
	"HTTP/1.1 200 OK\nContent-Length: 2\n\nok":                                         false,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n":                                         false,
	"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n":                             false,
	"HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\n\r\nok":                          false,
	"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok":                                  false,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok":              false,
	"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok":                                  false,
	"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok":                false,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok":     false,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok":              false,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive, close\r\n\r\nok":  false,
	"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\nok":               false,
	"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nok":                     false,
	"HTTP/1.1 200 OK\r\n A: b\r\nContent-Length: 2\r\n\r\nok":                          false,
	"HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 2\r\n\r\nok":                          false,
	"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 2\r\n\r\nok":                       false,
	"HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 2\r\n\r\nok":                            false,
	"HTTP/1.1 200 OK\r\nA: b\x00\r\nContent-Length: 2\r\n\r\nok":                       false,
	"HTTP/1.1 200 OK\r\nA: b\nB: c\r\nContent-Length: 2\r\n\r\nok":                     false,
	"HTTP/1.1 200 OK\r\nA: b\rB: c\r\nContent-Length: 2\r\n\r\nok":                     false,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTrailer: Content-Length\r\nA: b\r\n\r\nx": false,
}

func TestOrdinary(t *testing.T) {
	t.Parallel()
	for head, want := range heads {
		if got := sameAsLibrary(t, []byte(head)); got != want {
			t.Errorf("%q: ordinary %v", head, got)
		}
	}
	flood := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + strings.Repeat("A: b\r\n", 1000) + "\r\nok"
	if !sameAsLibrary(t, []byte(flood)) {
		t.Error("many fields are not ordinary")
	}
}

// sameAsLibrary reports whether a header is ordinary; if it is, net/http must find
// the same in it, with the same body behind.
func sameAsLibrary(t *testing.T, b []byte) bool {
	t.Helper()
	o, ok := readOrdinary(b, nil, nil)
	if !ok {
		return false
	}
	in := bufio.NewReader(bytes.NewReader(b))
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("%q is taken: %v", b, err)
	}
	if res.StatusCode != o.status || res.Proto != protocol || res.ContentLength != o.length || res.Close || len(res.TransferEncoding)+len(res.Trailer) > 0 {
		t.Fatalf("%q: %+v, want %+v", b, o, res)
	}
	if !reflect.DeepEqual(res.Header, o.header) {
		t.Fatalf("%q: %q, want %q", b, o.header, res.Header)
	}
	want, _ := io.ReadAll(res.Body)
	got := b[o.size:]
	if got = got[:min(o.length, int64(len(got)))]; !bytes.Equal(got, want) {
		t.Fatalf("%q: body %q, want %q", b, got, want)
	}
	return true
}

func FuzzOrdinary(f *testing.F) {
	for head := range heads {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sameAsLibrary(t, b) })
}

func BenchmarkHead(b *testing.B) {
	head := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 12345\r\nDate: Sat, 21 Nov 2026 17:00:00 GMT\r\n\r\n")
	b.Run("ordinary", func(b *testing.B) {
		var o ordinary
		for b.Loop() {
			ok := false
			clear(o.header)
			if o, ok = readOrdinary(head, o.header, o.values); !ok {
				b.Fatal("not ordinary")
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		r := bytes.NewReader(nil)
		in := bufio.NewReaderSize(r, readBuffer)
		for b.Loop() {
			r.Reset(head)
			in.Reset(r)
			if _, err := http.ReadResponse(in, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
