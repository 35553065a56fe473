package pack

import (
	"fmt"
	"slices"

	"github.com/freshet/freshet/lab/webgraph/bitcode"
)

// FormatError says where the bits of lists are wrong.
type FormatError struct {
	Page uint64
	Why  string
}

func (e *FormatError) Error() string { return fmt.Sprintf("list of page %d: %s", e.Page, e.Why) }

// Reader reads lists. It is for one goroutine. Lists in ascending order are read
// at the speed of decoding; for any other half a group is decoded.
type Reader struct {
	l     *Lists
	in    *bitcode.Reader
	group int64 // that is being decoded, -1: none
	done  int   // pages of it that are
	site  int
	next  uint32 // see encoder.group
	lists []uint32
	ends  [groupPages + 1]uint32 // of each page in lists
	long  [groupPages]uint64     // where a long list begins that was skipped, plus 1
	far   []uint32               // a long list
	farOf int64                  // whose
}

// NewReader returns a reader.
func (l *Lists) NewReader() *Reader {
	return &Reader{l: l, in: bitcode.NewReader(l.bits), group: -1, farOf: -1}
}

// List returns the list of page u, ascending. The slice is valid until the next
// call. An error is a *FormatError.
func (r *Reader) List(u uint32) ([]uint32, error) {
	i := int(u % groupPages)
	if g := int64(u / groupPages); g != r.group {
		r.seekGroup(g)
	}
	for r.done <= i {
		if err := r.decodeNextList(uint32(r.group)*groupPages + uint32(r.done)); err != nil {
			r.group = -1
			return nil, err
		}
	}
	if at := r.long[i]; at > 0 {
		if r.farOf != int64(u) {
			if err := r.decodeLong(u, at-1); err != nil {
				return nil, err
			}
		}
		return r.far, nil
	}
	return r.lists[r.ends[i]:r.ends[i+1]:r.ends[i+1]], nil
}

// seekGroup goes to the beginning of a group.
func (r *Reader) seekGroup(g int64) {
	r.group, r.done, r.next, r.lists = g, 0, 0, r.lists[:0]
	r.in.Pos, r.in.Bad = r.l.places.Get(uint64(g)), false
	r.site = r.l.sites.siteIndex(uint32(g) * groupPages)
}

// readToken reads a number of a table.
func (r *Reader) readToken(table int) int { return r.l.codes[table].Read(r.in) }

// readLogNumber reads a number by its logarithm.
func (r *Reader) readLogNumber(table int) uint64 { return r.l.codes[table].ReadLog(r.in) }

// decodeNextList reads the list of the next page of the group.
func (r *Reader) decodeNextList(u uint32) error {
	lo, hi := r.l.sites.siteSpan(r.site)
	for u >= hi {
		r.site++
		lo, hi = r.l.sites.siteSpan(r.site)
		r.next = 0
	}
	i := r.done
	ref := r.readToken(refTable)
	r.long[i] = 0
	switch {
	case ref == groupPages:
		size := r.in.Bits(longBits)
		r.long[i] = r.in.Pos + 1
		r.in.Skip(size)
	case ref > i:
		return &FormatError{uint64(u), "it is copied from a list that is not there"}
	default:
		var err error
		if r.lists, err = r.decodeList(u, lo, hi, ref, &r.next, r.lists); err != nil {
			return err
		}
	}
	if r.in.Bad {
		return &FormatError{uint64(u), "the file ends or is damaged"}
	}
	r.done++
	r.ends[r.done] = uint32(len(r.lists))
	return nil
}

// decodeLong reads a long list.
func (r *Reader) decodeLong(u uint32, at uint64) (err error) {
	in, bad := r.in.Pos, r.in.Bad
	r.in.Pos, r.in.Bad, r.farOf = at, false, -1
	lo, hi := r.l.sites.siteSpan(r.l.sites.siteIndex(u))
	next := uint32(0)
	if r.far, err = r.decodeList(u, lo, hi, 0, &next, r.far[:0]); err == nil {
		r.farOf = int64(u)
	}
	r.in.Pos, r.in.Bad = in, bad
	return err
}

// decodeList appends the list of page u, copied from ref pages before, to buf.
func (r *Reader) decodeList(u, lo, hi uint32, ref int, next *uint32, buf []uint32) ([]uint32, error) {
	from := len(buf)
	copied := 0
	if ref > 0 {
		copied = 1
		model := buf[r.ends[r.done-ref]:r.ends[r.done-ref+1]]
		var err error
		if buf, err = r.decodeCopied(u, model, buf); err != nil {
			return buf, err
		}
	}
	local, cross := r.readLogNumber(localCountTable+copied), r.readLogNumber(crossCountTable+copied)
	if r.in.Bad || local > uint64(hi-lo) || cross > r.l.nodes || local+cross > r.l.links {
		return buf, &FormatError{uint64(u), fmt.Sprintf("%d links inside the site and %d to others, or the file ends", local, cross)}
	}
	sorted := len(buf) == from
	if local > 0 {
		var err error
		if buf, err = r.decodeSiteLinks(u, lo, hi, local, next, buf); err != nil {
			return buf, err
		}
	}
	if cross > 0 {
		sorted = sorted && local == 0 && r.l.ranks == nil
		var err error
		if buf, err = r.decodeCrossLinks(u, cross, buf); err != nil {
			return buf, err
		}
	}
	if r.in.Bad {
		return buf, &FormatError{uint64(u), "the file ends or is damaged"}
	}
	list := buf[from:]
	if !sorted {
		sortList(list)
	}
	for i := 1; i < len(list); i++ {
		if list[i] <= list[i-1] {
			return buf, &FormatError{uint64(u), fmt.Sprintf("page %d is in it twice", list[i])}
		}
	}
	return buf, nil
}

// sortList sorts a list, which is mostly short and two or three ascending parts.
func sortList(v []uint32) {
	if len(v) > 32 {
		slices.Sort(v)
		return
	}
	for i := 1; i < len(v); i++ {
		x, j := v[i], i
		for ; j > 0 && v[j-1] > x; j-- {
			v[j] = v[j-1]
		}
		v[j] = x
	}
}

// decodeCopied appends what is copied of model.
func (r *Reader) decodeCopied(u uint32, model, buf []uint32) ([]uint32, error) {
	blocks := r.readLogNumber(blocksTable)
	if blocks > uint64(len(model)) {
		return buf, &FormatError{uint64(u), fmt.Sprintf("%d blocks of a list of %d", blocks, len(model))}
	}
	for i := range blocks {
		var n uint64
		switch {
		case i == 0:
			n = r.readLogNumber(blockTable)
		case i%2 == 1:
			n = r.readLogNumber(blockTable+1) + 1
		default:
			n = r.readLogNumber(blockTable+2) + 1
		}
		if n > uint64(len(model)) {
			return buf, &FormatError{uint64(u), "a block is longer than the list that it is of"}
		}
		if i%2 == 0 {
			buf = append(buf, model[:n]...)
		}
		model = model[n:]
	}
	if blocks%2 == 0 {
		buf = append(buf, model...)
	}
	return buf, nil
}

// decodeSiteLinks appends n links inside the site lo to hi.
func (r *Reader) decodeSiteLinks(u, lo, hi uint32, n uint64, next *uint32, buf []uint32) ([]uint32, error) {
	outside := &FormatError{uint64(u), "a link leads out of the site"}
	at := uint64(lo)
	followed, first := false, true
	for n > 0 {
		class, ahead := r.l.codes[localTable+gapContext(uint64(hi)-at, n)].ReadAhead(r.in)
		if class >= runClass && class < nextClass {
			least, width := bitcode.UnLog(class - runClass)
			run := least + ahead>>(64-width) + 1
			r.in.Skip(uint64(width))
			if first || run > n || at+run > uint64(hi) {
				return buf, outside
			}
			for range run {
				buf = append(buf, uint32(at))
				at++
			}
			n -= run
			if followed || run > 1 {
				*next = uint32(at) - lo
				followed = false
			}
			continue
		}
		v := at
		followed = false
		switch {
		case class < gapClasses:
			least, width := bitcode.UnLog(class)
			v += least + ahead>>(64-width)
			r.in.Skip(uint64(width))
		case class < nearClass:
			v = uint64(lo) + uint64(*next) + uint64(class-nextClass)
			followed = true
			*next = uint32(v) + 1 - lo
		default:
			v = uint64(u) + uint64(class-nearClass) - nearPages
		}
		if v < at || v >= uint64(hi) {
			return buf, outside
		}
		buf = append(buf, uint32(v))
		at = v + 1
		n--
		first = false
	}
	return buf, nil
}

// decodeCrossLinks appends n links to other sites.
func (r *Reader) decodeCrossLinks(u uint32, n uint64, buf []uint32) ([]uint32, error) {
	at, nodes := uint64(0), r.l.nodes
	before := rankClasses
	for ; n > 0; n-- {
		v := at
		if ranks := r.l.ranks; ranks == nil {
			v += r.readLogNumber(crossTable + gapContext(nodes-at, n))
			at = v + 1
		} else {
			class := uint8(r.readToken(rankTable + before))
			before = int(class)
			size := ranks.classSize(class)
			if size == 0 {
				return buf, &FormatError{uint64(u), "a class of popularity has no pages"}
			}
			if v = r.in.Below(size); class > 0 {
				v = ranks.members[class].Get(v)
			}
		}
		if v >= nodes {
			return buf, &FormatError{uint64(u), "a link leads out of the web"}
		}
		buf = append(buf, uint32(v))
	}
	return buf, nil
}
