package behaviour

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/freshet/freshet/lab/testweb/truth"
)

// calendar gives hosts a calendar with a page for every month there will ever be.
type calendar struct {
	Scope `yaml:",inline"`
}

func newCalendar() *calendar { return &calendar{Scope{Hosts: .1, Pages: .3}} }

const calendarPath = "/calendar/"

// Apply implements Behaviour.
func (b *calendar) Apply(q *Request, r *Reply) bool {
	if !b.ofHost(q) {
		return false
	}
	if year, month, ok := calendarMonth(q.Path); ok {
		n := year*12 + month - 1
		r.setExtraPage(q, truth.Trap, b.pathKey(q), monthPath(n-1), monthPath(n+1), monthPath(n+12), "/")
		return true
	}
	if r.Page == nil || !b.ofPage(q) {
		return false
	}
	r.addLink(q, monthPath(2026*12), "")
	return true
}

func monthPath(n int) string {
	return fmt.Sprintf("%s%04d/%02d.html", calendarPath, max(n, 0)/12, max(n, 0)%12+1)
}

func calendarMonth(path string) (year, month int, ok bool) {
	rest, ok := strings.CutPrefix(path, calendarPath)
	if !ok {
		return 0, 0, false
	}
	y, m, _ := strings.Cut(strings.TrimSuffix(rest, ".html"), "/")
	year, errY := strconv.Atoi(y)
	month, errM := strconv.Atoi(m)
	return year, month, errY == nil && errM == nil && year >= 0 && year < 1e6 && month >= 1 && month <= 12
}
