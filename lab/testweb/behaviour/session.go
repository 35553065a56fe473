package behaviour

import (
	"math"
	"strconv"
	"strings"

	"github.com/freshet/freshet/internal/rng"
)

// session puts a session number into all links of a host: whoever comes without
// one gets a new one, so the same pages stand under endless addresses.
type session struct {
	Scope `yaml:",inline"`
}

func newSession() *session { return &session{Scope{Hosts: .05, Pages: 1}} }

// Apply implements Behaviour.
func (b *session) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || !q.Found || !b.ofHost(q) {
		return false
	}
	id, ok := strings.CutPrefix(q.Query, "sid=")
	if !ok {
		id = strconv.FormatUint(rng.Mix(b.pathKey(q), math.Float64bits(q.Now)), 36)
	}
	for i := range r.Page.Links {
		if l := &r.Page.Links[i]; l.Own {
			l.Href = append(append(l.Href, "?sid="...), id...)
		}
	}
	return true
}
