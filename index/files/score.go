package files

import (
	"math"
	"slices"
)

// Weights of fields and parameters of BM25F.
const (
	k1          = 1.2
	lengthShare = 0.5
	meanLength  = 8
	folderGain  = 0.5
)

// gain returns the weight of the fields in a mask.
var gain = func() (g [256]float64) {
	fields := map[byte]float64{inName: 1.5, inTitle: 3, inArtist: 3, inAlbum: 1.5, inShow: 3, inActors: 1.5, inGenre: 1, inText: 0.3}
	for m := range g {
		for bit, w := range fields {
			if byte(m)&bit != 0 {
				g[m] += w
			}
		}
	}
	return g
}()

// score appends the documents with their scores: the sum of BM25F over the words,
// times recency; by recency alone where the query has no words.
func (e *evaluation) score(all []scored, seg int, docs []uint32) []scored {
	s := e.segs[seg]
	total := 0
	for _, x := range e.segs {
		total += x.docs()
	}
	sum := make([]float64, len(docs))
	freq := make([]float64, len(docs))
	for _, l := range e.leaves {
		if len(l.terms) <= seg || len(l.terms[seg]) == 0 {
			continue
		}
		clear(freq)
		s.frequencies(l, l.terms[seg], docs, freq)
		idf := math.Log(1 + (float64(total-l.df)+0.5)/(float64(l.df)+0.5))
		for i, f := range freq {
			if f > 0 {
				sum[i] += idf * f * (k1 + 1) / (f + k1*(1-lengthShare+lengthShare*float64(s.length[docs[i]])/meanLength))
			}
		}
	}
	for i, d := range docs {
		score := sum[i]
		fresh := s.recency(d, e.options.Now.Unix())
		switch {
		case e.options.Newest:
			score = float64(max(s.mtime[d], s.seen[d]))
			if len(e.leaves) > 0 {
				score = s.newest(d, score)
			}
		case len(e.leaves) == 0:
			score = fresh
		default:
			score *= 1 + 0.2*fresh
		}
		all = append(all, scored{seg, d, score})
	}
	return all
}

// newest ranks by season and episode before time: the newest episode is the last
// one of the last season, whenever somebody copied an old one.
func (s *segment) newest(d uint32, score float64) float64 {
	if in := s.infoOf(d); in != nil && in.Episode > 0 {
		return 1e12 + float64(in.Season)*1e11 + float64(in.Episode)*1e7*1 + score/1e6
	}
	return score
}

// recency is 1 for what appeared now and halves every 30 days.
func (s *segment) recency(d uint32, now int64) float64 {
	age := float64(now - int64(max(s.mtime[d], s.seen[d])))
	return math.Exp2(-max(0, age) / (30 * 86400))
}

// frequencies adds to freq how strongly the terms stand in each of docs.
func (s *segment) frequencies(l *leaf, terms []weighted, docs []uint32, freq []float64) {
	for _, t := range terms {
		if l.mask != 0 {
			i := 0
			s.eachPost(t.term, func(d uint32, mask byte) {
				if i = advance(docs, i, d); i < len(docs) && docs[i] == d {
					freq[i] += t.weight * gain[mask&l.mask]
				}
			})
		}
		if l.place {
			i := 0
			s.eachPlace(t.term, func(f uint32) {
				for i = advance(docs, i, s.start[f]); i < len(docs) && docs[i] < s.start[f+1]; i++ {
					freq[i] += t.weight * folderGain
				}
			})
		}
	}
}

// advance returns the first index from i on whose document is d or later, by
// doubling steps.
func advance(docs []uint32, i int, d uint32) int {
	step := 1
	for i+step < len(docs) && docs[i+step] < d {
		i += step
		step *= 2
	}
	j, _ := slices.BinarySearch(docs[i:min(len(docs), i+step+1)], d)
	return i + j
}
