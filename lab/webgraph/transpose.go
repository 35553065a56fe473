package webgraph

import "context"

// transposedInMemory returns the links the other way round, in memory.
func transposedInMemory(r rows) rows {
	t := rows{make([]uint64, len(r.starts)), make([]uint32, len(r.links))}
	countIn(r, t.starts)
	next := append([]uint64(nil), t.starts...)
	for u := range len(r.starts) - 1 {
		for _, v := range r.linksOf(uint32(u)) {
			t.links[next[v]] = uint32(u)
			next[v]++
		}
	}
	return t
}

// countIn counts the links to each page and adds them up, into starts, which is
// zero.
func countIn(r rows, starts []uint64) {
	for _, v := range r.links {
		starts[v+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
}

// transposeInSlices gives the links to all pages to emit, in the order of the pages, in
// slices of budget links (more if one page has more) and pages at most. Instead of
// sorting on disk it reads the links once for each slice: the readings are in
// order and cost less than writing the links once. done is told of progress, in
// links read.
func transposeInSlices(ctx context.Context, r rows, starts []uint64, budget uint64, emit func([]uint32) error, done func(int64)) error {
	n := len(r.starts) - 1
	var slice []uint32
	var next []uint32
	for a := 0; a < n; {
		b := a + 1
		for b < n && starts[b+1]-starts[a] <= budget && uint64(b-a) < budget {
			b++
		}
		size := starts[b] - starts[a]
		if uint64(cap(slice)) < size {
			slice = make([]uint32, size)
		}
		slice = slice[:size]
		next = append(next[:0], make([]uint32, b-a)...)
		lo, width := uint32(a), uint32(b-a)
		for u := range n {
			if u&(1<<20-1) == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				done(int64(r.starts[u]))
			}
			for _, v := range r.linksOf(uint32(u)) {
				if d := v - lo; d < width {
					slice[starts[v]-starts[lo]+uint64(next[d])] = uint32(u)
					next[d]++
				}
			}
		}
		if err := emit(slice); err != nil {
			return err
		}
		a = b
	}
	return nil
}

// transposePasses returns how many times transpose will read the links.
func transposePasses(starts []uint64, budget uint64) int64 {
	return int64(max(starts[len(starts)-1], uint64(len(starts)))/budget) + 1
}
