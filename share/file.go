package share

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
)

// File is what is known of one file.
type File struct {
	Host     string // name of the host, see Host
	Path     string // below the host's root
	Size     int64
	Modified int64 // seconds since 1970 UTC; 0 unknown
	Seen     int64 // first seen, seconds since 1970 UTC
	Media    media.Info
	// TagError is why the file has no tags although its kind has some: the class
	// of an error, or "tags", or a problem and who met it (see scan.reader). They are not
	// tried again until the file changes, or another reader scans it.
	TagError string
}

// refusedBy returns which reader met a problem with the file (see scan.reader), or "".
func (f *File) refusedBy() string {
	_, reader, _ := strings.Cut(f.TagError, " ")
	return reader
}

// Name returns the last name of the path.
func (f *File) Name() string { return path.Base(f.Path) }

// Kind returns audio, video, image, document, archive, program or other.
func (f *File) Kind() media.Kind { return media.KindOf(f.Name()) }

// Key returns the file's place in the order of a host's files.
func (f *File) Key() string { return part.PathKey(f.Path) }

// URL returns the address that a viewer opens.
func (f *File) URL() string { return FileURL(f.Host, f.Path) }

// FileURL returns the address of the file at path of a host.
func FileURL(host, path string) string {
	return strings.TrimSuffix(host, "/") + "/" + escapePath(path)
}

// escapePath escapes what would end or change the path of a URL and leaves
// letters of every script readable.
func escapePath(p string) string {
	const special = " %?#\"<>\\^`{|}"
	if !strings.ContainsAny(p, special) && !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return p
	}
	var b strings.Builder
	for i := range len(p) {
		if c := p[i]; c < ' ' || c == 0x7f || strings.IndexByte(special, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Field numbers of the stored form of a file. New fields get new numbers.
const (
	fieldSize = iota + 1
	fieldModified
	fieldSeen
	fieldTitle
	fieldArtist
	fieldAlbum
	fieldGenre
	fieldActors
	fieldText
	fieldShow
	fieldTrack
	fieldYear
	fieldSeason
	fieldEpisode
	fieldDuration
	fieldBitRate
	fieldWidth
	fieldHeight
	fieldRating
	fieldTagError
)

// AppendFile appends the stored form of f without host and path: pairs of a
// field number and a length-prefixed string or a varint. Zero values take no
// room.
func AppendFile(b []byte, f *File) []byte {
	m := &f.Media
	for _, v := range []struct {
		field int
		value int64
	}{
		{fieldSize, f.Size},
		{fieldModified, f.Modified},
		{fieldSeen, f.Seen},
		{fieldTrack, int64(m.Track)},
		{fieldYear, int64(m.Year)},
		{fieldSeason, int64(m.Season)},
		{fieldEpisode, int64(m.Episode)},
		{fieldDuration, m.Duration.Milliseconds()},
		{fieldBitRate, int64(m.BitRate)},
		{fieldWidth, int64(m.Width)},
		{fieldHeight, int64(m.Height)},
		{fieldRating, int64(math.Round(m.Rating * 100))},
	} {
		if v.value != 0 {
			b = binary.AppendUvarint(b, uint64(v.field)<<1)
			b = binary.AppendVarint(b, v.value)
		}
	}
	for _, v := range []struct {
		field int
		value string
	}{
		{fieldTitle, m.Title},
		{fieldArtist, m.Artist},
		{fieldAlbum, m.Album},
		{fieldGenre, m.Genre},
		{fieldShow, m.Show},
		{fieldActors, strings.Join(m.Actors, "\x00")},
		{fieldText, m.Text},
		{fieldTagError, f.TagError},
	} {
		if v.value != "" {
			b = binary.AppendUvarint(b, uint64(v.field)<<1|1)
			b = binary.AppendUvarint(b, uint64(len(v.value)))
			b = append(b, v.value...)
		}
	}
	return b
}

var errRecord = errors.New("stored file record is damaged")

// ParseFile reads what AppendFile wrote into f. Unknown fields are skipped.
func ParseFile(b []byte, f *File) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return errRecord
		}
		b = b[n:]
		if tag&1 == 0 {
			v, n := binary.Varint(b)
			if n <= 0 {
				return errRecord
			}
			b = b[n:]
			f.setNumber(int(tag>>1), v)
			continue
		}
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return errRecord
		}
		f.setString(int(tag>>1), string(b[n:n+int(size)]))
		b = b[n+int(size):]
	}
	return nil
}

func (f *File) setNumber(field int, v int64) {
	m := &f.Media
	switch field {
	case fieldSize:
		f.Size = v
	case fieldModified:
		f.Modified = v
	case fieldSeen:
		f.Seen = v
	case fieldTrack:
		m.Track = int(v)
	case fieldYear:
		m.Year = int(v)
	case fieldSeason:
		m.Season = int(v)
	case fieldEpisode:
		m.Episode = int(v)
	case fieldDuration:
		m.Duration = time.Duration(v) * time.Millisecond
	case fieldBitRate:
		m.BitRate = int(v)
	case fieldWidth:
		m.Width = int(v)
	case fieldHeight:
		m.Height = int(v)
	case fieldRating:
		m.Rating = float64(v) / 100
	}
}

func (f *File) setString(field int, s string) {
	m := &f.Media
	switch field {
	case fieldTitle:
		m.Title = s
	case fieldArtist:
		m.Artist = s
	case fieldAlbum:
		m.Album = s
	case fieldGenre:
		m.Genre = s
	case fieldShow:
		m.Show = s
	case fieldActors:
		m.Actors = strings.Split(s, "\x00")
	case fieldText:
		m.Text = s
	case fieldTagError:
		f.TagError = s
	}
}
