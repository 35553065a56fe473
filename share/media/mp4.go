package media

import (
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// readMP4 reads the boxes of an ISO base media file: length, size of the picture,
// and the tags that iTunes invented. Media data is passed over.
func readMP4(r io.ReaderAt, size int64, in *Info) error {
	p := mp4{r: r, size: size, in: in, budget: 4000}
	err := p.walkBoxes(0, size, 0)
	if s := in.Duration.Seconds(); s > 0 {
		in.BitRate = int(float64(size) * 8 / s)
	}
	if !p.seen && err == nil {
		err = errors.New("no movie box")
	}
	return err
}

type mp4 struct {
	r      io.ReaderAt
	size   int64
	in     *Info
	budget int // boxes that may still be read
	seen   bool
}

// walkBoxes walks the boxes in [at, end).
func (p *mp4) walkBoxes(at, end int64, depth int) error {
	for at+8 <= end && depth < 10 {
		if p.budget--; p.budget < 0 {
			return errors.New("too many boxes")
		}
		h, err := readAtMost(p.r, at, 16)
		if err != nil || len(h) < 8 {
			return err
		}
		length, head := int64(binary.BigEndian.Uint32(h)), int64(8)
		switch {
		case length == 1 && len(h) == 16:
			length, head = int64(binary.BigEndian.Uint64(h[8:])), 16
		case length == 0:
			length = end - at
		}
		if length < head || length > end-at {
			return errors.New("a box larger than its place")
		}
		if err := p.readBox(string(h[4:8]), at+head, at+length, depth); err != nil {
			return err
		}
		at += length
	}
	return nil
}

func (p *mp4) readBox(kind string, at, end int64, depth int) error {
	switch kind {
	case "moov", "trak", "udta", "ilst":
		p.seen = p.seen || kind == "moov"
		return p.walkBoxes(at, end, depth+1)
	case "meta":
		return p.walkBoxes(at+4, end, depth+1)
	case "mvhd":
		return p.readMovieHeader(at)
	case "tkhd":
		return p.readTrackHeader(at, end)
	case "\xa9nam", "\xa9ART", "\xa9alb", "\xa9gen", "\xa9day", "trkn", "tvsh", "tvsn", "tves":
		return p.readTagBox(kind, at, end)
	}
	return nil
}

func (p *mp4) readMovieHeader(at int64) error {
	b, err := readAtMost(p.r, at, 32)
	if err != nil || len(b) < 32 {
		return err
	}
	scale, length := binary.BigEndian.Uint32(b[12:]), uint64(binary.BigEndian.Uint32(b[16:]))
	if b[0] == 1 {
		scale, length = binary.BigEndian.Uint32(b[20:]), binary.BigEndian.Uint64(b[24:])
	}
	if scale > 0 {
		p.in.Duration = time.Duration(float64(length) / float64(scale) * float64(time.Second))
	}
	return nil
}

func (p *mp4) readTrackHeader(at, end int64) error {
	b, err := readAtMost(p.r, end-8, 8) // width and height, 16.16, end the box
	if err != nil || len(b) < 8 || end-8 < at {
		return err
	}
	if w, h := int(binary.BigEndian.Uint32(b)>>16), int(binary.BigEndian.Uint32(b[4:])>>16); w*h > p.in.Width*p.in.Height {
		p.in.Width, p.in.Height = w, h
	}
	return nil
}

// readTagBox reads the data box in a tag's box.
func (p *mp4) readTagBox(kind string, at, end int64) error {
	b, err := readAtMost(p.r, at, int(min(end-at, 4*maxTag)))
	if err != nil || len(b) < 16 || string(b[4:8]) != "data" {
		return err
	}
	v := b[16:]
	number := 0
	for _, c := range v[:min(len(v), 4)] {
		number = number<<8 | int(c)
	}
	switch kind {
	case "\xa9nam":
		p.in.Title = string(v)
	case "\xa9ART":
		p.in.Artist = string(v)
	case "\xa9alb":
		p.in.Album = string(v)
	case "\xa9gen":
		p.in.Genre = string(v)
	case "\xa9day":
		p.in.Year = leadingInt(string(v))
	case "trkn":
		p.in.Track = number
	case "tvsh":
		p.in.Show = string(v)
	case "tvsn":
		p.in.Season = number
	case "tves":
		p.in.Episode = number
	}
	return nil
}
