package files

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/index/engine/nametable"
	"github.com/freshet/freshet/share/media"
)

// Pieces of words are found by trigrams: blocks of names that have all three-byte
// pieces of the piece are decoded and looked through. Where that are very many blocks,
// an even sample of them is.
const (
	// minPiece is the shortest piece that is looked for, in bytes.
	minPiece = 3
	// samplePass is how many blocks are looked through before it is decided whether
	// that was enough.
	samplePass = 2048
	// enoughHits is how many files with the piece end the sample.
	enoughHits = 1000
	// maxVerified bounds the blocks of one word.
	maxVerified = 32768
)

// pieceHits is how strongly files have a piece in names and tags, and the folders
// that have it.
type pieceHits struct {
	files   map[uint32]float32
	folders []uint32
}

// pieceSearch looks for several words of one And as pieces of words.
type pieceSearch struct {
	e          *evaluation
	words      []*wordMatch
	candidates [][][]uint64 // by word and segment: blocks of names that may have the word, nil for none
}

// newPieceSearch finds the folders and the candidate blocks of all words.
func (e *evaluation) newPieceSearch(words []*wordMatch) *pieceSearch {
	s := &pieceSearch{e: e, words: words}
	for _, m := range words {
		var all [][]uint64
		m.leaf.pieces = make([]pieceHits, len(e.readers))
		for i, r := range e.readers {
			var blocks []uint64
			if len(m.word) >= minPiece {
				if m.leaf.inPaths {
					r.findFolders(m, i)
				}
				if m.leaf.mask != 0 {
					var err error
					blocks, err = nametable.Candidates(r.File, nameTrigram, m.word, r.names.Blocks())
					r.keepFirstError(err)
				}
			}
			all = append(all, blocks)
		}
		s.candidates = append(s.candidates, all)
		m.leaf.df = m.found.totalCount()
	}
	return s
}

// findFolders adds the files of folders whose paths have the word as a piece.
func (r *reader) findFolders(m *wordMatch, segment int) {
	blocks, err := nametable.Candidates(r.File, folderTrigram, m.word, r.folders.Blocks())
	r.keepFirstError(err)
	hits := &m.leaf.pieces[segment]
	n := 0
	eachBit(blocks, func(k uint32) {
		if n++; n > maxVerified {
			return
		}
		b := r.loadFolders(int(k))
		for maybe := r.maybeNames(b, m.word); maybe != 0; maybe &= maybe - 1 {
			i := bits.TrailingZeros64(maybe)
			if name := b.Name(i); len(name) > 4 && m.countPieces(r, string(name[4:])) > 0 {
				folder := k*nametable.BlockSize + uint32(i)
				hits.folders = append(hits.folders, folder)
				m.found[segment].AddRange(uint64(r.firstFileOf(folder)), uint64(r.firstFileOf(folder+1)))
			}
		}
	})
}

func eachBit(words []uint64, f func(i uint32)) {
	for k, w := range words {
		for ; w != 0; w &= w - 1 {
			f(uint32(k*64 + bits.TrailingZeros64(w)))
		}
	}
}

// countPieces returns how many words of a text have the word as a piece and are
// not a form of it.
func (m *wordMatch) countPieces(r *reader, text string) int {
	n := 0
	r.words = eachWord(text, r.words, func(w []byte) {
		if bytes.Contains(w, []byte(m.word)) && !m.isForm[string(w)] {
			n++
		}
	})
	return n
}

// blockRef is a block of names of a segment.
type blockRef struct{ segment, block uint32 }

// searchPieces adds to a word's files those that have it as a piece. Only files in limit, nil for
// all, are wanted, which have all other words, too.
func (s *pieceSearch) searchPieces(word int, limit bitmaps) {
	m := s.words[word]
	total := 0
	for _, blocks := range s.candidates[word] {
		for _, w := range blocks {
			total += bits.OnesCount64(w)
		}
	}
	wanted := s.wantedBlocks(word, limit)
	sum := newSample(len(wanted))
	for n := range wanted {
		ref := wanted[sum.nextSample()]
		if n%256 == 0 && s.e.ctx.Err() != nil {
			return
		}
		sum.hits += s.e.readers[ref.segment].verifyBlock(m, &m.leaf.pieces[ref.segment], m.found[ref.segment], ref.block)
		if sum.visited++; sum.visited >= maxVerified || sum.visited%samplePass == 0 && sum.hits >= enoughHits && !s.e.isNegated {
			break
		}
	}
	if sum.visited < len(wanted) {
		s.e.scale = max(s.e.scale, float64(len(wanted))/float64(sum.visited))
		if s.e.isNegated { // rather hide too much than show what was not wanted
			for n := sum.visited; n < len(wanted); n++ {
				ref := wanted[sum.nextSample()]
				first := uint64(ref.block) * nametable.BlockSize
				m.found[ref.segment].AddRange(first, first+nametable.BlockSize)
			}
		}
	}
	if sum.visited > 0 { // files that have the word, were all candidates looked at
		m.leaf.df += int(float64(sum.hits) / float64(sum.visited) * float64(total))
	}
	if m.leaf.df == 0 && len(wanted) < total {
		m.leaf.df = min(1, s.countFirst(word))
	}
}

// countFirst returns whether any file has a word as a piece, as 1 or 0.
func (s *pieceSearch) countFirst(word int) int {
	m, n := s.words[word], 0
	for i, blocks := range s.candidates[word] {
		found, visited := 0, 0
		eachBit(blocks, func(k uint32) {
			if found == 0 && visited < samplePass {
				visited++
				found = s.e.readers[i].verifyBlock(m, &pieceHits{}, roaring.New(), k)
			}
		})
		n = max(n, found)
	}
	return n
}

// wantedBlocks returns the blocks of a word that may have files in limit with all words.
func (s *pieceSearch) wantedBlocks(word int, limit bitmaps) []blockRef {
	var out []blockRef
	for i, blocks := range s.candidates[word] {
		if blocks == nil {
			continue
		}
		keep := slices.Clone(blocks)
		for other, m := range s.words {
			if other == word {
				continue
			}
			also := slices.Clone(s.candidates[other][i])
			if also == nil {
				also = make([]uint64, len(keep))
			}
			setBlocks(also, m.found[i])
			for k := range keep {
				keep[k] &= also[k]
			}
		}
		if limit != nil {
			also := make([]uint64, len(keep))
			setBlocks(also, limit[i])
			for k := range keep {
				keep[k] &= also[k]
			}
		}
		eachBit(keep, func(k uint32) {
			if int(k) < s.e.readers[i].names.Blocks() {
				out = append(out, blockRef{uint32(i), k})
			}
		})
	}
	return out
}

// setBlocks sets the bits of the blocks of files.
func setBlocks(blocks []uint64, files *roaring.Bitmap) {
	it := files.ManyIterator()
	var buf [1024]uint32
	for n := it.NextMany(buf[:]); n > 0; n = it.NextMany(buf[:]) {
		for _, d := range buf[:n] {
			k := d / nametable.BlockSize
			blocks[k/64] |= 1 << (k % 64)
		}
	}
}

// sample visits n things in passes of even steps, so that any beginning of it is
// an even sample.
type sample struct {
	n, step, at, pass int
	visited, hits     int
}

func newSample(n int) *sample {
	return &sample{n: n, step: max(1, int(math.Ceil(float64(n)/samplePass)))}
}

// nextSample returns the number of the next thing.
func (s *sample) nextSample() int {
	if s.at >= s.n {
		s.pass++
		s.at = s.pass
	}
	at := s.at
	s.at += s.step
	return at
}

// verifyBlock adds the files of a block that have the word as a piece in names or tags, and
// returns how many there are.
func (r *reader) verifyBlock(m *wordMatch, hits *pieceHits, found *roaring.Bitmap, block uint32) int {
	b := r.loadNames(int(block))
	maybe := r.maybeNames(b, m.word)
	first := block * nametable.BlockSize
	tag := r.taggedFrom(first)
	maybe |= r.maybeTagged(tag, first, m.word)
	n := 0
	for ; maybe != 0; maybe &= maybe - 1 {
		doc := first + uint32(bits.TrailingZeros64(maybe))
		if int(doc) >= r.Len() || r.dead.Contains(doc) {
			continue
		}
		if freq := r.pieceFrequency(m, b.Name(int(doc-first)), doc); freq > 0 {
			if hits.files == nil {
				hits.files = map[uint32]float32{}
			}
			hits.files[doc] = float32(freq)
			found.Add(doc)
			n++
		}
	}
	return n
}

// maybeNames returns the names of a block that may have a folded word.
func (r *reader) maybeNames(b *nametable.Block, word string) (maybe uint64) {
	r.lower = appendLower(r.lower[:0], b.Text)
	for from := 0; ; {
		at := bytes.Index(r.lower[from:], []byte(word))
		if at < 0 {
			break
		}
		i := b.At(from + at)
		maybe |= 1 << i
		from = b.End(i)
	}
	if !mayFold(r.lower, word) {
		return maybe
	}
	for i := range b.Len() {
		if mayFold(b.Name(i), word) {
			maybe |= 1 << i
		}
	}
	return maybe
}

// mayFold reports whether a text can have a folded word that is not in its bytes: it
// has letters beyond ASCII. Cyrillic letters are folded to Cyrillic ones.
func mayFold(text []byte, word string) bool {
	if isASCII(text) {
		return false
	}
	if !isASCII([]byte(word)) {
		return true
	}
	for _, c := range text {
		if c >= 0xc0 && (c < 0xd0 || c > 0xd3) {
			return true
		}
	}
	return false
}

// maybeTagged returns the files of a block whose tags may have a word.
func (r *reader) maybeTagged(tag int, first uint32, word string) (maybe uint64) {
	for ; tag < r.taggedCount() && r.taggedDoc(tag)-first < nametable.BlockSize; tag++ {
		record, err := r.tagRecord(tag)
		if err != nil {
			r.keepFirstError(err)
			return maybe
		}
		r.lower = appendLower(r.lower[:0], record)
		if mayFold(record, word) || bytes.Contains(r.lower, []byte(word)) {
			maybe |= 1 << (r.taggedDoc(tag) - first)
		}
	}
	return maybe
}

// pieceFrequency returns how strongly a file has a word as a piece of the words
// of its name and tags.
func (r *reader) pieceFrequency(m *wordMatch, name []byte, doc uint32) float64 {
	in := r.infoOf(doc)
	if in == nil {
		in = &media.Info{}
	}
	freq := 0.0
	eachText(string(name), in, "", func(text string, mask byte) {
		if mask&m.leaf.mask != 0 {
			freq += pieceWeight * gain[mask] * float64(m.countPieces(r, text))
		}
	})
	return freq
}

// appendLower appends src with its ASCII letters in lower case.
func appendLower(dst, src []byte) []byte {
	dst = append(dst, src...)
	for i, c := range dst {
		if 'A' <= c && c <= 'Z' {
			dst[i] = c + 'a' - 'A'
		}
	}
	return dst
}

func isASCII(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
