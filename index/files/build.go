package files

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cespare/xxhash/v2"

	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
)

// Where a word stands in a document: bits of a posting's mask.
const (
	inName = 1 << iota
	inTitle
	inArtist
	inAlbum
	inShow
	inActors
	inGenre
	inText
)

// Signs of terms that are no words but values of filters.
const (
	kindSign  = "\x01k"
	extSign   = "\x01e"
	genreSign = "\x01g"
)

// builder makes a segment of files.
type builder struct {
	seg    *segment
	ids    map[string]uint32
	terms  []string
	posts  []post // (term, document, mask)
	places []post // (term, folder)
	buf    []byte
}

type post struct {
	term, at uint32
	mask     byte
}

// build makes a segment of files of known hosts; it sorts them.
func build(host uint32, files []share.File) *segment {
	type doc struct {
		folder, name string
		f            *share.File
	}
	docs := make([]doc, len(files))
	for i := range files {
		folder, name := part.SplitPath(files[i].Path)
		docs[i] = doc{folder, name, &files[i]}
	}
	slices.SortStableFunc(docs, func(a, b doc) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), strings.Compare(a.name, b.name))
	})
	b := &builder{seg: &segment{deleted: roaring.New()}, ids: map[string]uint32{}}
	for i, d := range docs {
		if i == 0 || d.folder != docs[i-1].folder {
			b.folder(host, d.folder)
		}
		b.doc(d.name, d.f)
	}
	b.seg.start = append(b.seg.start, uint32(len(docs)))
	b.seg.nameAt = append(b.seg.nameAt, uint32(len(b.seg.names)))
	b.finish()
	return b.seg
}

func (b *builder) id(term []byte) uint32 {
	if id, ok := b.ids[string(term)]; ok {
		return id
	}
	s := string(term)
	id := uint32(len(b.terms))
	b.ids[s] = id
	b.terms = append(b.terms, s)
	return id
}

func (b *builder) folder(host uint32, path string) {
	s := b.seg
	n := uint32(len(s.folderPath))
	s.folderHost = append(s.folderHost, host)
	s.folderPath = append(s.folderPath, strings.Clone(path))
	s.start = append(s.start, uint32(len(s.size)))
	b.buf = eachWord(path, b.buf, func(w []byte) {
		b.places = append(b.places, post{b.id(w), n, 0})
	})
}

func (b *builder) doc(name string, f *share.File) {
	s := b.seg
	n := uint32(len(s.size))
	in := &f.Media
	title := media.TitleOf(name, f.Size, in)
	s.nameAt = append(s.nameAt, uint32(len(s.names)))
	s.names = append(s.names, name...)
	s.size = append(s.size, f.Size)
	s.mtime = append(s.mtime, clampTime(f.Modified))
	s.seen = append(s.seen, clampTime(f.Seen))
	s.group = append(s.group, xxhash.Sum64String(title.Key))
	kind := media.KindOf(name)
	s.kind = append(s.kind, kindNumber(kind))
	count := 0
	add := func(text string, mask byte) {
		if text == "" {
			return
		}
		b.buf = eachWord(text, b.buf, func(w []byte) {
			count++
			b.posts = append(b.posts, post{b.id(w), n, mask})
		})
	}
	add(name, inName)
	add(in.Title, inTitle)
	add(in.Artist, inArtist)
	add(in.Album, inAlbum)
	add(in.Show, inShow)
	if in.Show == "" {
		add(title.Show, inShow)
	}
	add(strings.Join(in.Actors, " "), inActors)
	add(in.Genre, inGenre)
	add(in.Text, inText)
	s.length = append(s.length, byte(min(count, 255)))
	value := func(sign, v string) {
		b.buf = append(append(b.buf[:0], sign...), v...)
		b.posts = append(b.posts, post{b.id(b.buf), n, inName})
	}
	value(kindSign, string(kind))
	if ext := media.Ext(name); ext != "" {
		value(extSign, ext)
	}
	for g := range strings.FieldsFuncSeq(in.Genre, func(r rune) bool { return r == ',' || r == '/' || r == ';' || r == '|' }) {
		value(genreSign, strings.ToLower(strings.TrimSpace(g)))
	}
	if known := title.Year != 0 || title.Episode != 0; known || tagged(in) {
		c := *in
		c.Text = "" // its words are in the dictionary
		if c.Year == 0 {
			c.Year = title.Year
		}
		if c.Episode == 0 {
			c.Show, c.Season, c.Episode = title.Show, title.Season, title.Episode
		}
		s.tagged = append(s.tagged, n)
		s.info = append(s.info, c)
	}
}

func tagged(in *media.Info) bool {
	return in.Title != "" || in.Artist != "" || in.Album != "" || in.Genre != "" || in.Year != 0 || in.Duration != 0 || in.Width != 0 || in.Rating != 0 || len(in.Actors) > 0
}

func clampTime(t int64) uint32 { return uint32(max(0, min(t, math.MaxUint32))) }

var kindNames = []media.Kind{media.Other, media.Audio, media.Video, media.Image, media.Document, media.Archive, media.Program}

func kindNumber(k media.Kind) byte { return byte(max(0, slices.Index(kindNames, k))) }

// finish sorts the dictionary and lays out the postings.
func (b *builder) finish() {
	order := make([]uint32, len(b.terms))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return strings.Compare(b.terms[x], b.terms[y]) })
	rank := make([]uint32, len(order))
	for i, id := range order {
		rank[id] = uint32(i)
	}
	s := b.seg
	s.termAt = make([]uint32, 0, len(order)+1)
	for _, id := range order {
		s.termAt = append(s.termAt, uint32(len(s.terms)))
		s.terms = append(s.terms, b.terms[id]...)
	}
	s.termAt = append(s.termAt, uint32(len(s.terms)))
	b.ids, b.terms = nil, nil
	s.posts, s.postAt = layout32(arrange(b.posts, rank), len(order), true)
	b.posts = nil
	s.places, s.placeAt = layout32(arrange(b.places, rank), len(order), false)
	b.places = nil
	s.indexTrigrams()
}

// arrange sorts postings by the rank of their terms, keeping the order of places
// within: a counting sort.
func arrange(in []post, rank []uint32) []post {
	at := make([]uint32, len(rank)+1)
	for _, p := range in {
		at[rank[p.term]+1]++
	}
	for i := 1; i < len(at); i++ {
		at[i] += at[i-1]
	}
	out := make([]post, len(in))
	for _, p := range in {
		r := rank[p.term]
		out[at[r]] = post{r, p.at, p.mask}
		at[r]++
	}
	return out
}

// layout32 writes sorted postings as deltas, with masks if they have any.
func layout32(in []post, terms int, masks bool) (out []byte, at []uint32) {
	at = make([]uint32, 0, terms+1)
	i := 0
	for t := range uint32(terms) {
		at = append(at, uint32(len(out)))
		last := uint32(0)
		for i < len(in) && in[i].term == t {
			p := in[i]
			for i++; i < len(in) && in[i].term == t && in[i].at == p.at; i++ {
				p.mask |= in[i].mask
			}
			out = appendPost(out, p.at-last, p.mask, masks)
			last = p.at
		}
	}
	return out, append(at, uint32(len(out)))
}

func appendPost(out []byte, delta uint32, mask byte, masks bool) []byte {
	switch {
	case !masks:
		return binary.AppendUvarint(out, uint64(delta))
	case mask == inName:
		return binary.AppendUvarint(out, uint64(delta)<<1)
	}
	return append(binary.AppendUvarint(out, uint64(delta)<<1|1), mask)
}

// indexTrigrams fills the trigram index over the dictionary. A counting sort over
// the 2^24 trigrams would touch 64 MB for every small segment, so pairs are sorted.
func (s *segment) indexTrigrams() {
	var pairs []uint64
	for t := range s.termCount() {
		w := s.terms[s.termAt[t]:s.termAt[t+1]]
		if len(w) > 0 && w[0] == 1 {
			continue // a filter's value
		}
		for i := 0; i+3 <= len(w); i++ {
			pairs = append(pairs, uint64(w[i])<<48|uint64(w[i+1])<<40|uint64(w[i+2])<<32|uint64(t))
		}
	}
	slices.Sort(pairs)
	pairs = slices.Compact(pairs)
	last := uint32(0)
	for _, p := range pairs {
		g, t := uint32(p>>32), uint32(p)
		if n := len(s.trigrams); n == 0 || s.trigrams[n-1] != g {
			s.trigrams = append(s.trigrams, g)
			s.triAt = append(s.triAt, uint32(len(s.tri)))
			last = 0
		}
		s.tri = binary.AppendUvarint(s.tri, uint64(t-last))
		last = t
	}
	s.triAt = append(s.triAt, uint32(len(s.tri)))
}
