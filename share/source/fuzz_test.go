package source

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
)

func FuzzParseHTMLIndex(f *testing.F) {
	f.Add([]byte(`<html><head><title>Index of /</title></head><body><pre><a href="../">../</a>
<a href="a%20b.txt">a b.txt</a>  04-Mar-2026 05:06   12
</pre></body></html>`))
	f.Add([]byte(`<title>Index of /x</title><table><tr><td><a href="?C=N">N</a></td><td><a href="x.mp3">x</a></td><td>2026-03-04 05:06</td><td>1.5M</td></table></html>`))
	self := &url.URL{Scheme: "http", Host: "h", Path: "/"}
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseHTMLIndex(b, self)
		for _, e := range entries {
			if e.Name == "" || strings.Contains(e.Name, "/") || e.Size < 0 {
				t.Errorf("entry %+v, %v", e, err)
			}
		}
	})
}

func FuzzParseMultistatus(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>/a%20b/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>`))
	self := &url.URL{Scheme: "http", Host: "h", Path: "/"}
	f.Fuzz(func(t *testing.T, b []byte) {
		var entries []Entry
		err := parseMultistatus(bytes.NewReader(b), self, func(piece []Entry) error {
			entries = append(entries, piece...)
			return nil
		})
		for _, e := range entries {
			if e.Name == "" || strings.Contains(e.Name, "/") || e.Size < 0 {
				t.Errorf("entry %+v, %v", e, err)
			}
		}
	})
}

func FuzzParseJSONIndex(f *testing.F) {
	f.Add([]byte(`[{"name":"a","type":"file","mtime":"Wed, 04 Mar 2026 05:06:00 GMT","size":12}]`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseJSONIndex(bytes.NewReader(b)) })
}
