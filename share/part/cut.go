package part

import "slices"

// Recut is how the parts of a host change after a walk. Applied to the table it
// keeps every part but the root between a half and two bounds.
type Recut struct {
	Sum   Sum     // of the walked part afterwards
	New   []Piece // parts cut off from it
	Merge bool    // it is too small: its parent part takes it in
}

// Recut decides what becomes of a part of which a walk found r: larger than
// twice the bound, it is cut into the walk's pieces; smaller than half, it is
// merged into the part around it; else it stays as it is, so that small changes
// never move a border.
func (b Bound) Recut(p Part, r Result) Recut {
	load := b.Load(r.Sum)
	if load <= 2 || len(r.Pieces) == 0 {
		return Recut{Sum: r.Sum, Merge: load < 0.5 && !p.Root()}
	}
	c := Recut{Sum: r.Rest, New: slices.Clone(r.Pieces)}
	if b.Load(c.Sum) < 0.5 && !p.Root() {
		// The last piece closed lies in no other, so its content falls back to p.
		last := len(c.New) - 1
		c.Sum = c.Sum.Plus(c.New[last].Sum)
		c.New = c.New[:last]
	}
	return c
}
