package media

import (
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// readAVI reads the main header and the INFO list of a RIFF AVI file.
func readAVI(r io.ReaderAt, size int64, in *Info) error {
	b, err := readAtMost(r, 0, 12)
	if err != nil {
		return err
	}
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:]) != "AVI " {
		return errors.New("no AVI file")
	}
	chunks := 2000
	err = readChunks(r, 12, size, in, &chunks, 0)
	if s := in.Duration.Seconds(); s > 0 {
		in.BitRate = int(float64(size) * 8 / s)
	}
	return err
}

func readChunks(r io.ReaderAt, at, end int64, in *Info, budget *int, depth int) error {
	for at+8 <= end && depth < 4 {
		if *budget--; *budget < 0 {
			return nil
		}
		h, err := readAtMost(r, at, 12)
		if err != nil || len(h) < 8 {
			return err
		}
		length := int64(binary.LittleEndian.Uint32(h[4:]))
		body := at + 8
		if string(h[:4]) == "LIST" && len(h) == 12 {
			switch string(h[8:]) {
			case "hdrl", "INFO":
				if err := readChunks(r, body+4, min(end, body+length), in, budget, depth+1); err != nil {
					return err
				}
			}
		} else if err := readChunk(r, string(h[:4]), body, length, in); err != nil {
			return err
		}
		at = body + length + length&1
	}
	return nil
}

func readChunk(r io.ReaderAt, id string, at, length int64, in *Info) error {
	switch id {
	case "avih", "INAM", "IART", "IGNR", "ICRD", "IPRD":
	default:
		return nil
	}
	b, err := readAtMost(r, at, int(min(length, 4*maxTag)))
	if err != nil {
		return err
	}
	text := func() string {
		for i, c := range b {
			if c == 0 {
				return decodeLegacy(b[:i])
			}
		}
		return decodeLegacy(b)
	}
	switch id {
	case "avih":
		if len(b) >= 40 {
			u := func(i int) int64 { return int64(binary.LittleEndian.Uint32(b[i:])) }
			in.Duration = time.Duration(u(0)) * time.Microsecond * time.Duration(u(16))
			in.Width, in.Height = int(u(32)), int(u(36))
		}
	case "INAM":
		in.Title = text()
	case "IART":
		in.Artist = text()
	case "IGNR":
		in.Genre = text()
	case "ICRD":
		in.Year = leadingInt(text())
	case "IPRD":
		in.Album = text()
	}
	return nil
}
