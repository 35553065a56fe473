package testweb

import (
	"slices"

	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// Limits of the perfect robot.
const (
	maxHops  = 20 // redirects that it follows, as browsers do
	maxTries = 12 // visits to a page that fails, an hour or more apart
)

// Obtainable returns the number of pages that a perfect and obedient robot gets
// that starts at some pages: it asks again for what fails for a time, follows chains
// of redirects, runs scripts, walks into no trap; but it does not read what
// robots.txt forbids, follow links marked nofollow, find hosts without a name or
// mend broken answers. It costs about 20 us a page that is reachable.
func (w *Web) Obtainable(from []uint64) uint64 {
	seen := make([]uint64, (w.graph.Nodes()+63)/64)
	for _, u := range from {
		seen[u/64] |= 1 << (u % 64)
	}
	pages := uint64(0)
	var buf []uint64
	for stack := slices.Clone(from); len(stack) > 0; {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		var shown bool
		if buf, shown = w.obtainPage(u, buf[:0]); !shown {
			continue
		}
		pages++
		for _, v := range buf {
			if seen[v/64]&(1<<(v%64)) == 0 {
				seen[v/64] |= 1 << (v % 64)
				stack = append(stack, v)
			}
		}
	}
	return pages
}

// obtainPage gets a page as the perfect robot does and appends the pages that it may
// follow from there.
func (w *Web) obtainPage(page uint64, buf []uint64) (links []uint64, shown bool) {
	host := w.layout.Host(page)
	if !w.hostResolves(host) {
		return buf, false
	}
	dns := w.HostName(host)
	path := w.URL(page)[len("http://")+len(dns):]
	for try := range maxTries {
		now := float64(try*try) * 3601 // errors come in windows; the gaps between tries grow
		at := path
		for range maxHops {
			v := w.answerVisit(host, dns, origin{scheme: "http"}, at, "", now)
			r := v.r
			links, next := w.appendFollowable(v, page, buf), r.Location
			w.releaseVisit(v)
			switch {
			case r.Disallowed:
				return buf, false
			case r.Kind == truth.Page && r.Page != nil && r.Cut == 0:
				return links, true
			case r.Kind != truth.Redirect || next == "":
				next = ""
			}
			if next == "" {
				break
			}
			at = next
		}
	}
	return buf, false
}

// appendFollowable appends the successors of a page whose links a reply lets robots follow.
func (w *Web) appendFollowable(v *visit, page uint64, buf []uint64) []uint64 {
	p := v.r.Page
	if p == nil || p.Robots != "" {
		return buf
	}
	n := len(buf)
	buf = w.graph.Successors(page, buf)
	kept := n
	for i := n; i < len(buf); i++ { // behaviours only add links behind those of the graph
		if p.Links[i-n].Rel == "" {
			buf[kept] = buf[i]
			kept++
		}
	}
	return buf[:kept]
}

// hostResolves reports whether DNS ever tells a host's address.
func (w *Web) hostResolves(host uint64) bool {
	q := behaviour.Request{World: w, Seed: w.seed, Host: host}
	for _, b := range w.behaviour {
		if d, ok := b.Behaviour.(behaviour.DNS); ok {
			if f := d.DNS(&q); f.NXDomain || f.ServFail || f.Drop {
				return false
			}
		}
	}
	return true
}
