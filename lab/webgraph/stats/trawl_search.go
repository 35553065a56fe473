package stats

import (
	"context"
	"slices"
)

// settleCores looks at every fan and centre that lost links: those with too few are
// removed, those with exactly enough are settled.
func (b *bipartite) settleCores(ctx context.Context, res *Trawled) error {
	for i := 0; len(b.dirty) > 0; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e := b.dirty[len(b.dirty)-1]
		b.dirty = b.dirty[:len(b.dirty)-1]
		if e.centre {
			b.settleCentre(res, e.page)
		} else {
			b.settleFan(res, e.page)
		}
	}
	return nil
}

func (b *bipartite) settleFan(res *Trawled, u uint32) {
	centres := b.fans.listOf(u)
	switch {
	case !b.fans.hasList(u) || len(centres) > b.opt.Centres:
		return
	case len(centres) == b.opt.Centres:
		if fans := b.centres.commonToAll(centres); len(fans) >= b.opt.Fans {
			b.takeCore(res, fans, slices.Clone(centres))
			return
		}
	}
	b.removeFan(u)
}

func (b *bipartite) settleCentre(res *Trawled, v uint32) {
	fans := b.centres.listOf(v)
	switch {
	case !b.centres.hasList(v) || len(fans) > b.opt.Fans:
		return
	case len(fans) == b.opt.Fans:
		if centres := b.fans.commonToAll(fans); len(centres) >= b.opt.Centres {
			b.takeCore(res, slices.Clone(fans), centres)
			return
		}
	}
	b.removeCentre(v)
}

// takeCore notes a core, with all centres that its fans share, and removes its fans.
func (b *bipartite) takeCore(res *Trawled, fans, centres []uint32) {
	res.Count++
	res.Covered += int64(len(fans))
	c := BipartiteCore{Fans: fans, Centres: b.fans.commonToAll(fans)}
	if len(c.Centres) < len(centres) {
		c.Centres = centres
	}
	if len(fans)*len(c.Centres) > len(res.Largest.Fans)*len(res.Largest.Centres) {
		res.Largest = c
	}
	if len(res.Each) < b.opt.Keep {
		res.Each = append(res.Each, c)
	}
	for _, u := range fans {
		b.removeFan(u)
	}
}

func (b *bipartite) removeFan(u uint32) {
	for _, v := range b.fans.listOf(u) {
		b.centres.removeFromList(v, u)
		b.dirty = append(b.dirty, endpoint{v, true})
	}
	b.fans.removeList(u)
}

func (b *bipartite) removeCentre(v uint32) {
	for _, u := range b.centres.listOf(v) {
		b.fans.removeFromList(u, v)
		b.dirty = append(b.dirty, endpoint{u, false})
	}
	b.centres.removeList(v)
}

// intersectSorted appends to buf what is in both ascending lists. buf may be a[:0].
func intersectSorted(buf, a, b []uint32) []uint32 {
	j := 0
	for _, v := range a {
		for j < len(b) && b[j] < v {
			j++
		}
		if j < len(b) && b[j] == v {
			buf = append(buf, v)
		}
	}
	return buf
}

// searchCore looks for a core that fan u is in: a set of its centres that have
// enough fans in common, depth first; sets of centres whose common fans are
// already too few are not continued. It returns nil if there is none or steps
// are used up.
func (b *bipartite) searchCore(u uint32, steps *int) (fans, centres []uint32) {
	all := b.fans.listOf(u)
	// Centres with few fans first: they cut most.
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y uint32) int { return len(b.centres.listOf(x)) - len(b.centres.listOf(y)) })
	chosen := make([]uint32, 0, b.opt.Centres)
	var down func(i int, shared []uint32) []uint32
	down = func(i int, shared []uint32) []uint32 {
		if len(chosen) == b.opt.Centres {
			return shared
		}
		for ; i <= len(all)-(b.opt.Centres-len(chosen)); i++ {
			if *steps--; *steps <= 0 {
				return nil
			}
			next := b.centres.listOf(all[i])
			if shared != nil {
				next = intersectSorted(nil, shared, next)
			}
			if len(next) < b.opt.Fans {
				continue
			}
			chosen = append(chosen, all[i])
			if found := down(i+1, next); found != nil {
				return found
			}
			chosen = chosen[:len(chosen)-1]
		}
		return nil
	}
	if shared := down(0, nil); shared != nil {
		slices.Sort(chosen)
		return slices.Clone(shared), chosen
	}
	return nil, nil
}
