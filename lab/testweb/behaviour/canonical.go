package behaviour

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/lab/testweb/name"
)

// canonical gives pages a canonical address and links them under others: with a
// tracking parameter that changes nothing.
type canonical struct {
	Scope      `yaml:",inline"`
	Parameters float64 `yaml:"parameters"` // share of links to the own host with a parameter
	Wrong      float64 `yaml:"wrong"`      // share of pages that call the home page canonical
}

func newCanonical() *canonical {
	return &canonical{Scope: Scope{Hosts: .3, Pages: 1}, Parameters: .1, Wrong: .01}
}

func (b *canonical) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireShare("parameters", b.Parameters), requireShare("wrong", b.Wrong))
}

// Apply implements Behaviour.
func (b *canonical) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || !b.ofPage(q) {
		return false
	}
	doc := q.Doc
	if rng.Unit(rng.Mix(b.drawBits(q, 3), q.Page)) < b.Wrong {
		doc = 0
	}
	r.Page.Canonical = name.AppendDocument([]byte(q.Base), doc)
	for i := range r.Page.Links {
		key := rng.Mix(rng.Mix(b.drawBits(q, 4), q.Page), uint64(i))
		if l := &r.Page.Links[i]; l.Own && rng.Unit(key) < b.Parameters && !bytes.ContainsRune(l.Href, '?') {
			l.Href = strconv.AppendUint(append(l.Href, "?ref="...), key%1000, 10)
		}
	}
	return true
}
