package monitor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/freshet/freshet/lab/field"
)

// crew is a budget: so many downloads at a time, or one at a time over a line
// of so many bytes a second, or so many conditional requests a second, one
// after the other.
type crew struct {
	size int
	line float64
	turn float64 // units from request to request, 0 where they are not the budget
	busy int
}

// readCrew reads "3", or "20000B/s", "20kB/s", "1.5MB/s".
func readCrew(s string) (crew, error) {
	text, isLine := strings.CutSuffix(s, "B/s")
	if !isLine {
		n, err := parseRobotCount(s)
		return crew{size: n}, err
	}
	unit := 1.
	if t, ok := strings.CutSuffix(text, "k"); ok {
		text, unit = t, 1e3
	} else if t, ok := strings.CutSuffix(text, "M"); ok {
		text, unit = t, 1e6
	}
	v, err := strconv.ParseFloat(text, 64)
	if v *= unit; err != nil || !(v > 0) || v > 1e15 {
		return crew{}, fmt.Errorf("budget %q is neither a number of downloaders nor bytes a second like 20kB/s", s)
	}
	return crew{size: 1, line: v}, nil
}

// readVisitBudget reads what readCrew does, or "12/s".
func readVisitBudget(s string) (crew, error) {
	text, ok := strings.CutSuffix(s, "/s")
	if !ok || strings.HasSuffix(text, "B") {
		return readCrew(s)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 1e-9 && v <= 1e6) {
		return crew{}, fmt.Errorf("budget %q is no number of requests a second from 1e-9 to 1e6 like 12/s", s)
	}
	return crew{size: 1, turn: 1 / (v * field.Unit)}, nil
}

// beginQuery begins a visit that begins with a question: a probe, after which what
// changed is downloaded, or a request that brings what changed at once.
func (c *crew) beginQuery(s *Sim, page uint32) {
	c.busy++
	if c.turn > 0 {
		s.meter.probes++
		s.After(c.turn, asked, 0, page)
		return
	}
	s.Probe(asked, 0, page)
}

// finishQuery goes on with such a visit: it reports whether the page changed, and
// whether a download takes its time now. The downloader is free else.
func (c *crew) finishQuery(s *Sim, page uint32) (news, more bool) {
	news = s.Stale(page)
	if news && c.turn > 0 {
		s.Brought(0, page)
	} else if news && s.Download(0, page) {
		return news, true
	}
	c.busy--
	return news, false
}

// Line returns bytes a second, 0 where downloads take the model's times.
func (c *crew) Line() float64 { return c.line }

// hasFreeDownloader reports whether a download can begin.
func (c *crew) hasFreeDownloader() bool { return c.busy < c.size }

// fifo is a queue of pages.
type fifo struct {
	buf  []uint32
	head int
	n    int
}

func (q *fifo) pushPage(p uint32) {
	if q.n == len(q.buf) {
		next := make([]uint32, max(16, 2*len(q.buf)))
		k := copy(next, q.buf[q.head:])
		copy(next[k:], q.buf[:q.head])
		q.buf, q.head = next, 0
	}
	q.buf[(q.head+q.n)%len(q.buf)] = p
	q.n++
}

func (q *fifo) popPage() uint32 {
	p := q.buf[q.head]
	q.head = (q.head + 1) % len(q.buf)
	q.n--
	return p
}

// set is a set of pages.
type set []uint64

func newSet(pages int) set { return make(set, (pages+63)/64) }

func (s set) containsPage(p uint32) bool { return s[p/64]>>(p%64)&1 != 0 }
func (s set) insertPage(p uint32)        { s[p/64] |= 1 << (p % 64) }
func (s set) removePage(p uint32)        { s[p/64] &^= 1 << (p % 64) }
