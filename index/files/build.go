package files

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/freshet/freshet/index/engine/nametable"
	"github.com/freshet/freshet/index/engine/segment"
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

// sortedFile is a file in the order of a segment.
type sortedFile struct {
	host, folder, name string
	file               *share.File
}

// sortFiles returns files in the order of host, folder and name.
func sortFiles(files []*share.File) []sortedFile {
	out := make([]sortedFile, len(files))
	for i, f := range files {
		folder, name := part.SplitPath(f.Path)
		out[i] = sortedFile{f.Host, folder, name, f}
	}
	slices.SortFunc(out, func(a, b sortedFile) int {
		return cmp.Or(strings.Compare(a.host, b.host), strings.Compare(a.folder, b.folder), strings.Compare(a.name, b.name))
	})
	return out
}

// builder makes a segment of files.
type builder struct {
	hosts    []byte
	hostLast string
	hostNext uint32

	folders      nametable.Writer
	folderBlocks []byte
	starts       []byte
	names        nametable.Writer
	nameBlocks   []byte
	columns      map[segment.Kind][]byte
	tags         tagWriter
	tagRecords   []byte

	ids            map[string]uint32 // of terms: the field and the text
	terms          []string
	posts          []post
	nameTrigrams   nametable.Trigrams
	folderTrigrams nametable.Trigrams

	buf, term []byte
}

// post is a file or a folder that has a term.
type post struct {
	term, at uint32
	mask     byte
}

// buildSegment writes the segment of files of one or more hosts, sorted by sortFiles, to
// a new file.
func buildSegment(path string, files []sortedFile) (*fileSegment, error) {
	b := &builder{columns: map[segment.Kind][]byte{}, ids: map[string]uint32{}}
	for i, f := range files {
		if i == 0 || f.host != files[i-1].host || f.folder != files[i-1].folder {
			b.addFolder(f.host, f.folder, uint32(i))
		}
		b.addFile(f.name, f.file, uint32(i))
	}
	b.starts = binary.LittleEndian.AppendUint32(b.starts, uint32(len(files)))
	w, err := segment.CreateFile(path, segment.Names, nil)
	if err != nil {
		return nil, err
	}
	if err := b.writeSections(w); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	f, err := w.FinishFile(len(files))
	if err != nil {
		return nil, err
	}
	return newSegment(f)
}

// termNumber returns the number of a term.
func (b *builder) termNumber(field byte, text []byte) uint32 {
	b.term = append(append(b.term[:0], field), text...)
	if id, ok := b.ids[string(b.term)]; ok {
		return id
	}
	s := string(b.term)
	id := uint32(len(b.terms))
	b.ids[s] = id
	b.terms = append(b.terms, s)
	return id
}

func (b *builder) addFolder(host, path string, first uint32) {
	if b.hostNext == 0 || host != b.hostLast {
		b.hosts = appendHost(b.hosts, host, b.folders.Count())
		b.hostLast = host
		b.hostNext++
	}
	n := uint32(b.folders.Count())
	b.folderBlocks = b.folders.Append(b.folderBlocks, hostKey(b.hostNext-1, path))
	b.starts = binary.LittleEndian.AppendUint32(b.starts, first)
	b.buf = eachWord(path, b.buf, func(w []byte) {
		b.posts = append(b.posts, post{b.termNumber(folderField, w), n, 1})
		b.folderTrigrams.Add(w, n/nametable.BlockSize)
	})
}

// appendHost appends a host and its first folder.
func appendHost(dst []byte, host string, folder int) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(host))), host...)
	return binary.AppendUvarint(dst, uint64(folder))
}

func (b *builder) addFile(name string, f *share.File, n uint32) {
	in := &f.Media
	title := media.TitleOf(name, f.Size, in)
	kind := media.KindOf(name)
	b.nameBlocks = b.names.Append(b.nameBlocks, []byte(name))
	count := 0
	eachText(name, in, title.Show, func(text string, mask byte) {
		b.buf = eachWord(text, b.buf, func(w []byte) {
			count++
			b.posts = append(b.posts, post{b.termNumber(wordField, w), n, mask})
			if mask != inText {
				b.nameTrigrams.Add(w, n/nametable.BlockSize)
			}
		})
	})
	c := b.columns
	c[sizeColumn] = binary.LittleEndian.AppendUint64(c[sizeColumn], uint64(f.Size))
	c[modifiedColumn] = binary.LittleEndian.AppendUint32(c[modifiedColumn], clampTime(f.Modified))
	c[seenColumn] = binary.LittleEndian.AppendUint32(c[seenColumn], clampTime(f.Seen))
	c[groupColumn] = binary.LittleEndian.AppendUint64(c[groupColumn], xxhash.Sum64String(title.Key))
	c[kindColumn] = append(c[kindColumn], kindNumber(kind))
	c[lengthColumn] = append(c[lengthColumn], byte(min(count, 255)))
	b.addValues(name, kind, in, n)
	if in := tagsOf(in, &title); in != nil {
		b.tagRecords = b.tags.appendTags(b.tagRecords, n, in)
	}
}

// addValues adds the values by which filters find the file.
func (b *builder) addValues(name string, kind media.Kind, in *media.Info, n uint32) {
	value := func(field byte, v string) { b.posts = append(b.posts, post{b.termNumber(field, []byte(v)), n, 1}) }
	value(kindField, string(kind))
	if ext := media.Ext(name); ext != "" {
		value(extField, ext)
	}
	for g := range strings.FieldsFuncSeq(in.Genre, func(r rune) bool { return r == ',' || r == '/' || r == ';' || r == '|' }) {
		value(genreField, strings.ToLower(strings.TrimSpace(g)))
	}
}

// eachText calls f for the texts of a file whose words are found. show is the series
// that the name tells, for files whose tags name none.
func eachText(name string, in *media.Info, show string, f func(text string, mask byte)) {
	if in.Show != "" {
		show = in.Show
	}
	for _, t := range []struct {
		text string
		mask byte
	}{
		{name, inName},
		{in.Title, inTitle},
		{in.Artist, inArtist},
		{in.Album, inAlbum},
		{show, inShow},
		{strings.Join(in.Actors, " "), inActors},
		{in.Genre, inGenre},
		{in.Text, inText},
	} {
		if t.text != "" {
			f(t.text, t.mask)
		}
	}
}

// tagsOf returns what is kept of a file's tags, nil if there is nothing. The words of
// a document are in the dictionary alone.
func tagsOf(in *media.Info, title *media.Title) *media.Info {
	if title.Year == 0 && title.Episode == 0 && !hasTags(in) {
		return nil
	}
	c := *in
	c.Text = ""
	if c.Year == 0 {
		c.Year = title.Year
	}
	if c.Episode == 0 {
		c.Show, c.Season, c.Episode = title.Show, title.Season, title.Episode
	}
	return &c
}

func hasTags(in *media.Info) bool {
	return in.Title != "" || in.Artist != "" || in.Album != "" || in.Genre != "" || in.Year != 0 || in.Duration != 0 || in.Width != 0 || in.Rating != 0 || len(in.Actors) > 0
}

// tagWriter lays out the tags of files.
type tagWriter struct {
	docs, numbers, index []byte
	offset               uint64
	count                int
	record               []byte
}

// appendTags appends the record of the next file that has tags to dst, which is written
// where the record before ended.
func (t *tagWriter) appendTags(dst []byte, doc uint32, in *media.Info) []byte {
	t.numbers = appendTagNumbers(t.numbers, in)
	t.record = share.AppendFile(t.record[:0], &share.File{Media: *in})
	return t.appendRecord(dst, doc, t.record)
}

// appendRecord appends a record whose numbers are written.
func (t *tagWriter) appendRecord(dst []byte, doc uint32, record []byte) []byte {
	if t.count%tagBlock == 0 {
		t.index = binary.LittleEndian.AppendUint64(t.index, t.offset)
	}
	t.count++
	t.docs = binary.LittleEndian.AppendUint32(t.docs, doc)
	before := len(dst)
	dst = append(binary.AppendUvarint(dst, uint64(len(record))), record...)
	t.offset += uint64(len(dst) - before)
	return dst
}

func clampTime(t int64) uint32 { return uint32(max(0, min(t, math.MaxUint32))) }

var kindNames = []media.Kind{media.Other, media.Audio, media.Video, media.Image, media.Document, media.Archive, media.Program}

func kindNumber(k media.Kind) byte { return byte(max(0, slices.Index(kindNames, k))) }

// writeSections writes all sections.
func (b *builder) writeSections(w *segment.FileWriter) error {
	sections := map[segment.Kind][]byte{
		hostSection: b.hosts, folderBlocks: b.folderBlocks, folderIndex: b.folders.Index(), folderStarts: b.starts,
		nameBlocks: b.nameBlocks, nameIndex: b.names.Index(),
		taggedColumn: b.tags.docs, tagNumbers: b.tags.numbers, tagIndex: b.tags.index, tagRecords: b.tagRecords,
	}
	for k, column := range b.columns {
		sections[k] = column
	}
	for k := hostSection; k <= tagRecords; k++ {
		if err := w.WriteSection(k, sections[k]); err != nil {
			return err
		}
	}
	w.BeginTerms()
	if err := b.writeTerms(w); err != nil {
		return err
	}
	return errors.Join(b.nameTrigrams.Write(w, nameTrigram), b.folderTrigrams.Write(w, folderTrigram))
}

// writeTerms writes the terms that have a text, in order, with their lists.
func (b *builder) writeTerms(w *segment.FileWriter) error {
	order := make([]uint32, len(b.terms))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return strings.Compare(b.terms[x], b.terms[y]) })
	posts, ends := groupPosts(b.posts, len(b.terms))
	for _, id := range order {
		start := uint32(0)
		if id > 0 {
			start = ends[id-1]
		}
		list := w.BeginTerm(false)
		for of := posts[start:ends[id]]; len(of) > 0; {
			p, n := of[0], 1
			for ; n < len(of) && of[n].at == p.at; n++ {
				p.mask |= of[n].mask
			}
			list.Add(p.at, uint32(p.mask)-1, nil)
			of = of[n:]
		}
		if err := w.EndTerm([]byte(b.terms[id]), false); err != nil {
			return err
		}
	}
	return nil
}

// groupPosts sorts posts by their terms, keeping the order within: a counting
// sort. It returns the end of each term's posts.
func groupPosts(in []post, terms int) (out []post, ends []uint32) {
	ends = make([]uint32, terms)
	for _, p := range in {
		ends[p.term]++
	}
	sum := uint32(0)
	for i, n := range ends {
		ends[i] = sum
		sum += n
	}
	out = make([]post, len(in))
	for _, p := range in {
		out[ends[p.term]] = p
		ends[p.term]++
	}
	return out, ends
}
