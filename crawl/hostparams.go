package crawl

import (
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/extract"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// hostParameters are the query parameters of one host. It belongs to the agent of the host.
type hostParameters struct {
	robot *Robot
	host  *store.Host
	void  []string // parameters that change nothing
	// requeue queues a URL that was stripped wrongly.
	requeue func(u weburl.URL, depth int, due time.Time)
}

// load takes over what the host's record says.
func (h *hostParameters) load(now time.Time) {
	h.void = nil
	for name, p := range h.host.Parameters {
		if p.IsVoid(now) {
			h.void = append(h.void, name)
		}
	}
	slices.Sort(h.void)
	h.robot.variants.publish(h.host.Name, h.void)
}

// strip returns a URL of the agent's host without the host's void parameters.
func (h *hostParameters) strip(u weburl.URL, depth int) weburl.URL {
	if len(h.void) == 0 || u.Query() == "" || u.Host() != h.host.Name {
		return u
	}
	for _, name := range h.void {
		if base, value, ok := withoutParameter(u, name); ok && h.robot.variants.strips(u, base, name, value, depth) {
			u = base
		}
	}
	return u
}

// noteVariant compares a page with those whose URLs differ from its own in one parameter,
// and learns from it.
func (h *hostParameters) noteVariant(u weburl.URL, b *pendingVisit, page *extract.Page, now time.Time) {
	kind := variantFetched
	if b.rendered != nil {
		kind, b.waits = variantRendered, false
	}
	if h.noteContent(u, kind, contentOf(page), b.waits, now) {
		b.first = true
	}
}

// Kinds of pages that are compared with each other.
const (
	variantFetched  = "fetched "
	variantRendered = "rendered "
)

// noteContent is noteVariant for any content. It reports whether the page is to be rendered
// soon, since its rendered text decides on a parameter.
func (h *hostParameters) noteContent(u weburl.URL, kind string, c variantContent, waits bool, now time.Time) (first bool) {
	r := h.robot
	for _, pair := range r.variants.note(u, kind, c, now) {
		near, equal := c.compare(pair.other.content)
		ev := h.host.Parameters[pair.name]
		switch {
		case !near:
			ev = store.Parameter{Contradicted: now}
		case c.length < minVariantText:
			continue
		default:
			ev.Agree(uint32(pair.base>>32), uint32((c.title^c.simhash)*hashSpread>>32), [2]uint32{uint32(pair.values[0] >> 32), uint32(pair.values[1] >> 32)}, equal && !waits)
		}
		h.set(pair.name, ev, now)
		if waits && ev.NeedsProof(now) && r.variants.promotes(h.host.Name, pair.name) {
			r.renders.promote(pair.other.key)
			first = true
		}
	}
	return first
}

// noteOutcome learns from a page that has no content: variants of one that does not exist, or
// that leads to its own variant, are pages of their own.
func (h *hostParameters) noteOutcome(p *store.Page, u weburl.URL, now time.Time) {
	switch p.State {
	case store.Gone:
		h.noteContent(u, variantFetched, goneContent, false, now)
	case store.Redirect:
		to, err := weburl.Parse(p.Location)
		if err != nil {
			return
		}
		for _, name := range parameterNames(to) {
			if base, _, ok := withoutParameter(to, name); ok && base == u {
				h.set(name, store.Parameter{Contradicted: now}, now)
			}
		}
	}
}

// set changes what is known of a parameter of the host.
func (h *hostParameters) set(name string, ev store.Parameter, now time.Time) {
	old, known := h.host.Parameters[name]
	if !known && len(h.host.Parameters) >= maxParameters {
		return
	}
	if h.host.Parameters == nil {
		h.host.Parameters = map[string]store.Parameter{}
	}
	h.host.Parameters[strings.Clone(name)] = ev
	if void := ev.IsVoid(now); void != old.IsVoid(now) {
		h.changed(name, void, now)
	}
}

// changed notes that a parameter has become void, or matters after all: then what was
// stripped is queued.
func (h *hostParameters) changed(name string, void bool, now time.Time) {
	r := h.robot
	h.load(now)
	r.config.Log.Info("query parameter", "host", h.host.Name, "parameter", name, "void", void)
	if void {
		if r.config.Render != nil {
			r.config.Render.Relearn(h.host.Name)
		}
		return
	}
	for _, s := range r.variants.takeStripped(h.host.Name, name) {
		h.requeue(s.url, s.depth, now)
	}
}
