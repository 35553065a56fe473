package gen

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// blockPages is the number of pages that are computed as one piece of work.
const blockPages = 1 << 13

// computed is a web whose links are functions of the page.
type computed interface {
	// fillBlock computes the links of consecutive pages. It may be called concurrently.
	fillBlock(job)
}

// block is a piece of a computed web.
type block struct {
	degrees []uint32
	links   []uint32
	done    chan struct{}
}

// storeComputed writes a computed web: blocks of pages are computed on all cores and
// written in order.
func storeComputed(ctx context.Context, p *Plan, s Sink, progress func(int64)) error {
	workers := runtime.GOMAXPROCS(0)
	group, ctx := errgroup.WithContext(ctx)
	blocks := (p.Nodes + blockPages - 1) / blockPages
	work := make(chan job)
	order := make(chan *block, 2*workers) // bounds what is in memory
	group.Go(func() error {
		defer close(work)
		defer close(order)
		for i := range blocks {
			b := &block{done: make(chan struct{})}
			select {
			case order <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case work <- job{b, uint64(i * blockPages), uint64(min((i+1)*blockPages, p.Nodes))}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range workers {
		group.Go(func() error {
			for j := range work {
				p.web.fillBlock(j)
				close(j.block.done)
			}
			return nil
		})
	}
	group.Go(func() error {
		done := int64(0)
		for b := range order {
			select {
			case <-b.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			at := uint32(0)
			for _, d := range b.degrees {
				if err := s.Append(b.links[at : at+d]); err != nil {
					return err
				}
				at += d
			}
			done += int64(len(b.degrees))
			progress(done)
		}
		return ctx.Err()
	})
	return group.Wait()
}

// job is a block and the pages it is to hold.
type job struct {
	block    *block
	from, to uint64
}

// fillBlock computes a block.
func (h *HostLocal) fillBlock(j job) {
	at := h.placeOf(h.layout.Host(j.from))
	var buf []uint64
	for u := j.from; u < j.to; u++ {
		if u-at.first >= at.pages {
			at = h.placeOf(at.site + 1)
		}
		buf = h.appendSuccessors(u, &at, buf[:0])
		for _, v := range buf {
			j.block.links = append(j.block.links, uint32(v))
		}
		j.block.degrees = append(j.block.degrees, uint32(len(buf)))
	}
}

// fillBlock computes a block.
func (m *Matched) fillBlock(j job) {
	var buf []uint64
	for u := j.from; u < j.to; u++ {
		buf = m.Successors(u, buf[:0])
		for _, v := range buf {
			j.block.links = append(j.block.links, uint32(v))
		}
		j.block.degrees = append(j.block.degrees, uint32(len(buf)))
	}
}
