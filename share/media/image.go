package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/bep/imagemeta"
)

// readJPEG reads the size from the frame header and year, artist and description
// from Exif.
func readJPEG(r io.ReaderAt, size int64, in *Info) error {
	b, err := readAtMost(r, 0, 2)
	if err != nil {
		return err
	}
	if string(b) != "\xff\xd8" {
		return errors.New("no JPEG file")
	}
	at := int64(2)
	for range 100 {
		h, err := readAtMost(r, at, 9)
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
			seg, err := readAtMost(r, at+4, int(length-2))
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

// readExif reads year, artist and description of the Exif block of one segment.
// The library is given that segment alone, as an image without pixels.
func readExif(seg []byte, in *Info) {
	if !bytes.HasPrefix(seg, []byte("Exif\x00\x00")) {
		return
	}
	image := append([]byte{0xff, 0xd8, 0xff, 0xe1}, binary.BigEndian.AppendUint16(nil, uint16(len(seg)+2))...)
	image = append(append(image, seg...), 0xff, 0xd9)
	year := 0
	// Damage: what was read until then counts.
	_, _ = imagemeta.Decode(imagemeta.Options{
		R: &meteredReader{Reader: bytes.NewReader(image), left: 32 * len(image)}, ImageFormat: imagemeta.JPEG, Sources: imagemeta.EXIF,
		LimitNumTags: 500, LimitTagSize: 4 * maxTag,
		ShouldHandleTag: func(t imagemeta.TagInfo) bool {
			switch t.Tag {
			case "DateTimeOriginal", "DateTime", "ModifyDate", "ImageDescription", "Artist":
				return true
			}
			return false
		},
		HandleTag: func(t imagemeta.TagInfo) error {
			value, _ := t.Value.(string)
			switch t.Tag {
			case "DateTimeOriginal":
				year = leadingInt(value)
			case "DateTime", "ModifyDate":
				if year == 0 {
					year = leadingInt(value)
				}
			case "ImageDescription":
				in.Title = value
			case "Artist":
				in.Artist = value
			}
			return nil
		},
	})
	in.Year = year
}

// meteredReader ends a parser that goes round in circles: each seek and each read
// costs, and what is left is bounded by the length of the input.
type meteredReader struct {
	*bytes.Reader
	left int
}

func (m *meteredReader) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	if m.left -= max(n, 16); m.left < 0 {
		return 0, errCircles
	}
	return n, err
}

func (m *meteredReader) Seek(at int64, whence int) (int64, error) {
	if m.left -= 16; m.left < 0 {
		return 0, errCircles
	}
	return m.Reader.Seek(at, whence)
}

var errCircles = errors.New("the file is read again and again")

func readPNG(r io.ReaderAt, _ int64, in *Info) error {
	b, err := readAtMost(r, 0, 24)
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
	b, err := readAtMost(r, 0, 10)
	if err != nil {
		return err
	}
	if len(b) < 10 || string(b[:3]) != "GIF" {
		return errors.New("no GIF file")
	}
	in.Width, in.Height = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	return nil
}
