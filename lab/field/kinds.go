package field

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// KindShares are the probabilities of the kinds, from Forbidden on.
type KindShares [kinds]float64

// Defaults of a dissertation of 2005, whose experiments ours repeat.
const (
	MinSize = 65     // bytes
	MaxSize = 122880 // bytes
)

// Classic returns its kinds.
func Classic() KindShares { return KindShares{.083, .125, .125, .25, .25, .167} }

// Text returns kinds of resources that never fail: they shrink and grow alike.
func Text() KindShares { return KindShares{Shrunk - 1: .5, Grown - 1: .5} }

// RealShare returns the long-run share of events that are real changes when
// kinds are drawn independently: one minus the probability of a pair of kinds
// that makes none.
func (k KindShares) RealShare() float64 {
	p := 1.
	for a := Forbidden; a <= Same; a++ {
		for b := Forbidden; b <= Same; b++ {
			if !Real(a, b) {
				p -= k[a-1] * k[b-1]
			}
		}
	}
	return p
}

// FreshAfter returns the probability that a resource whose events come at rate
// lambda has no real change within x of a random moment. The kind then stays as
// it is: errors and Same repeat themselves, a new size lets Same follow.
func (k KindShares) FreshAfter(lambda, x float64) float64 {
	var p float64
	for i, share := range k {
		p += share * math.Exp(-lambda*(1-k.quietProbability(Kind(i+1)))*x)
	}
	return p
}

// Cycle returns the mean of FreshAfter on [0, x]: the freshness of resources
// that a robot visits at intervals x.
func (k KindShares) Cycle(lambda, x float64) float64 {
	var p float64
	for i, share := range k {
		y := lambda * (1 - k.quietProbability(Kind(i+1))) * x
		if y == 0 {
			p += share
			continue
		}
		p -= share * math.Expm1(-y) / y
	}
	return p
}

// quietProbability is the probability that an event at a resource of a kind is no real change.
func (k KindShares) quietProbability(kind Kind) float64 {
	if kind.Gone() {
		return k[kind-1]
	}
	return k[Same-1]
}

// course draws what events do to resources. Events come in no order that a
// processor could guess: tables and masks choose instead of branches.
type course struct {
	cut         [kinds]uint64 // of 32 random bits, running
	guess       [1 << guessBits]Kind
	least, most uint32
}

// guessBits is how many bits of a draw mostly tell the kind.
const guessBits = 10

func newCourse(s *Spec) course {
	c := course{least: s.Least, most: s.Most}
	var sum float64
	for i, p := range s.Kinds {
		sum += p
		c.cut[i] = uint64(math.Round(sum * (1 << 32)))
	}
	c.guess = c.kindsByPrefix()
	return c
}

// kindsByPrefix are the kinds of draws that begin with the same bits, 0 where they differ.
func (c *course) kindsByPrefix() (t [1 << guessBits]Kind) {
	for i := range t {
		first := uint32(i) << (32 - guessBits)
		if k := c.drawKind(first); k == c.drawKind(first|(1<<(32-guessBits)-1)) {
			t[i] = k
		}
	}
	return t
}

// drawKind draws a kind from 32 random bits.
func (c *course) drawKind(bits uint32) Kind {
	if k := c.guess[bits>>(32-guessBits)]; k != 0 {
		return k
	}
	k := 0
	for k < kinds-1 && uint64(bits) >= c.cut[k] {
		k++
	}
	return Kind(k + 1)
}

// drawSize returns the size after an event, from 32 random bits: uniform below or
// above the present one, within the bounds; at a bound it stays.
func (c *course) drawSize(k Kind, size, bits uint32) uint32 {
	shrinks, grows := mask[k&7].shrinks, mask[k&7].grows
	room := (size-c.least)&shrinks | (c.most-size)&grows
	base := size&^shrinks | c.least&shrinks
	above := uint32(-int64(room)>>63) & grows & 1 // where a larger size begins
	return base + above + uint32(uint64(bits)*uint64(room)>>32)
}

// mask has all bits of the kinds that change the size.
var mask = [8]struct{ shrinks, grows uint32 }{Shrunk: {shrinks: math.MaxUint32}, Grown: {grows: math.MaxUint32}}

// real is Real as a table.
var isRealChange = func() (t [8][8]bool) {
	for prev := Forbidden; prev <= Same; prev++ {
		for k := Forbidden; k <= Same; k++ {
			t[prev][k] = Real(prev, k)
		}
	}
	return t
}()

// ParseKinds reads shares of kinds: "classic", "text" (the size changes for
// ever and nothing fails), or six numbers from forbidden on, with commas.
func ParseKinds(s string) (KindShares, error) {
	switch s {
	case "", "classic":
		return Classic(), nil
	case "text":
		return Text(), nil
	}
	var k KindShares
	parts := strings.Split(s, ",")
	bad := len(parts) != kinds
	for i := 0; i < kinds && !bad; i++ {
		var err error
		k[i], err = strconv.ParseFloat(parts[i], 64)
		bad = err != nil || !(k[i] >= 0 && k[i] <= 1)
	}
	if bad {
		return k, fmt.Errorf("%w: kinds %q: classic, text, or %d probabilities of forbidden, missing, failed, shrunk, grown, same", ErrInput, s, kinds)
	}
	return k, nil
}
