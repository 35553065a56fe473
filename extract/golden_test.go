package extract

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Stores keep the digest and the simhash of every page: if these came out
// otherwise for the same bytes, every page of every store would count as
// changed at its next visit. Where a value must change, say so in the change log.
func TestValuesInStores(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, contentType, want string }{
		{"lake.html", "text/html; charset=utf-8", "e6dca3cc73bbe467fa011cd8f721f451 92d94e17d9d520da en 587 bytes, 11 links"},
		{"baikal-cp1251.html", "text/html", "bafc2854490178a1eb63e67498163808 de09b4de084d54be ru 691 bytes, 2 links"},
		{"ezerai.html", "", "ed720ed95e486ff535f5eb4ef305b6b9 603e6c844086a823 lt 304 bytes, 5 links"},
		{"list.txt", "text/plain", "d898c5b1af438b3b553205a299739a5c 3790c01352b37b77 en 134 bytes, 3 links"},
		{"feed.xml", "application/rss+xml", "1c015579a52bec1f3934f935ac59229a 0000000000000000  0 bytes, 2 links"},
	}
	check := func(name, contentType, want string, body []byte) {
		for _, o := range []Options{{Brief: true}, {}, {Traits: true, Brief: true}} {
			p := Document(t.Context(), body, contentType, base(t), o)
			if got := fmt.Sprintf("%x %016x %s %d bytes, %d links", p.Digest, p.Simhash, p.Lang, p.Length, len(p.Links)); got != want {
				t.Errorf("%s, %+v:\n%s, want\n%s", name, o, got, want)
			}
		}
	}
	for _, tt := range tests {
		body, err := os.ReadFile(filepath.Join("testdata/pages", tt.name))
		if err != nil {
			t.Fatal(err)
		}
		check(tt.name, tt.contentType, tt.want, body)
	}
	check("sample", "text/html; charset=utf-8", "fa315c266ff216adc1c22a96fb10b2c5 511e413b85bd7e05 en 9759 bytes, 32 links", samplePage())
	check("words", "text/html", "8fb1161b70dccd21f17abaae091e590f 0beb5d1535e125c0  911 bytes, 0 links",
		[]byte("<title>words</title><p>"+strings.Join(strings.Split("abcdefghijklmnopqrstuvwxyz", ""), " ")+"<p>"+growing()))
}

// growing are words of 1 to 40 letters, letters and digits mixed from 11 on.
func growing() string {
	var b strings.Builder
	for n := range 40 {
		for i := range n + 1 {
			b.WriteByte("lakeriverdam4sea7bay1"[(i*n+i)%(11+n%11)])
		}
		b.WriteByte(' ')
	}
	return b.String()
}
