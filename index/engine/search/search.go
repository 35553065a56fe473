package search

import (
	"context"
	"fmt"
	"math"

	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/engine/bm25"
)

// Hit is a document that was found.
type Hit struct {
	Part  *Part
	Doc   uint32
	ID    string
	Score float64
}

// Found is the answer of Run.
type Found struct {
	Total     int
	Estimated bool // Total is a projection from a sample, or a lower bound
	Hits      []Hit
	Facets    map[string][]index.Count
}

// Options change how a search runs.
type Options struct {
	Languages []string
	Plain     bool // score every match: what pruning is tested against
}

// facetLimit is how many matches facets are counted of.
const facetLimit = 1_000_000

// checkEvery is after how many windows the context is looked at.
const checkEvery = 16

// Run answers a bounded request with its best documents, copies not folded.
func Run(ctx context.Context, parts []*Part, r index.Request, o Options) (*Found, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := newPlan(r.Query, o.Languages)
	documents, averages := corpusStatistics(parts)
	if err := p.weighWords(ctx, parts, documents); err != nil {
		return nil, err
	}
	s := searcher{plan: p, request: r, options: o, norms: bm25.NewNorms(averages), best: topK{k: index.Spare(r.Offset + r.Limit)}}
	if r.Facets {
		s.facets = newFacetCounter()
	}
	if !r.ByDate {
		s.boosts = newBoostBounds(s.request.Ranking)
	}
	builders := make([]*builder, len(parts))
	defer func() {
		for _, b := range builders {
			if b != nil {
				_ = b.releaseCursors()
			}
		}
	}()
	matchers := make([]matcher, len(parts))
	for i, part := range parts {
		builders[i] = &builder{part: part, segment: part.Segment}
		matchers[i] = builders[i].buildMatcher(p.root)
	}
	p.weighPrefixes(builders, documents)
	for i := range parts {
		b := builders[i]
		s.found.Estimated = s.found.Estimated || b.limited
		if err := s.searchPart(ctx, i, b, matchers[i]); err != nil {
			return nil, err
		}
		builders[i] = nil
		if err := b.releaseCursors(); err != nil {
			return nil, err
		}
	}
	return s.finishSearch(parts), nil
}

// weighPrefixes sets the weights of prefixes by how many documents have them.
func (p *plan) weighPrefixes(builders []*builder, documents int) {
	for _, w := range p.prefixes {
		count := 0
		for _, b := range builders {
			count += b.prefixMatcher(w).estimatedCost()
		}
		w.idf = bm25.IDF(count, documents)
	}
}

// corpusStatistics returns the number of documents and the average lengths; deleted
// ones count until they are merged away.
func corpusStatistics(parts []*Part) (documents int, a bm25.Averages) {
	for _, p := range parts {
		t := p.Segment.Totals()
		a.Title += float64(t.Title)
		a.URL += float64(t.URL)
		a.Body += float64(t.Body)
		documents += p.Segment.Len()
	}
	if n := float64(documents); n > 0 {
		a.Title, a.URL, a.Body = a.Title/n, a.URL/n, a.Body/n
	}
	return documents, a
}

// searcher collects the results of all segments.
type searcher struct {
	plan    *plan
	request index.Request
	options Options
	norms   *bm25.Norms
	boosts  *boostBounds
	best    topK
	facets  *facetCounter
	found   Found
	phrases sample
}

// partSearch is the search of one segment.
type partSearch struct {
	*searcher
	number  int
	part    *Part
	scoring *scoring
	phrase  *phrase // that is verified after scoring, if the query is no more than it
}

func (s *searcher) searchPart(ctx context.Context, number int, b *builder, m matcher) error {
	ps := partSearch{searcher: s, number: number, part: b.part}
	if !s.request.ByDate {
		ps.scoring = newScoring(b, s.plan, s.norms, s.request, s.boosts)
	}
	if phrase, ok := m.(*phrase); ok && !s.request.ByDate && !s.options.Plain {
		ps.phrase = phrase
	}
	docs := uint32(b.segment.Len())
	windows := 0
	for doc := m.nextCandidate(0); doc < docs; {
		if windows++; windows%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("search: %w", err)
			}
		}
		base := doc &^ (windowSize - 1)
		var w window
		if ps.phrase != nil {
			ps.phrase.fillCandidates(base, &w)
		} else {
			m.fillWindow(base, &w)
		}
		ps.removeDead(base, &w)
		ps.collectWindow(base, &w)
		if base+windowSize >= docs {
			break
		}
		doc = m.nextCandidate(base + windowSize)
	}
	return nil
}

func (ps *partSearch) removeDead(base uint32, w *window) {
	if ps.part.Dead == nil {
		return
	}
	for i := range w {
		if at := int(base/64) + i; at < len(ps.part.Dead) {
			w[i] &^= ps.part.Dead[at]
		}
	}
}

// collectWindow counts the matches of a window and keeps the best.
func (ps *partSearch) collectWindow(base uint32, w *window) {
	if ps.phrase != nil {
		ps.collectPhrase(base, w)
		return
	}
	ps.found.Total += w.countBits()
	if ps.facets != nil {
		ps.facets.addWindow(ps.part, base, w)
	}
	switch {
	case ps.best.k == 0:
	case ps.scoring == nil:
		forEachBit(base, w, func(doc uint32) {
			ps.best.offerDocument(ps.number, doc, float64(ps.part.Segment.Date(doc)), ps.part.Segment.ID)
		})
	default:
		forEachBit(base, w, ps.considerMatch)
	}
}

// considerMatch scores a match if it can be among the best.
func (ps *partSearch) considerMatch(doc uint32) {
	if ps.canEnter(doc) {
		ps.scoreMatch(doc)
	}
}

// canEnter reports whether the bound of a document reaches the worst result: that of
// its stretch, then that with its own popularity and age. Most documents are less
// popular, and older, than the best of their stretch.
func (ps *partSearch) canEnter(doc uint32) bool {
	s := ps.scoring
	s.lookAt(doc)
	worst := ps.best.worstScore()
	return ps.options.Plain || s.total >= worst && s.suffix[0]*s.maxBoost(doc)*boundSlack >= worst
}

func (ps *partSearch) scoreMatch(doc uint32) {
	worst := ps.best.worstScore()
	if ps.options.Plain {
		worst = math.Inf(-1)
	}
	text := ps.scoring.textScore(doc, worst)
	if text*ps.scoring.maxBoost(doc)*boundSlack < worst {
		return
	}
	ps.best.offerDocument(ps.number, doc, text*ps.scoring.boostFactor(doc), ps.part.Segment.ID)
}

// A phrase that many documents have is not looked for in all of them: what a
// document can score is known before its positions are read. After verifyLimit
// looks, those that cannot be among the best are passed over, and a sample
// tells how many of them match.
const (
	verifyLimit = 20_000
	sampleEvery = 12
)

// sample estimates the phrases among documents that were passed over.
type sample struct {
	verified, passed, sampled, matched int
}

func (s *sample) estimatedTotal() int {
	if s.sampled == 0 {
		return 0
	}
	return int(float64(s.passed) * float64(s.matched) / float64(s.sampled))
}

func (ps *partSearch) collectPhrase(base uint32, w *window) {
	forEachBit(base, w, func(doc uint32) {
		canEnter := ps.canEnter(doc)
		s := &ps.phrases
		isSample := false
		if !canEnter && s.verified >= verifyLimit {
			if s.passed < sampleEvery*(s.sampled+1) {
				s.passed++
				w[(doc-base)/64] &^= 1 << (doc % 64)
				return
			}
			s.sampled++
			isSample = true
		}
		s.verified++
		if !ps.phrase.verifyPhrase(doc) {
			w[(doc-base)/64] &^= 1 << (doc % 64)
			return
		}
		if isSample {
			s.matched++
		}
		if canEnter {
			ps.scoreMatch(doc)
		}
	})
	ps.found.Total += w.countBits()
	if ps.facets != nil {
		ps.facets.addWindow(ps.part, base, w)
	}
}

// finishSearch puts the answer together.
func (s *searcher) finishSearch(parts []*Part) *Found {
	if s.phrases.passed > 0 {
		s.found.Total += s.phrases.estimatedTotal()
		s.found.Estimated = true
	}
	for _, r := range s.best.sortedResults() {
		h := Hit{Part: parts[r.part], Doc: r.doc, ID: r.id}
		if !s.request.ByDate {
			h.Score = r.score
		}
		s.found.Hits = append(s.found.Hits, h)
	}
	if s.facets != nil && s.found.Total <= facetLimit && s.phrases.passed == 0 {
		s.found.Facets = s.facets.topCounts()
	}
	return &s.found
}
