package media

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"time"
)

// IDs of the elements of Matroska (RFC 9559) that are read.
const (
	ebmlHeader   = 0x1A45DFA3
	segmentID    = 0x18538067
	seekHeadID   = 0x114D9B74
	seekID       = 0x4DBB
	seekName     = 0x53AB
	seekPosition = 0x53AC
	infoID       = 0x1549A966
	scaleID      = 0x2AD7B1
	durationID   = 0x4489
	titleID      = 0x7BA9
	tracksID     = 0x1654AE6B
	trackID      = 0xAE
	videoID      = 0xE0
	widthID      = 0xB0
	heightID     = 0xBA
	clusterID    = 0x1F43B675
	tagsID       = 0x1254C367
	tagID        = 0x7373
	simpleTagID  = 0x67C8
	tagName      = 0x45A3
	tagString    = 0x4487
)

// readMatroska reads length, size of the picture and tags. Clusters, which hold
// the media, are not entered: what comes behind them is found by the seek head.
func readMatroska(r io.ReaderAt, size int64, in *Info) error {
	m := matroska{r: r, size: size, in: in, scale: 1e6, budget: 3000}
	id, _, at, err := m.elementHead(0, size)
	if err != nil {
		return err
	}
	if id != ebmlHeader {
		return errors.New("no Matroska file")
	}
	_, length, _, _ := m.elementHead(0, size)
	id, length, body, err := m.elementHead(at+length, size)
	if err != nil {
		return err
	}
	if id != segmentID {
		return errors.New("no segment")
	}
	m.segment = body
	err = m.walkElements(body, min(size, body+length), 0)
	if m.tags > 0 && m.tags < size {
		if id, length, at, terr := m.elementHead(m.tags, size); terr == nil && id == tagsID {
			err = errors.Join(err, m.walkElements(at, min(size, at+length), 1))
		}
	}
	in.Duration = time.Duration(m.duration * m.scale)
	if s := in.Duration.Seconds(); s > 0 {
		in.BitRate = int(float64(size) * 8 / s)
	}
	return err
}

type matroska struct {
	r        io.ReaderAt
	size     int64
	in       *Info
	segment  int64
	tags     int64 // where the tags are, by the seek head
	scale    float64
	duration float64
	name     string // of the tag under way
	seek     []byte // ID that a seek entry is for
	budget   int
}

// elementHead reads the head of the element at off: ID, length of its body, where the
// body begins. An unknown length reaches to the end.
func (m *matroska) elementHead(off, end int64) (id, length, body int64, err error) {
	if m.budget--; m.budget < 0 {
		return 0, 0, 0, errors.New("too many elements")
	}
	b, err := readAtMost(m.r, off, 12)
	if err != nil {
		return 0, 0, 0, err
	}
	n := vintLength(b)
	if n == 0 || n > 4 || len(b) < n+1 {
		return 0, 0, 0, errors.New("no element")
	}
	for _, c := range b[:n] {
		id = id<<8 | int64(c)
	}
	l := vintLength(b[n:])
	if l == 0 || len(b) < n+l {
		return 0, 0, 0, errors.New("no length")
	}
	length = int64(b[n]) & (1<<(8-l) - 1)
	unknown := length == 1<<(8-l)-1
	for _, c := range b[n+1 : n+l] {
		length = length<<8 | int64(c)
		unknown = unknown && c == 0xff
	}
	body = off + int64(n+l)
	if unknown || length < 0 || length > end-body {
		length = max(0, end-body)
	}
	return id, length, body, nil
}

// vintLength returns the length of a variable-length number by its first byte, 0 none.
func vintLength(b []byte) int {
	if len(b) == 0 || b[0] == 0 {
		return 0
	}
	n := 1
	for mask := byte(0x80); b[0]&mask == 0; mask >>= 1 {
		n++
	}
	return n
}

func (m *matroska) walkElements(at, end int64, depth int) error {
	for at < end {
		id, length, body, err := m.elementHead(at, end)
		if err != nil {
			return err
		}
		switch id {
		case clusterID:
			if depth == 0 {
				return nil // the media begins; the seek head knows what follows
			}
		case infoID, tracksID, trackID, videoID, seekHeadID, seekID, tagsID, tagID, simpleTagID:
			if depth < 6 {
				if err := m.walkElements(body, body+length, depth+1); err != nil {
					return err
				}
			}
		default:
			if err := m.readElementValue(id, body, length); err != nil {
				return err
			}
		}
		at = body + length
	}
	return nil
}

// readElementValue takes an element that holds a value.
func (m *matroska) readElementValue(id, at, length int64) error {
	switch id {
	case scaleID, durationID, titleID, widthID, heightID, seekName, seekPosition, tagName, tagString:
	default:
		return nil
	}
	b, err := readAtMost(m.r, at, int(min(length, 4*maxTag)))
	if err != nil {
		return err
	}
	n := int64(0)
	for _, c := range b[:min(len(b), 8)] {
		n = n<<8 | int64(c)
	}
	switch id {
	case scaleID:
		m.scale = float64(n)
	case durationID:
		switch len(b) {
		case 4:
			m.duration = float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
		case 8:
			m.duration = math.Float64frombits(binary.BigEndian.Uint64(b))
		}
		if math.IsNaN(m.duration) || m.duration < 0 || m.duration > 1e12 {
			m.duration = 0
		}
	case titleID:
		m.in.Title = strings.TrimRight(string(b), "\x00")
	case widthID:
		m.in.Width = max(m.in.Width, int(n))
	case heightID:
		m.in.Height = max(m.in.Height, int(n))
	case seekName:
		m.seek = b
	case seekPosition:
		if len(m.seek) == 4 && binary.BigEndian.Uint32(m.seek) == tagsID && n > 0 && n < m.size {
			m.tags = m.segment + n
		}
	case tagName:
		m.name = strings.TrimRight(string(b), "\x00")
	case tagString:
		m.in.setTag(m.name, strings.TrimRight(string(b), "\x00"))
	}
	return nil
}
