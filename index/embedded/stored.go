package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"

	"github.com/freshet/freshet/index"
)

// A stored document is a head of 16 bytes, date (seconds, int64) and
// popularity (float64), then JSON. Ranking reads the heads of hundreds of hits
// for a query, JSON is decoded only of those shown.
const headSize = 16

var errDamaged = errors.New("the stored document is damaged")

func encode(d *index.Document) ([]byte, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	out := make([]byte, headSize, headSize+len(body))
	binary.LittleEndian.PutUint64(out, uint64(d.Date.Unix()))
	binary.LittleEndian.PutUint64(out[8:], math.Float64bits(clamp(d.Popularity)))
	return append(out, body...), nil
}

func decode(b []byte) (*index.Document, error) {
	if len(b) < headSize {
		return nil, errDamaged
	}
	var d index.Document
	if err := json.Unmarshal(b[headSize:], &d); err != nil {
		return nil, errors.Join(errDamaged, err)
	}
	return &d, nil
}

// headOf returns the date in seconds and the popularity of a stored document.
func headOf(b []byte) (date, popularity float64, err error) {
	if len(b) < headSize {
		return 0, 0, errDamaged
	}
	date = float64(int64(binary.LittleEndian.Uint64(b)))
	return date, math.Float64frombits(binary.LittleEndian.Uint64(b[8:])), nil
}

func clamp(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(1, max(0, v))
}
