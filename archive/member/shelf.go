package member

import "math"

// When to look whether a code fits: after so many blocks (or up to twice as many, so
// that records which come in turn are all looked at), twice as many whenever it did;
// or when a sample takes so much more than one that the code did fit.
const (
	doubtSoonest = 8
	doubtLatest  = 128
	doubtSample  = 1.05
)

// learnGain is what share of its bits a block must save by a code of its own for
// that to be learnt; learnFrom is how many bytes it must have.
const (
	learnGain = 0.06
	learnFrom = 2 << 10
)

// sampled is how many bytes of a block are looked at to choose a code.
const sampled = 256

// shelf keeps the codes that were learnt last or chosen last.
type shelf struct {
	codes [4]codes
	n     int         // codes that there are
	order [4]uint8    // the numbers of codes, that chosen last first
	width [256]uint64 // of a byte in each kind of text that was learnt from, 16 bits for each
	doubt int         // blocks until the next doubt
	wait  int         // blocks from one doubt to the next
}

// chooseCode returns the code learnt from the text that a sample of a block is most
// like, and whether it is in doubt that it fits.
func (s *shelf) chooseCode(part []byte) (c *codes, doubt bool) {
	if s.n == 0 {
		s.codes[0].learnCodes(&tally{})
		return &s.codes[0], true
	}
	took := s.sampleBits(part)
	at := 0
	for i, k := range s.order[:s.n] {
		if took[k] < took[s.order[at]] {
			at = i
		}
	}
	best := s.order[at]
	copy(s.order[1:at+1], s.order[:at])
	s.order[0] = best
	c = &s.codes[best]
	if len(part) < learnFrom {
		return c, false
	}
	s.doubt--
	return c, s.doubt < 0 || took[best] > doubtSample*c.took
}

// sampleBits returns how many sixteenths of a bit a byte of a sample of a block takes in
// each kind of text. It looks at the text and not at what is written of it: bytes
// in matches are a part of its likeness.
func (s *shelf) sampleBits(part []byte) (took [4]float64) {
	sum, n := uint64(0), 0
	for i := 0; i < len(part); i += len(part)/sampled + 1 {
		sum += s.width[part[i]]
		n++
	}
	for i := range took {
		took[i] = float64(sum>>(16*i)&0xffff) / float64(max(n, 1))
	}
	return took
}

// setProfile says what kind of text code k was learnt from.
func (s *shelf) setProfile(k int, part []byte) {
	var counts [256]int
	for _, b := range part {
		counts[b]++
	}
	for b, n := range counts {
		bits := min(-math.Log2((float64(n)+0.1)/(float64(len(part))+25.6)), 15)
		s.width[b] = s.width[b]&^(0xffff<<(16*k)) | uint64(16*bits)<<(16*k)
	}
}

// learnIfBetter learns a code from the symbols of a block if it saves enough compared
// with the one that was chosen for it, and returns it; otherwise nil.
func (s *shelf) learnIfBetter(c *codes, t *tally, part []byte) *codes {
	took, least := c.codeCost(t)
	if s.n > 0 && least > (1-learnGain)*took {
		c.took = max(c.took, s.sampleBits(part)[s.order[0]])
		s.wait = min(2*s.wait, doubtLatest)
		s.doubt = s.wait + int(took)%s.wait
		return nil
	}
	k := s.n
	if s.n < len(s.codes) {
		s.n++
	} else {
		k = int(s.order[k-1])
	}
	copy(s.order[1:s.n], s.order[:s.n-1])
	s.order[0] = uint8(k)
	learnt := &s.codes[k]
	learnt.learnCodes(t)
	s.setProfile(k, part)
	learnt.took = s.sampleBits(part)[k]
	s.wait = doubtSoonest
	s.doubt = s.wait + int(took)%s.wait
	if len(part) < learnFrom {
		s.doubt = 0
	}
	return learnt
}

// codeCost returns the bits that symbols take in a code, and the fewest that they
// could take in any, in the sense of Shannon; bits that are no code are left out.
func (c *codes) codeCost(t *tally) (took, least float64) {
	for _, of := range []struct {
		counts []uint32
		code   []code
	}{{t.lit[:], c.lit[:]}, {t.dist[:], c.dist[:]}} {
		all := 0.
		for i, n := range of.counts {
			if n > 0 {
				x := float64(n)
				took += x * float64(of.code[i]&0xff)
				least -= x * math.Log2(x)
				all += x
			}
		}
		if all > 0 {
			least += all * math.Log2(all)
		}
	}
	return took, least
}
