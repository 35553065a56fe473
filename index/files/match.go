package files

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/share/media"
)

// evaluation is one query against the segments of a snapshot.
type evaluation struct {
	ctx       context.Context
	readers   []*reader
	offline   map[string]bool
	options   Options
	leaves    []*leaf // the words that make the score
	isNegated bool    // below a Not
	scale     float64 // matches for each one that was found, where pieces were only sampled
}

// everywhere is the mask of all fields.
const everywhere = 0xff

var fieldMasks = map[string]byte{
	"": everywhere, "url": everywhere, "title": inTitle | inShow | inName, "artist": inArtist, "album": inAlbum, "actor": inActors, "name": inName, "folder": 0,
}

// bitmaps are sets of files, one for each segment.
type bitmaps []*roaring.Bitmap

func (b bitmaps) intersectAll(other bitmaps) {
	for i := range b {
		b[i].And(other[i])
	}
}

func (b bitmaps) totalCount() int {
	n := 0
	for i := range b {
		n += int(b[i].GetCardinality())
	}
	return n
}

// matchQuery returns the files of each segment that match.
func (e *evaluation) matchQuery(q query.Node) bitmaps {
	out := e.evaluateNode(q, nil)
	for i, r := range e.readers {
		out[i].AndNot(r.dead)
		if e.options.HideOffline && len(e.offline) > 0 {
			r.eachHost(func(h string, from, to uint32) {
				if e.offline[h] {
					out[i].RemoveRange(uint64(from), uint64(to))
				}
			})
		}
	}
	return out
}

// eachSegment makes a set for every segment.
func (e *evaluation) eachSegment(f func(i int, r *reader) *roaring.Bitmap) bitmaps {
	out := make(bitmaps, len(e.readers))
	for i, r := range e.readers {
		out[i] = f(i, r)
	}
	return out
}

func (e *evaluation) allFiles() bitmaps {
	return e.eachSegment(func(_ int, r *reader) *roaring.Bitmap {
		b := roaring.New()
		b.AddRange(0, uint64(r.Len()))
		return b
	})
}

// evaluateNode evaluates a tree. The caller wants nothing outside of within, nil for all.
func (e *evaluation) evaluateNode(q query.Node, within bitmaps) bitmaps {
	switch q := q.(type) {
	case query.And:
		return e.evaluateAnd(q, within)
	case query.Or:
		var out bitmaps
		for _, c := range q {
			m := e.evaluateNode(c, within)
			if out == nil {
				out = m
				continue
			}
			for i := range out {
				out[i].Or(m[i])
			}
		}
		return out
	case query.Filter:
		return e.evaluateFilter(q)
	}
	return e.evaluateAnd(query.And{q}, within)
}

// evaluateAnd intersects what finds, then looks for pieces of words, then takes away, then
// looks at numbers and phrases: in the order of what costs least for a file.
func (e *evaluation) evaluateAnd(q query.And, within bitmaps) bitmaps {
	var out bitmaps
	var words []*wordMatch
	var nots []query.Not
	var ranges []query.Range
	var phrases []query.Phrase
	for _, c := range q {
		switch c := c.(type) {
		case query.Not:
			nots = append(nots, c)
		case query.Range:
			ranges = append(ranges, c)
		case query.Term:
			words = append(words, e.matchWords(c.Field, c.Text, c.Prefix)...)
		case query.Phrase:
			words = append(words, e.matchWords(c.Field, c.Text, false)...)
			phrases = append(phrases, c)
		default:
			out = intersectBitmaps(out, e.evaluateNode(c, within))
		}
	}
	out = e.intersectWords(words, out, within)
	if out == nil {
		out = e.allFiles()
	}
	for _, n := range nots {
		e.subtractNode(out, n.Node)
	}
	for _, r := range ranges {
		for i, reader := range e.readers {
			out[i] = reader.filesWithin(out[i], r)
		}
	}
	for _, p := range phrases {
		for i, reader := range e.readers {
			out[i] = reader.inRow(out[i], p)
		}
	}
	return out
}

// intersectBitmaps returns the intersection; out may be nil for everything.
func intersectBitmaps(out, with bitmaps) bitmaps {
	if out == nil {
		return with
	}
	out.intersectAll(with)
	return out
}

// subtractNode removes what a node finds; its words do not count for the score.
func (e *evaluation) subtractNode(out bitmaps, q query.Node) {
	leaves, wasNegated := len(e.leaves), e.isNegated
	e.isNegated = true
	for i, m := range e.evaluateNode(q, out) {
		out[i].AndNot(m)
	}
	e.leaves, e.isNegated = e.leaves[:leaves], wasNegated
}

// filesWithin keeps the files whose number lies in the range.
func (r *reader) filesWithin(in *roaring.Bitmap, want query.Range) *roaring.Bitmap {
	out := roaring.New()
	number := func(uint32) (float64, bool) { return 0, false }
	switch want.Field {
	case "size":
		number = func(d uint32) (float64, bool) { return float64(r.sizeOf(d)), true }
	case "date":
		number = func(d uint32) (float64, bool) { t := r.modifiedOf(d); return float64(t), t > 0 }
	case "year", "rating", "duration":
		tag := 0
		number = func(d uint32) (float64, bool) {
			for tag < r.taggedCount() && r.taggedDoc(tag) < d {
				tag++
			}
			if tag == r.taggedCount() || r.taggedDoc(tag) != d {
				return 0, false
			}
			v := r.tagNumber(tag, want.Field)
			return v, v > 0
		}
	}
	it := in.Iterator()
	for it.HasNext() {
		d := it.Next()
		if v, ok := number(d); ok && v >= want.Min && v <= want.Max {
			out.Add(d)
		}
	}
	return out
}

// evaluateFilter evaluates kind:, ext:, genre:, host: and online:.
func (e *evaluation) evaluateFilter(f query.Filter) bitmaps {
	if field := map[string]byte{"kind": kindField, "type": extField, "ext": extField, "genre": genreField}[f.Field]; field != 0 {
		value := strings.TrimPrefix(f.Value, ".")
		if f.Field == "kind" && value == "file" {
			return e.allFiles()
		}
		return e.eachSegment(func(_ int, r *reader) *roaring.Bitmap {
			b := roaring.New()
			r.collectFiles(b, weighted{list: r.lookupList(field, value)}, everywhere)
			return b
		})
	}
	keep := func(string) bool { return false }
	switch f.Field {
	case "host":
		keep = func(h string) bool { return isHost(h, f.Value) }
	case "online":
		want := f.Value == "true" || f.Value == "yes" || f.Value == "1"
		keep = func(h string) bool { return e.offline[h] != want }
	}
	return e.eachSegment(func(_ int, r *reader) *roaring.Bitmap {
		b := roaring.New()
		r.eachHost(func(h string, from, to uint32) {
			if keep(h) {
				b.AddRange(uint64(from), uint64(to))
			}
		})
		return b
	})
}

// isHost reports whether the host of this name is meant by value: its whole name,
// its server, or the first label of that.
func isHost(name, value string) bool {
	u, err := url.Parse(name)
	if err != nil {
		return false
	}
	h := strings.ToLower(u.Hostname())
	first, _, _ := strings.Cut(h, ".")
	return value == h || value == first || value == strings.ToLower(u.Host) || value == strings.ToLower(name) || (u.Scheme == "file" && value == "localhost")
}

// inRow keeps the files in which the words of a phrase follow one another in one
// field.
func (r *reader) inRow(in *roaring.Bitmap, p query.Phrase) *roaring.Bitmap {
	want := wordsOf(p.Text)
	out := roaring.New()
	it := in.Iterator()
	for it.HasNext() {
		d := it.Next()
		info := r.infoOf(d)
		if info == nil {
			info = &media.Info{}
		}
		texts := map[string]string{
			"name": string(r.nameOfFile(d)), "title": info.Title, "artist": info.Artist, "album": info.Album, "show": info.Show, "actor": strings.Join(info.Actors, " "), "folder": r.pathOfFolder(r.folderOf(d)),
		}
		for field, text := range texts {
			if (p.Field == "" || p.Field == field || (p.Field == "title" && (field == "name" || field == "show"))) && hasRow(wordsOf(text), want) {
				out.Add(d)
				break
			}
		}
	}
	return out
}

func hasRow(have, want []string) bool {
	for i := 0; i+len(want) <= len(have); i++ {
		if slices.Equal(have[i:i+len(want)], want) {
			return true
		}
	}
	return false
}
