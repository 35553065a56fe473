package share

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/freshet/freshet/share/part"
)

// AppendPart appends the stored form of a part, about 100 bytes and its names.
func AppendPart(b []byte, s *PartState) []byte {
	for _, v := range []string{s.Part.Folder, s.Part.Left, s.Part.Right} {
		b = binary.AppendUvarint(b, uint64(len(v)))
		b = append(b, v...)
	}
	b = binary.BigEndian.AppendUint64(b, s.Sum.Hash.High)
	b = binary.BigEndian.AppendUint64(b, s.Sum.Hash.Low)
	for _, v := range []int64{s.Sum.Files, s.Sum.Folders, s.Sum.Media, s.Sum.Bytes, int64(s.Sum.Time), s.Changed, int64(s.Refused)} {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// ParsePart reads what AppendPart wrote.
func ParsePart(b []byte) (PartState, error) {
	var s PartState
	damaged := fmt.Errorf("stored part record is damaged")
	for _, v := range []*string{&s.Part.Folder, &s.Part.Left, &s.Part.Right} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return s, damaged
		}
		*v = string(b[n : n+int(size)])
		b = b[n+int(size):]
	}
	if len(b) < 16 {
		return s, damaged
	}
	s.Sum.Hash = part.Hash{High: binary.BigEndian.Uint64(b), Low: binary.BigEndian.Uint64(b[8:])}
	b = b[16:]
	var took int64
	for _, v := range []*int64{&s.Sum.Files, &s.Sum.Folders, &s.Sum.Media, &s.Sum.Bytes, &took, &s.Changed} {
		x, n := binary.Varint(b)
		if n <= 0 {
			return s, damaged
		}
		*v = x
		b = b[n:]
	}
	if len(b) > 0 { // earlier programs wrote none
		refused, _ := binary.Varint(b)
		s.Refused = uint32(refused)
	}
	s.Sum.Time = time.Duration(took)
	return s, nil
}

// AppendHost appends the stored form of a host: its visits packed, the rest as
// JSON.
func AppendHost(b []byte, h Host) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(len(h.Visits)))
	for _, v := range h.Visits {
		b = binary.BigEndian.AppendUint64(b, v.Part)
		b = binary.AppendVarint(b, v.Last)
		b = binary.AppendUvarint(b, uint64(len(v.History)))
		b = append(b, v.History...)
	}
	h.Visits = nil
	rest, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("store host %s: %w", h.Name, err)
	}
	return append(b, rest...), nil
}

// ParseHost reads what AppendHost wrote.
func ParseHost(b []byte) (Host, error) {
	damaged := fmt.Errorf("stored host record is damaged")
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return Host{}, damaged
	}
	b = b[n:]
	visits := make([]Visit, 0, count)
	for range count {
		if len(b) < 8 {
			return Host{}, damaged
		}
		v := Visit{Part: binary.BigEndian.Uint64(b)}
		b = b[8:]
		v.Last, n = binary.Varint(b)
		if n <= 0 {
			return Host{}, damaged
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return Host{}, damaged
		}
		v.History = append([]byte(nil), b[n:n+int(size)]...)
		b = b[n+int(size):]
		visits = append(visits, v)
	}
	var h Host
	if err := json.Unmarshal(b, &h); err != nil {
		return Host{}, fmt.Errorf("%w: %w", damaged, err)
	}
	if len(visits) > 0 {
		h.Visits = visits
	}
	return h, nil
}
