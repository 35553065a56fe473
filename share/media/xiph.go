package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"time"
)

// readFLAC reads the metadata blocks of a FLAC file (RFC 9639): stream info and
// comments; pictures are passed over.
func readFLAC(r io.ReaderAt, size int64, in *Info) error {
	at := int64(0)
	if b, err := readAtMost(r, 0, 10); err != nil {
		return err
	} else if len(b) == 10 && string(b[:3]) == "ID3" {
		at = int64(syncsafeInt(b[6:10])) + 10
	}
	b, err := readAtMost(r, at, 4)
	if err != nil {
		return err
	}
	if string(b) != "fLaC" {
		return errors.New("no FLAC stream")
	}
	at += 4
	for range 64 {
		h, err := readAtMost(r, at, 4)
		if err != nil || len(h) < 4 {
			return err
		}
		length := int64(h[1])<<16 | int64(h[2])<<8 | int64(h[3])
		switch h[0] & 0x7f {
		case 0:
			b, err := readAtMost(r, at+4, 18)
			if err != nil || len(b) < 18 {
				return err
			}
			rate := int64(b[10])<<12 | int64(b[11])<<4 | int64(b[12])>>4
			samples := int64(b[13]&15)<<32 | int64(binary.BigEndian.Uint32(b[14:]))
			in.setSamples(samples, rate, size)
		case 4:
			b, err := readAtMost(r, at+4, int(min(length, 64<<10)))
			if err != nil {
				return err
			}
			readComments(b, in)
		}
		if h[0]&0x80 != 0 {
			return nil
		}
		at += 4 + length
	}
	return nil
}

func (in *Info) setSamples(samples, rate, size int64) {
	if samples <= 0 || rate <= 0 {
		return
	}
	in.Duration = time.Duration(float64(samples) / float64(rate) * float64(time.Second))
	if s := in.Duration.Seconds(); s > 0 {
		in.BitRate = int(float64(size) * 8 / s)
	}
}

// readComments reads Vorbis comments: a vendor string, a count, NAME=value each
// with its length before it.
func readComments(b []byte, in *Info) {
	next := func() ([]byte, bool) {
		if len(b) < 4 {
			return nil, false
		}
		n := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if uint64(n) > uint64(len(b)) {
			return nil, false
		}
		s := b[:n]
		b = b[n:]
		return s, true
	}
	if _, ok := next(); !ok || len(b) < 4 {
		return
	}
	count := binary.LittleEndian.Uint32(b)
	b = b[4:]
	for range min(count, 1000) {
		s, ok := next()
		if !ok {
			return
		}
		name, value, _ := strings.Cut(string(s[:min(len(s), 4*maxTag)]), "=")
		in.setTag(name, value)
	}
}

// setTag sets a tag by its Vorbis or Matroska name; the first of several stays.
func (in *Info) setTag(name, value string) {
	first := func(s *string) {
		if *s == "" {
			*s = value
		}
	}
	switch strings.ToUpper(name) {
	case "TITLE":
		first(&in.Title)
	case "ARTIST":
		first(&in.Artist)
	case "ALBUM":
		first(&in.Album)
	case "GENRE":
		first(&in.Genre)
	case "SHOW", "TVSHOW":
		first(&in.Show)
	case "DATE", "YEAR", "DATE_RELEASED":
		in.Year = leadingInt(value)
	case "TRACKNUMBER", "PART_NUMBER":
		in.Track = leadingInt(value)
	case "ACTOR", "PERFORMER":
		if len(in.Actors) < 20 {
			in.Actors = append(in.Actors, value)
		}
	}
}

// readOgg reads the first packets of an Ogg stream (RFC 3533): Vorbis, Opus or
// FLAC; its length is the position of the last page.
func readOgg(r io.ReaderAt, size int64, in *Info) error {
	b, err := readAtMost(r, 0, 64<<10)
	if err != nil {
		return err
	}
	var packets []byte
	at, serial := 0, uint32(0)
	for at+27 <= len(b) && string(b[at:at+4]) == "OggS" {
		n := int(b[at+26])
		if at+27+n > len(b) {
			break
		}
		body := 0
		for _, l := range b[at+27 : at+27+n] {
			body += int(l)
		}
		page := binary.LittleEndian.Uint32(b[at+14:])
		if at == 0 {
			serial = page
		}
		from := at + 27 + n
		if page == serial && len(packets) < 48<<10 {
			packets = append(packets, b[from:min(len(b), from+body)]...)
		}
		at = from + body
	}
	if len(packets) == 0 {
		return errors.New("no Ogg stream")
	}
	rate := int64(0)
	switch {
	case bytes.HasPrefix(packets, []byte("\x01vorbis")) && len(packets) > 16:
		rate = int64(binary.LittleEndian.Uint32(packets[12:]))
	case bytes.HasPrefix(packets, []byte("OpusHead")):
		rate = 48000
	}
	for _, mark := range []string{"\x03vorbis", "OpusTags"} {
		if i := bytes.Index(packets, []byte(mark)); i >= 0 {
			readComments(packets[i+len(mark):], in)
		}
	}
	tail, err := readAtMost(r, max(0, size-(32<<10)), 32<<10)
	if err != nil {
		return err
	}
	if i := bytes.LastIndex(tail, []byte("OggS")); i >= 0 && i+14 <= len(tail) {
		in.setSamples(int64(binary.LittleEndian.Uint64(tail[i+6:])), rate, size)
	}
	return nil
}
