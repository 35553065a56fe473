package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/bm25"
	"github.com/freshet/freshet/index/engine/postings"
)

// scorer adds to the score of a document. Documents ascend from call to call.
type scorer interface {
	// upperBound returns the greatest score of the documents from doc to end. It
	// looks at documents of its own order, apart from score.
	upperBound(doc uint32) (score float64, end uint32)
	scoreDoc(doc uint32) float64
}

// wordScorer scores a word and its forms.
//
//	idf (exactWeight s(word) + formWeight max over all forms of s(form))
//
// where s is bm25.Norms.Saturation. The maximum keeps a document from counting
// twice that is in the list of a word and in that of its stem.
type wordScorer struct {
	word    *formCursor // nil if the segment lacks it
	forms   []formCursor
	idf     float64
	scoring *scoring
}

type formCursor struct {
	list   postings.List
	cursor *postings.Cursor
}

func (s *wordScorer) upperBound(doc uint32) (float64, uint32) {
	last := uint32(postings.End)
	exact, best := 0., 0.
	for i := range s.forms {
		impact, end := s.forms[i].cursor.Bound(doc)
		last = min(last, end)
		if impact == 0 {
			continue
		}
		b := s.scoring.convert(impact)
		best = max(best, b)
		if s.word == &s.forms[i] {
			exact = b
		}
	}
	return s.idf * (exactWeight*exact + formWeight*best), last
}

func (s *wordScorer) scoreDoc(doc uint32) float64 {
	exact, best := 0., 0.
	for i := range s.forms {
		c := s.forms[i].cursor
		if c.Seek(doc) != doc {
			continue
		}
		v := float64(s.scoring.norms.Saturation(c.Code(), s.scoring.part.Segment.Lengths(doc)))
		best = max(best, v)
		if s.word == &s.forms[i] {
			exact = v
		}
	}
	return s.idf * (exactWeight*exact + formWeight*best)
}

// setScorer gives the documents of a prefix the same score.
type setScorer struct {
	set   *set
	value float64
}

func (s *setScorer) upperBound(uint32) (float64, uint32) { return s.value, postings.End }

func (s *setScorer) scoreDoc(doc uint32) float64 {
	if s.set.containsDoc(doc) {
		return s.value
	}
	return 0
}

// scoring is how documents of one segment are scored.
type scoring struct {
	part    *Part
	norms   *bm25.Norms
	convert func(impact uint16) float64
	ranking index.Ranking
	boosts  *boostBounds
	now     float64
	scorers []scorer

	// The bound of the documents up to end, for which it was looked up.
	end    uint32
	total  float64   // of text and boost
	suffix []float64 // of the scorers from i on, without boost
}

// boostBounds are tables of what popularity and age can make of a text score, so
// that no document needs a power of two before it is known to be among the best.
type boostBounds struct {
	popularity [256]float64 // boost of a document of today
	age        [256]float64 // factor of documents of an age in steps
	perSecond  float64      // steps
}

// ageSteps is how many steps a half-life has; 16 half-lives are in the table.
const ageSteps = 16

func newBoostBounds(r index.Ranking) *boostBounds {
	var t boostBounds
	for i := range t.popularity {
		t.popularity[i] = r.Boost(float64(i)/255, 0)
	}
	oldest := 1 - r.FreshnessWeight
	if r.HalfLife <= 0 {
		for i := range t.age {
			t.age[i] = max(1, oldest)
		}
		return &t
	}
	step := r.HalfLife.Seconds() / ageSteps
	t.perSecond = 1 / step
	for i := range t.age { // a factor lies between those of both ends of its step
		t.age[i] = max(r.Boost(0, float64(i)*step), r.Boost(0, float64(i+1)*step))
	}
	t.age[len(t.age)-1] = max(t.age[len(t.age)-1], oldest)
	return &t
}

// of returns a bound of the boost of a document. Ages are in seconds.
func (t *boostBounds) of(popularity byte, age float64) float64 {
	step := min(max(age*t.perSecond, 0), float64(len(t.age)-1))
	return t.popularity[popularity] * t.age[int(step)]
}

// newScoring makes the scorers of a plan for the segment of b.
func newScoring(b *builder, p *plan, norms *bm25.Norms, r index.Request, boosts *boostBounds) *scoring {
	s := &scoring{part: b.part, norms: norms, convert: norms.Bound(b.segment.Reference()), ranking: r.Ranking, boosts: boosts, now: float64(r.Now.Unix())}
	for _, w := range p.words {
		ws := &wordScorer{idf: w.idf, scoring: s}
		hasWord := false
		for i, key := range w.keys {
			if l := b.lookupTerm(key); l.Count() > 0 {
				hasWord = hasWord || i == 0
				ws.forms = append(ws.forms, formCursor{list: l})
			}
		}
		if len(ws.forms) == 0 {
			continue
		}
		for i := range ws.forms {
			ws.forms[i].cursor = b.openCursor(&ws.forms[i].list)
		}
		if hasWord {
			ws.word = &ws.forms[0]
		}
		s.scorers = append(s.scorers, ws)
	}
	for _, w := range p.prefixes {
		if m, ok := b.prefixMatcher(w).(*set); ok && m.count > 0 {
			s.scorers = append(s.scorers, &setScorer{m, prefixSaturation * w.idf})
		}
	}
	// The words that can add most come first, so that a hopeless document is
	// left early.
	slices.SortStableFunc(s.scorers, func(x, y scorer) int { return cmp.Compare(weightOf(y), weightOf(x)) })
	s.suffix = make([]float64, len(s.scorers)+1)
	return s
}

func weightOf(s scorer) float64 {
	switch s := s.(type) {
	case *wordScorer:
		return s.idf
	case *setScorer:
		return s.value
	}
	return 0
}

// boundSlack keeps rounding from making a bound smaller than a score.
const boundSlack = 1 + 1e-9

// lookAt brings the bounds up to date for a document behind the last one.
func (s *scoring) lookAt(doc uint32) {
	if s.total > 0 && doc <= s.end {
		return
	}
	k := doc / stretch
	s.end = k*stretch + stretch - 1
	maximum := max(s.boosts.popularity[s.part.maxPopularity[k]], s.boosts.popularity[0])
	sum := 0.
	for i := len(s.scorers) - 1; i >= 0; i-- {
		v, end := s.scorers[i].upperBound(doc)
		s.end = min(s.end, end)
		sum += v
		s.suffix[i] = sum * boundSlack
	}
	if len(s.scorers) == 0 {
		sum, s.suffix[0] = 1, boundSlack
	}
	s.total = max(sum*maximum*boundSlack, math.SmallestNonzeroFloat64)
}

// maxBoost is a bound of the boost of a document.
func (s *scoring) maxBoost(doc uint32) float64 {
	return s.boosts.of(s.part.Popularity[doc], s.now-float64(s.part.Segment.Date(doc)))
}

// boostFactor is the factor of popularity and age of a document.
func (s *scoring) boostFactor(doc uint32) float64 {
	return s.ranking.Boost(float64(s.part.Popularity[doc])/255, s.now-float64(s.part.Segment.Date(doc)))
}

// textScore is the score of a document's words; 1 if the query has none. A document
// that cannot reach worst may get less.
func (s *scoring) textScore(doc uint32, worst float64) float64 {
	if len(s.scorers) == 0 {
		return 1
	}
	sum, maximum := 0., s.maxBoost(doc)*boundSlack
	for i, c := range s.scorers {
		if (sum+s.suffix[i])*maximum < worst {
			return sum
		}
		sum += c.scoreDoc(doc)
	}
	return sum
}
