package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/rwcarlsen/goexif/exif"
)

// readJPEG reads the size from the frame header and year, artist and description
// from Exif.
func readJPEG(r io.ReaderAt, size int64, in *Info) error {
	b, err := read(r, 0, 2)
	if err != nil {
		return err
	}
	if string(b) != "\xff\xd8" {
		return errors.New("no JPEG file")
	}
	at := int64(2)
	for range 100 {
		h, err := read(r, at, 9)
		if err != nil || len(h) < 4 || h[0] != 0xff {
			return err
		}
		length := int64(binary.BigEndian.Uint16(h[2:]))
		switch m := h[1]; {
		case m == 0xff: // fill
			at++
			continue
		case m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc:
			if len(h) == 9 {
				in.Height, in.Width = int(binary.BigEndian.Uint16(h[5:])), int(binary.BigEndian.Uint16(h[7:]))
			}
			return nil
		case m == 0xe1 && length > 8 && length < 64<<10:
			seg, err := read(r, at+4, int(length-2))
			if err != nil {
				return err
			}
			readExif(seg, in)
		case m == 0xda, m == 0xd9:
			return nil
		}
		at += 2 + length
	}
	return nil
}

func readExif(seg []byte, in *Info) {
	body, ok := bytes.CutPrefix(seg, []byte("Exif\x00\x00"))
	if !ok {
		return
	}
	x, err := exif.Decode(bytes.NewReader(body))
	if err != nil && exif.IsCriticalError(err) {
		return
	}
	if t, err := x.DateTime(); err == nil {
		in.Year = t.Year()
	}
	if t, err := x.Get(exif.ImageDescription); err == nil {
		in.Title, _ = t.StringVal()
	}
	if t, err := x.Get(exif.Artist); err == nil {
		in.Artist, _ = t.StringVal()
	}
}

func readPNG(r io.ReaderAt, _ int64, in *Info) error {
	b, err := read(r, 0, 24)
	if err != nil {
		return err
	}
	if len(b) < 24 || string(b[:8]) != "\x89PNG\r\n\x1a\n" {
		return errors.New("no PNG file")
	}
	in.Width, in.Height = int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
	return nil
}

func readGIF(r io.ReaderAt, _ int64, in *Info) error {
	b, err := read(r, 0, 10)
	if err != nil {
		return err
	}
	if len(b) < 10 || string(b[:3]) != "GIF" {
		return errors.New("no GIF file")
	}
	in.Width, in.Height = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	return nil
}
