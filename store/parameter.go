package store

import (
	"slices"
	"time"
)

// Parameter is what is known of one query parameter of a host: whether pages are the same
// with and without it, or with other values of it. A parameter that changes nothing is void.
type Parameter struct {
	// Bases, Contents and Values are hashes: of the URLs without the parameter that agreed,
	// of their texts, and of the parameter's values. They end when they are enough.
	Bases    []uint32 `json:"b,omitempty"`
	Contents []uint32 `json:"c,omitempty"`
	Values   []uint32 `json:"v,omitempty"`
	// Proofs are bases whose pages were equal, with nothing that a browser could add.
	Proofs []uint32 `json:"p,omitempty"`
	// Contradicted is when two values showed different pages last.
	Contradicted time.Time `json:"x,omitzero"`
}

// How much evidence makes a parameter void, and for how long a contradiction counts.
const (
	voidAgreements = 5
	voidValues     = 2
	voidProofs     = 2
	contradicted   = 30 * 24 * time.Hour
)

// Agree adds that a base showed one content for two values. A base and a content count once.
func (p *Parameter) Agree(base, content uint32, values [2]uint32, proof bool) {
	if len(p.Bases) < voidAgreements && !slices.Contains(p.Bases, base) && !slices.Contains(p.Contents, content) {
		p.Bases, p.Contents = append(slices.Clone(p.Bases), base), append(slices.Clone(p.Contents), content)
	}
	for _, v := range values {
		if len(p.Values) < voidValues && !slices.Contains(p.Values, v) {
			p.Values = append(slices.Clone(p.Values), v)
		}
	}
	if proof && len(p.Proofs) < voidProofs && !slices.Contains(p.Proofs, base) {
		p.Proofs = append(slices.Clone(p.Proofs), base)
	}
}

// IsVoid reports whether the parameter changes nothing.
func (p *Parameter) IsVoid(now time.Time) bool {
	return len(p.Bases) >= voidAgreements && len(p.Values) >= voidValues && len(p.Proofs) >= voidProofs && now.Sub(p.Contradicted) > contradicted
}

// NeedsProof reports whether only proofs are missing.
func (p *Parameter) NeedsProof(now time.Time) bool {
	return len(p.Bases) >= voidAgreements && len(p.Proofs) < voidProofs && now.Sub(p.Contradicted) > contradicted
}
