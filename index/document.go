package index

import (
	"net/url"
	"strings"

	"github.com/freshet/freshet/index/query"
)

// NameOf returns the words of a document's URL: its host and its path,
// unescaped.
func NameOf(id string) string {
	u, err := url.Parse(id)
	if err != nil {
		return id
	}
	return u.Host + " " + u.Path + " " + u.RawQuery
}

// Domains returns a host and its parent domains: host:example.org finds
// www.example.org. A port belongs to the host.
func Domains(host string) []string {
	out := []string{host}
	for {
		_, rest, ok := strings.Cut(host, ".")
		if !ok || rest == "" {
			return out
		}
		out = append(out, rest)
		host = rest
	}
}

// QueryMarker returns a marker for the words that a query asks for.
func QueryMarker(q query.Node, langs []string) *Marker {
	var texts, prefixes []string
	query.Walk(q, func(n query.Node, not bool) {
		switch n := n.(type) {
		case query.Term:
			if not {
				return
			}
			if n.Prefix {
				prefixes = append(prefixes, n.Text)
			} else {
				texts = append(texts, n.Text)
			}
		case query.Phrase:
			if !not {
				texts = append(texts, n.Text)
			}
		}
	})
	return NewMarker(texts, prefixes, langs)
}

// Fold takes up to r.Limit results out of hits, best first, from r.Offset on:
// documents of equal content become one result with copies. load returns a
// document with its body; one that is gone meanwhile is left out.
func Fold(hits []Scored, r Request, langs []string, load func(Scored) (*Document, error)) []Hit {
	var out []Hit
	same := map[string]int{} // digest -> place in all
	marker := QueryMarker(r.Query, langs)
	place := 0
	for _, m := range hits {
		if len(out) == r.Limit {
			break
		}
		d, err := load(m)
		if err != nil {
			continue // deleted since
		}
		if first, ok := same[d.Same]; ok && d.Same != "" {
			if first >= r.Offset {
				h := &out[first-r.Offset]
				h.Copies = append(h.Copies, d.ID)
			}
			continue
		}
		same[d.Same] = place
		if place++; place <= r.Offset {
			continue
		}
		h := Hit{Document: *d, Score: m.Score, Snippet: marker.Snippet(d.Body, d.Lang)}
		h.Body = ""
		out = append(out, h)
	}
	return out
}

// Scored is a document that matches.
type Scored struct {
	ID    string
	Score float64
}

// Spare is how many hits are fetched for n results: copies are folded into one.
func Spare(n int) int { return n + n/2 + 10 }
