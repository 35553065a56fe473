// Package media tells what a file of a share is: its kind by its name, its tags
// by a few ranged reads, the words of a document, and the title - song, episode,
// film - that it is a copy of.
package media

import (
	"strings"
	"time"
)

// Kind is a rough class of files.
type Kind string

// Kinds.
const (
	Audio    Kind = "audio"
	Video    Kind = "video"
	Image    Kind = "image"
	Document Kind = "document"
	Archive  Kind = "archive"
	Program  Kind = "program"
	Other    Kind = "other"
)

// Info is what was read from inside a file, or is known about it from beside it.
// Zero values are unknown.
type Info struct {
	Title, Artist, Album, Genre string
	Show                        string // series that an episode belongs to
	Track, Year                 int
	Season, Episode             int
	Duration                    time.Duration
	BitRate                     int // bits per second
	Width, Height               int // pixels
	Rating                      float64
	Actors                      []string
	Text                        string // the beginning of a document's words
	// Problem, if not "", is the code of why the file exceeded a limit or broke its
	// parser. It is not stored with the tags.
	Problem string
}

var kinds = map[Kind]string{
	Audio:    "mp3 flac ogg oga opus m4a m4b aac wma wav aif aiff ape wv mpc mid midi mka ac3 dts",
	Video:    "mp4 m4v mkv avi mov wmv flv webm mpg mpeg m2ts mts vob ts 3gp ogv divx rm rmvb",
	Image:    "jpg jpeg png gif bmp tif tiff webp heic raw cr2 nef arw dng svg psd ico",
	Document: "pdf doc docx odt rtf txt md html htm xhtml epub fb2 djvu xls xlsx ods csv ppt pptx odp tex chm",
	Archive:  "zip rar 7z gz tgz bz2 xz tar zst iso img nrg mdf cab lzh arj",
	Program:  "exe msi apk deb rpm dmg jar appimage bat sh dll",
}

// kindByExt is read-only after the program starts.
var kindByExt = func() map[string]Kind {
	m := map[string]Kind{}
	for k, list := range kinds {
		for _, e := range strings.Fields(list) {
			m[e] = k
		}
	}
	return m
}()

// Ext returns the extension of a name in lower case without its dot, "" if
// there is none that looks like one.
func Ext(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 || len(name)-i > 12 || i == len(name)-1 {
		return ""
	}
	return strings.ToLower(name[i+1:])
}

// KindOf returns the kind of a file by its name.
func KindOf(name string) Kind {
	if k, ok := kindByExt[Ext(name)]; ok {
		return k
	}
	return Other
}

// Readable reports whether there is something to read inside a file of this
// name: tags or text.
func Readable(name string) bool {
	_, ok := readers[Ext(name)]
	return ok
}
