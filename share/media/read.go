package media

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"

	"github.com/freshet/freshet/extract/pdftext"
)

// reader reads what a file of some type says of itself. It bounds what it reads
// and takes every input.
type reader func(r io.ReaderAt, size int64, in *Info) error

// readers by extension. A new type is a function and a line here.
var readers = map[string]reader{
	"mp3": readMP3, "flac": readFLAC, "ogg": readOgg, "oga": readOgg, "opus": readOgg, "ogv": readOgg,
	"m4a": readMP4, "m4b": readMP4, "mp4": readMP4, "m4v": readMP4, "mov": readMP4, "3gp": readMP4,
	"mkv": readMatroska, "webm": readMatroska, "mka": readMatroska, "avi": readAVI,
	"jpg": readJPEG, "jpeg": readJPEG, "png": readPNG, "gif": readGIF,
	"pdf":  nil, // needs the pool of a Reader
	"docx": readDOCX, "odt": readODT, "txt": readText, "md": readText, "html": readHTML, "htm": readHTML, "xhtml": readHTML,
}

// Reader reads what files say of themselves.
type Reader struct {
	PDF *pdftext.Pool // nil leaves out PDF documents
}

// ParserFailed is the Problem of a file on which a parser panicked.
const ParserFailed = "parser-failed"

// Read reads tags or text of the file named name. What a damaged file says is
// kept as far as it was read; the error says what was not. A file that exceeds
// limits of its own format, or on which a parser panics, has a Problem, too.
func (rd Reader) Read(ctx context.Context, name string, r io.ReaderAt, size int64) (in Info, err error) {
	ext := Ext(name)
	read, ok := readers[ext]
	if !ok {
		return in, nil
	}
	if ext == "pdf" {
		read = func(r io.ReaderAt, size int64, in *Info) error { return readPDF(ctx, rd.PDF, r, size, in) }
	}
	return readGuarded(ext, read, r, size)
}

// readGuarded reads a file; a panic of its parser is an error of that file alone.
func readGuarded(ext string, read reader, r io.ReaderAt, size int64) (in Info, err error) {
	defer func() {
		if p := recover(); p != nil {
			in.Problem, err = ParserFailed, fmt.Errorf("damaged %s file: %v", ext, p)
		}
		in.cleanTexts()
	}()
	err = read(r, size, &in)
	return in, err
}

// MaxText bounds the text that is kept of a document.
const MaxText = 8 << 10

// maxTag bounds one tag.
const maxTag = 500

// cleanTexts makes every text valid, bounded and without control characters.
func (in *Info) cleanTexts() {
	for _, s := range []*string{&in.Title, &in.Artist, &in.Album, &in.Genre, &in.Show} {
		*s = tidyText(*s, maxTag)
	}
	for i := range in.Actors {
		in.Actors[i] = tidyText(in.Actors[i], maxTag)
	}
	in.Text = tidyText(in.Text, MaxText)
	in.Genre = genreName(in.Genre)
	if in.Year < 1000 || in.Year > 2999 {
		in.Year = 0
	}
	in.Track, in.Season, in.Episode = boundedNumber(in.Track), boundedNumber(in.Season), boundedNumber(in.Episode)
	if in.Duration < 0 || in.Duration.Hours() > 10_000 {
		in.Duration = 0
	}
	in.BitRate = max(0, in.BitRate)
	if in.Width < 0 || in.Height < 0 || in.Width > 1<<20 || in.Height > 1<<20 {
		in.Width, in.Height = 0, 0
	}
}

func boundedNumber(n int) int {
	if n < 0 || n > 10_000 {
		return 0
	}
	return n
}

// tidyText returns s as valid UTF-8 in NFC with single spaces, at most limit bytes.
func tidyText(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit]
	}
	s = norm.NFC.String(strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError }), " ")
	for len(s) > limit {
		_, n := utf8.DecodeLastRuneInString(s[:limit])
		s = s[:limit-n]
	}
	return s
}

// readAtMost returns n bytes at off, fewer at the file's end.
func readAtMost(r io.ReaderAt, off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	m, err := r.ReadAt(b, off)
	if err == io.EOF {
		err = nil
	}
	return b[:m], err
}

// decodeLegacy decodes text of an unknown 8-bit encoding: UTF-8 if it is valid, else
// Windows-1251 where most letters are not ASCII, Windows-1257 where it has letters
// of Lithuanian or Latvian that no western text has, else Windows-1252.
func decodeLegacy(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	high, ascii, baltic := 0, 0, 0
	for _, c := range b {
		switch {
		case c >= 0xC0 || c == 0xA8 || c == 0xB8:
			high++
			if c == 0xF0 || c == 0xFE || c == 0xD0 || c == 0xDE {
				baltic++
			}
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			ascii++
		}
	}
	m := charmap.Windows1252
	if high > ascii {
		m = charmap.Windows1251
	} else if baltic > 0 {
		m = charmap.Windows1257
	}
	s, err := m.NewDecoder().String(string(b))
	if err != nil {
		return ""
	}
	return s
}
