package postings

import "encoding/binary"

// skipSize is the length of a skip entry.
const skipSize = 20

// skipEntry describes a block of a long list. A block holds no absolute
// number, so a merge copies it and changes only its entry.
type skipEntry struct {
	first, last uint32 // documents
	at          uint32 // of the documents and codes, from the end of the skip entries
	positionsAt uint32 // of the positions, from the end of all codes
	impact      uint16
	count       uint8
}

func (s skipEntry) appendSkip(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, s.first)
	dst = binary.LittleEndian.AppendUint32(dst, s.last)
	dst = binary.LittleEndian.AppendUint32(dst, s.at)
	dst = binary.LittleEndian.AppendUint32(dst, s.positionsAt)
	dst = binary.LittleEndian.AppendUint16(dst, s.impact)
	return append(dst, s.count, 0)
}

// readSkip reads an entry; b has skipSize bytes.
func readSkip(b []byte) skipEntry {
	return skipEntry{
		first: binary.LittleEndian.Uint32(b), last: binary.LittleEndian.Uint32(b[4:]),
		at: binary.LittleEndian.Uint32(b[8:]), positionsAt: binary.LittleEndian.Uint32(b[12:]),
		impact: binary.LittleEndian.Uint16(b[16:]), count: b[18],
	}
}

// Writer writes the list of one term after the other. Its buffers are reused.
type Writer struct {
	// ImpactOf bounds what a document with a code can score, see Cursor.Bound.
	ImpactOf func(doc, code uint32) uint16

	skips     []skipEntry
	blocks    []byte // documents and codes
	positions []byte

	docs, codes, gaps []uint32 // of the block that is not full yet
	places            []uint32 // gaps between positions of that block
	impact            uint16
	count             int
	hasPositions      bool
}

// Begin starts a list, with or without positions.
func (w *Writer) Begin(hasPositions bool) {
	w.skips, w.blocks, w.positions = w.skips[:0], w.blocks[:0], w.positions[:0]
	w.docs, w.codes, w.places = w.docs[:0], w.codes[:0], w.places[:0]
	w.impact, w.count, w.hasPositions = 0, 0, hasPositions
}

// Count is how many documents the list has so far.
func (w *Writer) Count() int { return w.count }

// Add appends a document behind the last one. Positions ascend and are as many
// as the code's total.
func (w *Writer) Add(doc, code uint32, positions []uint32) {
	w.docs = append(w.docs, doc)
	w.codes = append(w.codes, code)
	w.impact = max(w.impact, w.ImpactOf(doc, code))
	if w.hasPositions {
		last := uint32(0)
		for _, p := range positions {
			w.places = append(w.places, p-last)
			last = p
		}
	}
	if w.count++; len(w.docs) == BlockSize {
		w.endBlock()
	}
}

// endBlock encodes the pending documents.
func (w *Writer) endBlock() {
	n := len(w.docs)
	if n == 0 {
		return
	}
	w.skips = append(w.skips, skipEntry{
		first: w.docs[0], last: w.docs[n-1], at: uint32(len(w.blocks)), positionsAt: uint32(len(w.positions)), impact: w.impact, count: uint8(n),
	})
	w.blocks = w.appendBlock(w.blocks)
	w.positions = appendPositions(w.positions, w.places)
	w.docs, w.codes, w.places, w.impact = w.docs[:0], w.codes[:0], w.places[:0], 0
}

// appendBlock appends the gaps between the pending documents and their codes.
func (w *Writer) appendBlock(dst []byte) []byte {
	w.gaps = w.gaps[:0]
	for i := 1; i < len(w.docs); i++ {
		w.gaps = append(w.gaps, w.docs[i]-w.docs[i-1]-1)
	}
	return AppendBlock(AppendBlock(dst, w.gaps), w.codes)
}

// appendPositions appends the gaps of all positions of a block.
func appendPositions(dst []byte, gaps []uint32) []byte {
	for len(gaps) > BlockSize {
		dst = AppendBlock(dst, gaps[:BlockSize])
		gaps = gaps[BlockSize:]
	}
	return AppendBlock(dst, gaps)
}

// copyLimit is how many full blocks a list must have for a merge to copy them
// behind a block that is not full: short blocks waste space.
const copyLimit = 8

// AddList appends the documents of another list, each number raised by shift.
// Full blocks are copied as they are where the pending block allows it.
// It reports false for damaged data.
func (w *Writer) AddList(l *List, shift uint32) bool {
	var c Cursor
	if l.form != longForm || len(w.docs) > 0 && l.blockCount() < copyLimit {
		c.Open(l)
		return w.addRest(&c, l, shift)
	}
	w.endBlock()
	for k := range l.blockCount() {
		s := l.skipEntryAt(k)
		if s.count != BlockSize {
			c.openBlock(l, k)
			if !w.addBlock(&c, l, shift) {
				return false
			}
			if len(w.docs) > 0 && k+1 < l.blockCount() {
				w.endBlock()
			}
			continue
		}
		body, places, ok := l.blockBytes(k)
		if !ok {
			return false
		}
		s.first, s.last = s.first+shift, s.last+shift
		s.at, s.positionsAt = uint32(len(w.blocks)), uint32(len(w.positions))
		w.skips = append(w.skips, s)
		w.blocks = append(w.blocks, body...)
		if w.hasPositions {
			w.positions = append(w.positions, places...)
		}
		w.count += int(s.count)
	}
	return true
}

// addRest adds all documents of a list one by one.
func (w *Writer) addRest(c *Cursor, l *List, shift uint32) bool {
	for c.Doc() != End {
		w.Add(c.Doc()+shift, c.Code(), w.positionsOf(c, l))
		c.Next()
	}
	return c.Err() == nil
}

// addBlock adds the documents of the cursor's block.
func (w *Writer) addBlock(c *Cursor, l *List, shift uint32) bool {
	for c.at < c.n && c.err == nil {
		w.Add(c.Doc()+shift, c.Code(), w.positionsOf(c, l))
		c.at++
	}
	return c.err == nil
}

func (w *Writer) positionsOf(c *Cursor, l *List) []uint32 {
	if !w.hasPositions || !l.hasPositions {
		return nil
	}
	return c.Positions()
}

// Finish appends the list to dst and returns it with the form that the
// dictionary keeps. A list of one document is the caller's to keep inline:
//
//	inline   document, code, gaps of positions (varints)
//	short    first document (varint), impact (2 bytes), gaps of documents,
//	         codes, gaps of positions; at most 128 documents
//	long     number of blocks (4), length of all documents and codes (4),
//	         skip entries (20 each), documents and codes by block, positions
//	         by block
//
// A skip entry is the first and last document (4 + 4), the offsets of the
// block and of its positions (4 + 4), the block's impact (2), its number of
// documents (1) and a zero.
func (w *Writer) Finish(dst []byte) ([]byte, Form) {
	switch {
	case w.count == 1 && len(w.skips) == 0:
		dst = binary.AppendUvarint(dst, uint64(w.docs[0]))
		dst = binary.AppendUvarint(dst, uint64(w.codes[0]))
		for _, p := range w.places {
			dst = binary.AppendUvarint(dst, uint64(p))
		}
		return dst, inlineForm
	case len(w.skips) == 0:
		dst = binary.AppendUvarint(dst, uint64(w.docs[0]))
		dst = binary.LittleEndian.AppendUint16(dst, w.impact)
		dst = w.appendBlock(dst)
		return appendPositions(dst, w.places), shortForm
	}
	w.endBlock()
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(w.skips)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(w.blocks)))
	for _, s := range w.skips {
		dst = s.appendSkip(dst)
	}
	dst = append(dst, w.blocks...)
	return append(dst, w.positions...), longForm
}
