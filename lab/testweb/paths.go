package testweb

import (
	"net/url"
	"strings"

	"github.com/freshet/freshet/lab/testweb/name"
)

// paths are addresses that pages have instead of names of documents: those of
// resources in a field that was read from a real log.
type paths struct {
	of   []string          // by page, "" for none
	page map[string]uint64 // by path without escapes, and its query
}

// newPaths takes the names that are paths. Of two pages with one name the first has it.
func newPaths(names []string) paths {
	p := paths{of: make([]string, len(names)), page: map[string]uint64{}}
	for i, s := range names {
		if scheme := strings.Index(s, "://"); scheme >= 0 { // a whole address
			rest := s[scheme+len("://"):]
			s = rest[max(0, strings.IndexByte(rest+"/", '/')):]
		}
		u, err := url.Parse(s)
		if err != nil || !strings.HasPrefix(s, "/") || s == "/robots.txt" {
			continue
		}
		key := joinQuery(u.Path, u.RawQuery)
		if _, taken := p.page[key]; !taken {
			p.of[i], p.page[key] = s, uint64(i)
		}
	}
	return p
}

func joinQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// appendPath appends the path of a document of a host whose pages begin at first.
func (w *Web) appendPath(b []byte, first, doc uint64) []byte {
	if page := first + doc; page < uint64(len(w.paths.of)) && w.paths.of[page] != "" {
		return append(b, w.paths.of[page]...)
	}
	return name.AppendDocument(b, doc)
}

// documentAt returns the document of a host that a path and a query name.
func (w *Web) documentAt(first, pages uint64, path, query string) (doc uint64, ok bool) {
	if len(w.paths.page) > 0 {
		if page, named := w.paths.page[joinQuery(path, query)]; named && page >= first && page-first < pages {
			return page - first, true
		}
	}
	doc, ok = name.ParseDocument(path)
	return doc, ok && doc < pages
}
