package field

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/rng"
)

// Sighting is what somebody saw of a resource: a line of an access log or a
// visit of a robot.
type Sighting struct {
	Name    string
	Time    time.Time
	Status  int   // of HTTP; 0: no answer
	Size    int64 // bytes of the whole resource; negative: not told
	Changed *bool // whether it differed from the sighting before, if that was told
	Visitor bool  // a request of a visitor, not of a robot of ours
}

// Sightings makes a history of what was seen. A change happened at some moment
// between two sightings that differ: one is chosen uniformly, the same for the
// same seed. Resources that were never available are left out, and so are
// changes that came and went between two sightings: nobody saw them.
type Sightings struct {
	// Sort allows sightings out of order: they are sorted. Otherwise they are
	// an error.
	Sort bool
	// Length is the horizon in units after the first sighting; 0: a second
	// after the last one. Sightings beyond it are an error.
	Length float64
	Seed   uint64
	// Slack is by how many bytes two sizes may differ and be of the same content:
	// logs that count header fields (%O of Apache) have such sizes.
	Slack int64

	all     []sighting
	pages   map[string]uint32
	names   []string
	last    time.Time
	Skipped int // that tell nothing of a resource: redirects, bad requests
	Small   int // changes by at most Few bytes, after History
}

// Few is of so many bytes that header fields may make the difference.
const Few = 16

// maxSightings bounds what is held in memory.
const maxSightings = 20_000_000

// sighting is a Sighting kept small.
type sighting struct {
	nano    int64
	size    int64
	page    uint32
	kind    Kind // Same: available
	changed int8 // 1 yes, -1 no, 0 not told
	visitor bool
}

// Add takes a sighting.
func (s *Sightings) Add(v Sighting) error {
	kind, ok := kindOfStatus(v.Status)
	if !ok {
		s.Skipped++
		return nil
	}
	if v.Time.Before(s.last) && !s.Sort {
		return fmt.Errorf("%w: %s is before %s, the time of the entry before: out of order (--sort sorts them)", ErrInput, v.Time.Format(time.RFC3339), s.last.Format(time.RFC3339))
	}
	if y := v.Time.Year(); y < 1970 || y > 2200 {
		return fmt.Errorf("%w: the year %d", ErrInput, y)
	}
	if len(s.all) >= maxSightings {
		return fmt.Errorf("%w: more than %d entries", ErrInput, maxSightings)
	}
	s.last = v.Time
	if s.pages == nil {
		s.pages = map[string]uint32{}
	}
	p, ok := s.pages[v.Name]
	if !ok {
		p = uint32(len(s.names))
		name := strings.Clone(v.Name) // often a part of a whole line
		s.pages[name] = p
		s.names = append(s.names, name)
	}
	e := sighting{nano: v.Time.UnixNano(), size: v.Size, page: p, kind: kind, visitor: v.Visitor}
	if v.Changed != nil {
		e.changed = -1
		if *v.Changed {
			e.changed = 1
		}
	}
	s.all = append(s.all, e)
	return nil
}

// kindOfStatus maps a status of HTTP; not ok: it tells nothing of the resource.
func kindOfStatus(status int) (k Kind, ok bool) {
	switch {
	case status == 200 || status == 203 || status == 206 || status == 304:
		return Same, true
	case status == 401 || status == 403 || status == 451:
		return Forbidden, true
	case status == 404 || status == 410:
		return Missing, true
	case status >= 500 && status < 600, status == 0:
		return Failed, true
	}
	return 0, false
}

// seen is what is known of a resource while its sightings are gone through.
type seen struct {
	number    uint32 // in the history
	available bool   // ever
	size      int64  // last told, -1: never
	kind      Kind
	at        float64 // of the last sighting
	count     uint64
	visited   bool
}

// History makes the history.
func (s *Sightings) History() (*History, error) {
	if len(s.all) == 0 {
		return nil, fmt.Errorf("%w: no entry that tells of a resource", ErrInput)
	}
	if s.Sort {
		slices.SortStableFunc(s.all, func(a, b sighting) int { return cmp.Compare(a.nano, b.nano) })
	}
	h := &History{}
	pages := make([]seen, len(s.names))
	for i := range pages {
		pages[i].size = -1
	}
	for i := range s.all { // what was ever available, and the first size told
		e, p := &s.all[i], &pages[s.all[i].page]
		p.available = p.available || e.kind == Same
		if p.size < 0 && e.kind == Same {
			p.size = e.size
		}
	}
	for i := range pages {
		p := &pages[i]
		p.kind = Same
		if !p.available {
			continue
		}
		p.number = uint32(h.Pages())
		p.size = max(p.size, 0)
		if err := h.AddPage(s.names[i], clipSize(p.size)); err != nil {
			return nil, err
		}
	}
	return s.fillHistory(h, pages)
}

// fillHistory adds the events and ends the history.
func (s *Sightings) fillHistory(h *History, pages []seen) (*History, error) {
	first := s.all[0].nano
	units := func(nano int64) float64 { return float64(nano-first) / (Unit * 1e9) }
	var changes []Change
	for i := range s.all {
		e, p := &s.all[i], &pages[s.all[i].page]
		if !p.available {
			continue
		}
		t := units(e.nano)
		if k, size, differs := p.differsFrom(e, s.Slack); differs {
			if d := size - p.size; d != 0 && d <= Few && d >= -Few {
				s.Small++
			}
			when := p.at + rng.Unit(rng.Mix(s.Seed^uint64(e.page), p.count))*(t-p.at)
			changes = append(changes, Change{Time: when, Page: p.number, Kind: k, Size: clipSize(size)})
			p.kind, p.size = k, size
			p.count++
		}
		p.at, p.visited = t, true
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Time, b.Time) })
	for i := range s.all { // merge
		e, p := &s.all[i], &pages[s.all[i].page]
		t := units(e.nano)
		for len(changes) > 0 && changes[0].Time <= t {
			c := changes[0]
			changes = changes[1:]
			if err := h.AddChange(c.Time, c.Page, c.Kind, c.Size); err != nil {
				return nil, err
			}
		}
		if !p.available || !e.visitor {
			continue
		}
		if err := h.AddRequest(t, p.number); err != nil {
			return nil, err
		}
	}
	length := s.Length
	if length == 0 {
		length = units(s.all[len(s.all)-1].nano) + 1/Unit
	}
	return h, h.End(length)
}

// differsFrom reports whether a sighting shows a change of what was known, and which.
func (p *seen) differsFrom(e *sighting, slack int64) (k Kind, size int64, yes bool) {
	switch {
	case e.kind.Gone():
		return e.kind, p.size, e.kind != p.kind
	case e.changed < 0: // said to be as before
		return Same, p.size, p.kind.Gone()
	case e.size >= 0 && e.size < p.size-slack:
		return Shrunk, e.size, true
	case e.size > p.size+slack:
		return Grown, e.size, true
	case e.changed > 0 && p.visited: // the first sighting is always called a change
		return Grown, p.size, true // other bytes, as many
	}
	return Same, p.size, p.kind.Gone()
}
