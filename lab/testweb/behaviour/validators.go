package behaviour

import (
	"errors"
	"math"

	"github.com/freshet/freshet/internal/rng"
)

// validators makes hosts lie about versions, or say nothing of them.
type validators struct {
	Scope    `yaml:",inline"`
	Variants []string `yaml:"variants"` // drawn by host
}

// The variants of validators.
const (
	validatorsNone     = "none"          // neither ETag nor Last-Modified
	validatorsTag      = "etag-only"     // honest, without dates
	validatorsDate     = "date-only"     // honest, without tags
	validatorsRandom   = "random-etag"   // another tag at every visit, no date: never 304
	validatorsConstant = "constant-etag" // the same tag for ever: 304 for pages that changed
	validatorsNow      = "now"           // Last-Modified is the time of the visit
	validatorsDeaf     = "deaf"          // honest, but conditions are ignored
)

func newValidators() *validators {
	return &validators{Scope{Hosts: .5, Pages: 1}, []string{validatorsNone, validatorsTag, validatorsDate, validatorsRandom, validatorsConstant, validatorsNow, validatorsDeaf}}
}

func (b *validators) checkOptions() error {
	return errors.Join(b.Scope.checkOptions(), requireKnown(b.Variants, newValidators().Variants))
}

// Apply implements Behaviour.
func (b *validators) Apply(q *Request, r *Reply) bool {
	if !b.ofPage(q) {
		return false
	}
	v := &r.Validator
	switch b.Variants[b.drawBits(q, q.Host)>>32%uint64(len(b.Variants))] {
	case validatorsNone:
		*v = Validator{}
	case validatorsTag:
		v.Dated = false
	case validatorsDate:
		v.Tag = 0
	case validatorsRandom:
		*v = Validator{Tag: rng.Mix(b.pathKey(q), math.Float64bits(q.Now)) | 1}
	case validatorsConstant:
		*v = Validator{Tag: b.pathKey(q) | 1}
	case validatorsNow:
		*v = Validator{Modified: q.Now, Dated: true}
	case validatorsDeaf:
		v.Deaf = true
	}
	return true
}
