package files

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/index/engine/postings"
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

// scoreFiles gives every file of in, of one segment, its score: the sum of BM25F over
// the words, times recency; recency alone where the query has no words. Files are scored
// in stretches, so that memory does not grow with what matches.
func (e *evaluation) scoreFiles(seg int, in *roaring.Bitmap, f func(scored)) error {
	total := 0
	for _, r := range e.readers {
		total += r.Len()
	}
	docs := make([]uint32, min(scoreStretch, in.GetCardinality()))
	sum, freq := make([]float64, len(docs)), make([]float64, len(docs))
	cursors := make([][]postings.Cursor, len(e.leaves))
	it := in.ManyIterator()
	for n := it.NextMany(docs); n > 0; n = it.NextMany(docs) {
		if err := e.ctx.Err(); err != nil {
			return err
		}
		clear(sum[:n])
		for i, l := range e.leaves {
			clear(freq[:n])
			if cursors[i] == nil {
				cursors[i] = openCursors(l.terms[seg])
			}
			e.readers[seg].addFrequencies(l, seg, cursors[i], docs[:n], freq)
			e.addWord(sum, freq[:n], docs, l, seg, total)
		}
		for i, d := range docs[:n] {
			f(scored{seg, d, e.withRecency(e.readers[seg], d, sum[i])})
		}
	}
	return nil
}

// scoreStretch is how many files are scored together.
const scoreStretch = 1 << 16

// addWord adds the BM25 score of one word.
func (e *evaluation) addWord(sum, freq []float64, docs []uint32, l *leaf, seg, total int) {
	idf := math.Log(1 + (float64(max(0, total-l.df))+0.5)/(float64(l.df)+0.5))
	length := e.readers[seg].length
	for i, f := range freq {
		if f > 0 {
			sum[i] += idf * f * (k1 + 1) / (f + k1*(1-lengthShare+lengthShare*float64(length[docs[i]])/meanLength))
		}
	}
}

// withRecency returns the score of a file by words and time.
func (e *evaluation) withRecency(r *reader, d uint32, score float64) float64 {
	switch {
	case e.options.Newest:
		score = float64(max(r.modifiedOf(d), r.seenOf(d)))
		if len(e.leaves) > 0 {
			return r.newestFirstScore(d, score)
		}
		return score
	case len(e.leaves) == 0:
		return r.recencyFactor(d, e.options.Now.Unix())
	}
	return score * (1 + 0.2*r.recencyFactor(d, e.options.Now.Unix()))
}

// newestFirstScore ranks by season and episode before time: the newest episode is the last
// one of the last season, whenever somebody copied an old one.
func (r *reader) newestFirstScore(d uint32, score float64) float64 {
	if in := r.infoOf(d); in != nil && in.Episode > 0 {
		return 1e12 + float64(in.Season)*1e11 + float64(in.Episode)*1e7*1 + score/1e6
	}
	return score
}

// recencyFactor is 1 for what appeared now and halves every 30 days.
func (s *fileSegment) recencyFactor(d uint32, now int64) float64 {
	age := float64(now - int64(max(s.modifiedOf(d), s.seenOf(d))))
	return math.Exp2(-max(0, age) / (30 * 86400))
}

// openCursors returns a cursor for each term.
func openCursors(terms []weighted) []postings.Cursor {
	out := make([]postings.Cursor, len(terms))
	for i := range terms {
		out[i].Open(&terms[i].list)
	}
	return out
}

// addFrequencies adds to freq how strongly the terms stand in each of docs, which
// ascend from call to call.
func (r *reader) addFrequencies(l *leaf, seg int, cursors []postings.Cursor, docs []uint32, freq []float64) {
	last := docs[len(docs)-1]
	for k := range cursors {
		c, t := &cursors[k], &l.terms[seg][k]
		if t.isFolder {
			r.addFolders(c, t.weight*folderGain, docs, freq)
			continue
		}
		i := 0
		for d := c.Seek(docs[0]); d <= last; d = c.Next() {
			if i = gallopTo(docs, i, d); docs[i] == d {
				freq[i] += t.weight * gain[(byte(c.Code())+1)&l.mask]
			}
		}
		r.keepFirstError(c.Err())
	}
	if l.pieces == nil {
		return
	}
	hits := &l.pieces[seg]
	for i, d := range docs {
		freq[i] += float64(hits.files[d])
	}
	for _, f := range hits.folders {
		addRange(docs, freq, r.firstFileOf(f), r.firstFileOf(f+1), pieceWeight*folderGain)
	}
}

// addFolders adds weight to the files of the folders at a cursor. A folder may go on
// behind docs: the cursor stays at it.
func (r *reader) addFolders(c *postings.Cursor, weight float64, docs []uint32, freq []float64) {
	last := docs[len(docs)-1]
	for f := c.Doc(); int(f) < r.folders.Len() && r.firstFileOf(f) <= last; f = c.Next() {
		end := r.firstFileOf(f + 1)
		addRange(docs, freq, r.firstFileOf(f), end, weight)
		if end > last {
			return
		}
	}
	r.keepFirstError(c.Err())
}

// addRange adds weight to the files in [from, to).
func addRange(docs []uint32, freq []float64, from, to uint32, weight float64) {
	i, _ := slices.BinarySearch(docs, from)
	for ; i < len(docs) && docs[i] < to; i++ {
		freq[i] += weight
	}
}

// gallopTo returns the first index from i on whose document is d or later, by
// doubling steps.
func gallopTo(docs []uint32, i int, d uint32) int {
	step := 1
	for i+step < len(docs) && docs[i+step] < d {
		i += step
		step *= 2
	}
	j, _ := slices.BinarySearch(docs[i:min(len(docs), i+step+1)], d)
	return i + j
}
