package behaviour

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// redirect moves pages: the address in the graph answers 3xx, and the page
// stands at the end of a chain; some chains are loops without end.
type redirect struct {
	Scope    `yaml:",inline"`
	Chain    int     `yaml:"chain"`    // greatest number of redirects to the page
	Loop     float64 `yaml:"loop"`     // share of the moved pages that are never reached
	Statuses []int   `yaml:"statuses"` // drawn by page
}

func newRedirect() *redirect {
	return &redirect{Scope: Scope{Hosts: 1, Pages: .05}, Chain: 3, Loop: .1, Statuses: []int{301, 302, 307, 308}}
}

func (b *redirect) checkOptions() error {
	if b.Chain < 1 || b.Chain > 100 {
		return fmt.Errorf("chain: %d redirects: give 1 to 100", b.Chain)
	}
	return errors.Join(b.Scope.checkOptions(), requireShare("loop", b.Loop), requireStatuses(b.Statuses, 300, 399))
}

// Paths of the stations: /hop/2/abcd.html, /hop/1/abcd.html, then the page at
// /hop/0/abcd.html; /loop/0/abcd.html and /loop/1/abcd.html lead to each other.
const hopPath, loopPath = "/hop/", "/loop/"

// Route implements Router.
func (b *redirect) Route(q *Request) {
	if _, doc, ok := redirectStation(q.Path, hopPath); ok {
		q.showDocument(doc)
	}
}

// redirectStation reads the path of a station: its number and the document.
func redirectStation(path, prefix string) (n int, doc uint64, ok bool) {
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return 0, 0, false
	}
	digits, file, ok := strings.Cut(rest, "/")
	if !ok {
		return 0, 0, false
	}
	n, err := strconv.Atoi(digits)
	doc, found := name.ParseDocument("/" + file)
	return n, doc, err == nil && n >= 0 && found
}

// Apply implements Behaviour.
func (b *redirect) Apply(q *Request, r *Reply) bool {
	if n, doc, ok := redirectStation(q.Path, loopPath); ok && doc < q.Docs {
		r.setRedirect(b.redirectStatus(q), loopPath+strconv.Itoa(1-n&1)+name.Document(doc))
		return true
	}
	n, _, hop := redirectStation(q.Path, hopPath)
	if !b.ofPage(q) {
		if hop {
			r.setErrorPage(truth.Missing, 404) // only moved pages have stations
		}
		return hop
	}
	key := rng.Mix(b.drawBits(q, 2), q.Page)
	length := 1 + int(key%uint64(b.Chain))
	switch {
	case rng.Unit(rng.Mix(key, 3)) < b.Loop:
		r.setRedirect(b.redirectStatus(q), loopPath+"0"+name.Document(q.Doc))
	case !hop:
		r.setRedirect(b.redirectStatus(q), hopPath+strconv.Itoa(length-1)+name.Document(q.Doc))
	case n >= length:
		r.setErrorPage(truth.Missing, 404)
	case n > 0:
		r.setRedirect(b.redirectStatus(q), hopPath+strconv.Itoa(n-1)+name.Document(q.Doc))
	default:
		return false // the page
	}
	return true
}

func (b *redirect) redirectStatus(q *Request) int {
	return b.Statuses[b.drawBits(q, q.Doc)%uint64(len(b.Statuses))]
}
