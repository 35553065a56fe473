package emulate

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// readTruthLog returns what the truth log says of the robot's visits since the start.
func (r *run) readTruthLog(file *os.File, start time.Time) ([]monitor.Fetch, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	log, err := truth.NewReader(file)
	if err != nil {
		return nil, err
	}
	var out []monitor.Fetch
	busy := make([]float64, max(1, r.robots)) // until when each robot was
	for {
		rec, err := log.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if (rec.Agent != agent && r.scheduled == nil) || rec.Time.Before(start) || rec.Status == 0 {
			continue
		}
		if r.scheduled != nil && rec.Kind != truth.Page {
			continue // it looks for robots.txt, too
		}
		if rec.Kind != truth.Page || rec.Page < 0 {
			return nil, fmt.Errorf("the robot was told something that is no page: %s %s, %d", rec.Host, rec.Path, rec.Status)
		}
		v := r.recordToFetch(&rec, start)
		if r.robots > 0 {
			v.Begin = min(busy[v.Agent]+moment, v.Known)
			busy[v.Agent] = v.End
		}
		out = append(out, v)
	}
}

// moment is a time so short that it only orders.
const moment = 1e-6

// recordToFetch turns a record into a visit. The log tells when the page was looked up,
// behind the pace: that is when what the robot learned was true.
func (r *run) recordToFetch(rec *truth.Record, start time.Time) monitor.Fetch {
	known := float64(rec.Time.Sub(start)) / float64(r.Unit)
	v := monitor.Fetch{
		Begin: known, Known: known, End: known + rec.Duration/r.Unit.Seconds(), Page: uint32(rec.Page), Bytes: rec.Bytes,
		Asked: r.kind != "plain", Got: rec.Status == http.StatusOK, Gone: rec.Status >= 400,
	}
	if v.Gone {
		v.Bytes = 0 // as in the model
	}
	if r.robots > 0 {
		shares := monitor.Shares(len(r.urls), r.robots)
		i, found := slices.BinarySearch(shares, v.Page)
		if !found {
			i--
		}
		v.Agent = uint32(i)
	}
	return v
}
