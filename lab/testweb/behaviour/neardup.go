package behaviour

import (
	"errors"
)

// nearDuplicate makes pages repeat another page of their host to a known degree.
type nearDuplicate struct {
	Scope      `yaml:",inline"`
	Similarity float64 `yaml:"similarity"` // share of sentences in common
}

func newNearDuplicate() *nearDuplicate {
	return &nearDuplicate{Scope: Scope{Hosts: 1, Pages: .05}, Similarity: .8}
}

func (b *nearDuplicate) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireShare("similarity", b.Similarity))
}

// Apply implements Behaviour.
func (b *nearDuplicate) Apply(q *Request, r *Reply) bool {
	if r.Page == nil || q.Doc == 0 || !b.ofPage(q) {
		return false
	}
	repeatText(q, r, q.First+q.Doc/2, b.Similarity)
	return true
}
