package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// readMP3 reads an ID3v2 tag at the beginning (id3.org, versions 2.2 to 2.4), an
// ID3v1 tag at the end if there is none, and the length from the first frames.
func readMP3(r io.ReaderAt, size int64, in *Info) error {
	head, err := readAtMost(r, 0, 10)
	if err != nil {
		return err
	}
	audio := int64(0)
	if len(head) == 10 && string(head[:3]) == "ID3" {
		n := syncsafeInt(head[6:10])
		audio = int64(n) + 10
		if err := readID3v2(r, head, n, in); err != nil && in.Title == "" {
			return err
		}
	}
	end := size
	if in.Title == "" && size > 128 {
		b, err := readAtMost(r, size-128, 128)
		if err != nil {
			return err
		}
		if len(b) == 128 && string(b[:3]) == "TAG" {
			readID3v1(b, in)
			end -= 128
		}
	}
	return readMPEG(r, audio, end, in)
}

func syncsafeInt(b []byte) int {
	return int(b[0]&0x7f)<<21 | int(b[1]&0x7f)<<14 | int(b[2]&0x7f)<<7 | int(b[3]&0x7f)
}

// readID3v2 walks the frames by their headers and reads the text frames alone;
// covers are passed over, not read.
func readID3v2(r io.ReaderAt, head []byte, n int, in *Info) error {
	version := head[3]
	if version < 2 || version > 4 {
		return errors.New("ID3v2 tag of an unknown version")
	}
	header, at, end := 10, int64(10), int64(10+n)
	if version == 2 {
		header = 6
	}
	if head[5]&0x40 != 0 && version > 2 { // extended header
		b, err := readAtMost(r, at, 4)
		if err != nil || len(b) < 4 {
			return err
		}
		if version == 4 {
			at += int64(syncsafeInt(b))
		} else {
			at += 4 + int64(binary.BigEndian.Uint32(b))
		}
	}
	for range 200 {
		b, err := readAtMost(r, at, header)
		if err != nil || len(b) < header || b[0] == 0 || at+int64(header) > end {
			return err
		}
		var id string
		var length int64
		switch version {
		case 2:
			id, length = string(b[:3]), int64(b[3])<<16|int64(b[4])<<8|int64(b[5])
		case 3:
			id, length = string(b[:4]), int64(binary.BigEndian.Uint32(b[4:]))
		default:
			id, length = string(b[:4]), int64(syncsafeInt(b[4:8]))
		}
		at += int64(header)
		if f := id3Frames[id]; f != nil && length > 1 {
			text, err := readAtMost(r, at, int(min(length, 4*maxTag)))
			if err != nil {
				return err
			}
			if head[5]&0x80 != 0 {
				text = bytes.ReplaceAll(text, []byte{0xff, 0}, []byte{0xff})
			}
			f(in, id3Text(text))
		}
		at += length
	}
	return nil
}

var id3Frames = func() map[string]func(*Info, string) {
	title := func(in *Info, s string) { in.Title = s }
	artist := func(in *Info, s string) { in.Artist = s }
	album := func(in *Info, s string) { in.Album = s }
	year := func(in *Info, s string) { in.Year = leadingInt(s) }
	track := func(in *Info, s string) { in.Track = leadingInt(s) }
	genre := func(in *Info, s string) { in.Genre = s }
	length := func(in *Info, s string) { in.Duration = time.Duration(leadingInt(s)) * time.Millisecond }
	return map[string]func(*Info, string){
		"TIT2": title, "TT2": title, "TPE1": artist, "TP1": artist, "TALB": album, "TAL": album, "TDRC": year, "TYER": year, "TYE": year,
		"TRCK": track, "TRK": track, "TCON": genre, "TCO": genre, "TLEN": length,
	}
}()

// id3Text decodes a text frame: a byte of encoding, then text; the first of
// several values.
func id3Text(b []byte) string {
	if len(b) == 0 {
		return "" // the file ends before the frame's text
	}
	encoding, b := b[0], b[1:]
	var s string
	switch encoding {
	case 1, 2:
		big := encoding == 2
		if len(b) >= 2 && b[0] == 0xfe && b[1] == 0xff {
			big, b = true, b[2:]
		} else if len(b) >= 2 && b[0] == 0xff && b[1] == 0xfe {
			big, b = false, b[2:]
		}
		u := make([]uint16, len(b)/2)
		for i := range u {
			if big {
				u[i] = binary.BigEndian.Uint16(b[2*i:])
			} else {
				u[i] = binary.LittleEndian.Uint16(b[2*i:])
			}
		}
		s = string(utf16.Decode(u))
	case 3:
		s = string(b)
	default:
		s = decodeLegacy(bytes.TrimRight(b, "\x00"))
	}
	s, _, _ = strings.Cut(s, "\x00")
	return strings.TrimSpace(s)
}

func leadingInt(s string) int {
	s = strings.TrimSpace(s)
	n := 0
	for n < len(s) && n < 8 && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	v, _ := strconv.Atoi(s[:n])
	return v
}

func readID3v1(b []byte, in *Info) {
	field := func(from, to int) string {
		return strings.TrimSpace(decodeLegacy(bytes.TrimRight(b[from:to], "\x00 ")))
	}
	in.Title, in.Artist, in.Album, in.Year = field(3, 33), field(33, 63), field(63, 93), leadingInt(string(b[93:97]))
	if b[125] == 0 && b[126] != 0 {
		in.Track = int(b[126])
	}
	in.Genre = strconv.Itoa(int(b[127]))
}

// Bit rates in kbit/s by layer (I, II, III) of MPEG 1, and of MPEG 2 and 2.5.
var (
	rates1 = [3][16]int{
		{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0},
		{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0},
	}
	rates2 = [3][16]int{
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0},
	}
	samplings = [3]int{44100, 48000, 32000}
)

// readMPEG finds the first frame and takes length and bit rate from a Xing, Info
// or VBRI header in it, else from its own bit rate and the file's size.
func readMPEG(r io.ReaderAt, off, end int64, in *Info) error {
	b, err := readAtMost(r, off, 4096)
	if err != nil {
		return err
	}
	for i := 0; i+4 <= len(b); i++ {
		h := binary.BigEndian.Uint32(b[i:])
		if h>>21 != 0x7ff {
			continue
		}
		version, layer, rate, sampling := h>>19&3, 4-int(h>>17&3), int(h>>12&15), int(h>>10&3)
		if version == 1 || layer == 4 || rate == 0 || rate == 15 || sampling == 3 {
			continue
		}
		hz, kbit, samples := samplings[sampling], rates1[layer-1][rate], 1152
		if version != 3 {
			kbit = rates2[layer-1][rate]
			hz /= 2
			if version == 0 {
				hz /= 2
			}
			if layer == 3 {
				samples = 576
			}
		}
		if layer == 1 {
			samples = 384
		}
		if frames, bytes := variableRate(b[i:]); frames > 0 {
			in.Duration = time.Duration(float64(frames) * float64(samples) / float64(hz) * float64(time.Second))
			if bytes == 0 {
				bytes = end - off
			}
			in.BitRate = int(float64(bytes) * 8 / in.Duration.Seconds())
			return nil
		}
		in.BitRate = kbit * 1000
		if in.Duration == 0 && end > off {
			in.Duration = time.Duration(float64(end-off-int64(i)) * 8 / float64(in.BitRate) * float64(time.Second))
		}
		return nil
	}
	return errors.New("no MPEG frame where audio should begin")
}

// variableRate returns the counts of frames and bytes that a Xing, Info or VBRI
// header tells.
func variableRate(frame []byte) (frames, size int64) {
	frame = frame[:min(len(frame), 200)]
	for _, name := range []string{"Xing", "Info"} {
		if i := bytes.Index(frame, []byte(name)); i >= 0 && i+16 <= len(frame) {
			flags := binary.BigEndian.Uint32(frame[i+4:])
			if flags&1 != 0 {
				frames = int64(binary.BigEndian.Uint32(frame[i+8:]))
			}
			if flags&3 == 3 {
				size = int64(binary.BigEndian.Uint32(frame[i+12:]))
			}
			return frames, size
		}
	}
	if i := bytes.Index(frame, []byte("VBRI")); i >= 0 && i+18 <= len(frame) {
		return int64(binary.BigEndian.Uint32(frame[i+14:])), int64(binary.BigEndian.Uint32(frame[i+10:]))
	}
	return 0, 0
}

// genreName turns ID3's numbers, "17" or "(17)", into the names of the standard list.
func genreName(s string) string {
	t := strings.TrimSpace(s)
	if i := strings.IndexByte(t, ')'); strings.HasPrefix(t, "(") && i > 0 {
		if rest := strings.TrimSpace(t[i+1:]); rest != "" {
			return rest
		}
		t = t[1:i]
	}
	if n, err := strconv.Atoi(t); err == nil {
		if n >= 0 && n < len(genres) {
			return genres[n]
		}
		return ""
	}
	return s
}

var genres = strings.Split("Blues,Classic rock,Country,Dance,Disco,Funk,Grunge,Hip-hop,Jazz,Metal,New age,Oldies,Other,Pop,Rhythm and blues,Rap,Reggae,Rock,Techno,Industrial,Alternative,Ska,Death metal,Pranks,Soundtrack,Euro-techno,Ambient,Trip-hop,Vocal,Jazz & funk,Fusion,Trance,Classical,Instrumental,Acid,House,Game,Sound clip,Gospel,Noise,Alternative rock,Bass,Soul,Punk,Space,Meditative,Instrumental pop,Instrumental rock,Ethnic,Gothic,Darkwave,Techno-industrial,Electronic,Pop-folk,Eurodance,Dream,Southern rock,Comedy,Cult,Gangsta,Top 40,Christian rap,Pop/funk,Jungle,Native US,Cabaret,New wave,Psychedelic,Rave,Showtunes,Trailer,Lo-fi,Tribal,Acid punk,Acid jazz,Polka,Retro,Musical,Rock 'n' roll,Hard rock", ",")
