package postings

import (
	"encoding/binary"
	"errors"
)

// End is the document of a cursor that has none left.
const End = 1<<32 - 1

// ErrDamaged is the error of a list that cannot be decoded.
var ErrDamaged = errors.New("a list of postings is damaged")

// Form is how a list is laid out; see Writer.Finish.
type Form uint8

const (
	inlineForm Form = iota
	shortForm
	longForm
)

// IsInline reports whether the list belongs into the dictionary.
func (f Form) IsInline() bool { return f == inlineForm }

// FormOf is the form of a list of count documents.
func FormOf(count int) Form {
	switch {
	case count == 1:
		return inlineForm
	case count < BlockSize:
		return shortForm
	}
	return longForm
}

// List is a list as it lies in a file.
type List struct {
	data         []byte // from the list's first byte; may go on behind it
	count        int
	form         Form
	hasPositions bool
}

// NewList returns the list of count documents at the beginning of data.
func NewList(data []byte, count int, form Form, hasPositions bool) List {
	return List{data: data, count: count, form: form, hasPositions: hasPositions}
}

// Count is the number of documents.
func (l *List) Count() int { return l.count }

// HasPositions reports whether the list has positions.
func (l *List) HasPositions() bool { return l.hasPositions }

const longHeader = 8

func (l *List) blockCount() int {
	if len(l.data) < longHeader {
		return 0
	}
	n := int(binary.LittleEndian.Uint32(l.data))
	return min(n, (len(l.data)-longHeader)/skipSize)
}

func (l *List) skipEntryAt(k int) skipEntry { return readSkip(l.data[longHeader+k*skipSize:]) }

// codesEnd is the length of all documents and codes.
func (l *List) codesEnd() int { return int(binary.LittleEndian.Uint32(l.data[4:])) }

// bytesOfBlocks returns the bytes from the first block on.
func (l *List) bytesOfBlocks() []byte { return l.data[longHeader+l.blockCount()*skipSize:] }

// blockBytes returns the documents and codes of a block, and its positions.
func (l *List) blockBytes(k int) (body, places []byte, ok bool) {
	s := l.skipEntryAt(k)
	all := l.bytesOfBlocks()
	end, placesEnd := l.codesEnd(), -1
	if k+1 < l.blockCount() {
		next := l.skipEntryAt(k + 1)
		end, placesEnd = int(next.at), int(next.positionsAt)
	}
	if int(s.at) > end || end > l.codesEnd() || l.codesEnd() > len(all) {
		return nil, nil, false
	}
	body = all[s.at:end]
	if !l.hasPositions {
		return body, nil, true
	}
	all = all[l.codesEnd():]
	if placesEnd < 0 { // the last block: as long as its codes say
		var c Cursor
		c.openBlock(l, k)
		placesEnd = c.positionsEnd()
	}
	if int(s.positionsAt) > placesEnd || placesEnd > len(all) {
		return nil, nil, false
	}
	return body, all[s.positionsAt:placesEnd], true
}

// Cursor walks over a list. The zero value stands at End.
type Cursor struct {
	list   *List
	docs   [BlockSize]uint32
	codes  [BlockSize]uint32
	at, n  int
	block  int // number of the decoded block, -1 before the first
	blocks int

	shallow      int // number of the block that Bound looked at
	shallowEntry skipEntry

	codesAt   []byte // of the block, not decoded yet
	hasCodes  bool
	placesAt  []byte // positions of the block
	impact    uint16
	err       error
	positions []uint32

	starts     [BlockSize + 1]uint32 // number of the first position of each document of the block
	hasStarts  bool
	placeBlock [BlockSize]uint32 // decoded gaps of positions
	placeFirst int               // number of the first of them in the block
	placeCount int
	placeEnd   int // where the next ones begin in placesAt
}

// Open places the cursor at the first document.
func (c *Cursor) Open(l *List) {
	c.list, c.err, c.at, c.n, c.block, c.shallow, c.blocks = l, nil, 0, 0, 0, 0, 1
	if l.count == 0 { // a term that is not there
		c.blocks = 0
		return
	}
	switch l.form {
	case inlineForm:
		c.openInline(l.data)
	case shortForm:
		c.openShort(l.data)
	case longForm:
		if c.blocks = l.blockCount(); c.blocks == 0 {
			c.failCursor()
			return
		}
		c.shallowEntry = l.skipEntryAt(0)
		c.openBlock(l, 0)
	}
}

func (c *Cursor) openInline(data []byte) {
	doc, k := binary.Uvarint(data)
	if k <= 0 || doc >= End {
		c.failCursor()
		return
	}
	v, m := binary.Uvarint(data[k:])
	if m <= 0 || v > 1<<32-1 {
		c.failCursor()
		return
	}
	c.docs[0], c.codes[0], c.n, c.hasCodes = uint32(doc), uint32(v), 1, true
	c.placesAt = data[k+m:]
	c.impact = maxImpact
}

// maxImpact is the bound of a list that states none.
const maxImpact = 1<<16 - 1

func (c *Cursor) openShort(data []byte) {
	first, k := binary.Uvarint(data)
	if k <= 0 || first >= End || len(data) < k+2 || c.list.count < 1 || c.list.count > BlockSize {
		c.failCursor()
		return
	}
	c.impact = binary.LittleEndian.Uint16(data[k:])
	c.n = c.list.count
	c.decodeDocs(uint32(first), data[k+2:])
	if c.err == nil && c.list.hasPositions {
		c.loadCodes() // the positions follow them
	}
}

// openBlock decodes the documents of block k of a long list.
func (c *Cursor) openBlock(l *List, k int) {
	c.list = l
	s := l.skipEntryAt(k)
	all := l.bytesOfBlocks()
	if int(s.at) > len(all) || s.count == 0 || s.count > BlockSize {
		c.failCursor()
		return
	}
	c.block, c.at, c.n, c.impact = k, 0, int(s.count), s.impact
	if l.hasPositions {
		if places := uint64(l.codesEnd()) + uint64(s.positionsAt); places <= uint64(len(all)) {
			c.placesAt = all[places:]
		} else {
			c.failCursor()
			return
		}
	}
	c.decodeDocs(s.first, all[s.at:])
	if c.err == nil && c.docs[c.n-1] != s.last {
		c.failCursor()
	}
}

// decodeDocs decodes the gaps of c.n documents and adds them up.
func (c *Cursor) decodeDocs(first uint32, data []byte) {
	size := DecodeBlock(data, &c.docs, c.n-1)
	if size < 0 {
		c.failCursor()
		return
	}
	c.codesAt, c.hasCodes, c.hasStarts = data[size:], false, false
	doc := uint64(first)
	for i := range c.n - 1 {
		gap := c.docs[i]
		c.docs[i] = uint32(doc)
		doc += uint64(gap) + 1
	}
	if doc >= End {
		c.failCursor()
		return
	}
	c.docs[c.n-1] = uint32(doc)
}

// loadCodes decodes the codes of the block.
func (c *Cursor) loadCodes() {
	c.hasCodes = true
	size := DecodeBlock(c.codesAt, &c.codes, c.n)
	if size < 0 {
		c.failCursor()
		return
	}
	if c.list.form == shortForm {
		c.placesAt = c.codesAt[size:]
	}
}

func (c *Cursor) failCursor() {
	c.err, c.at, c.n, c.blocks, c.hasStarts = ErrDamaged, 0, 0, 0, false
	clear(c.codes[:])
	c.hasCodes = true
}

// Err is ErrDamaged after damaged data was met; the cursor is at End then.
func (c *Cursor) Err() error { return c.err }

// Doc returns the document at the cursor, or End.
func (c *Cursor) Doc() uint32 {
	if c.at >= c.n {
		return End
	}
	return c.docs[c.at]
}

// Next moves to the next document and returns it.
func (c *Cursor) Next() uint32 {
	if c.at++; c.at < c.n {
		return c.docs[c.at]
	}
	return c.nextBlock()
}

func (c *Cursor) nextBlock() uint32 {
	if c.block+1 >= c.blocks {
		c.at, c.n = 0, 0
		return End
	}
	c.openBlock(c.list, c.block+1)
	return c.Doc()
}

// Seek moves to the first document that is at least doc and returns it. A
// cursor never moves back.
func (c *Cursor) Seek(doc uint32) uint32 {
	if c.at >= c.n {
		return End
	}
	if c.docs[c.n-1] < doc {
		k := c.findBlock(c.block+1, doc)
		if k >= c.blocks {
			c.at, c.n, c.block = 0, 0, c.blocks
			return End
		}
		if c.openBlock(c.list, k); c.err != nil {
			return End
		}
	}
	i := c.at
	for step := 8; i+step < c.n && c.docs[i+step] < doc; step *= 2 {
		i += step
	}
	for c.docs[i] < doc {
		i++
	}
	c.at = i
	return c.docs[i]
}

// findBlock returns the first block from k on whose last document is at least
// doc, by galloping.
func (c *Cursor) findBlock(k int, doc uint32) int {
	last := func(k int) uint32 { return binary.LittleEndian.Uint32(c.list.data[longHeader+k*skipSize+4:]) }
	low, step := k, 1
	for low+step < c.blocks && last(low+step) < doc {
		low += step
		step *= 2
	}
	high := min(low+step, c.blocks)
	for low < high {
		if mid := (low + high) / 2; last(mid) < doc {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// FillBits sets the bits of all documents in [base, base+64*len(bits)) and
// moves behind them.
func (c *Cursor) FillBits(base uint32, bits []uint64) {
	end := base + uint32(len(bits))*64
	for doc := c.Seek(base); doc < end; doc = c.nextBlock() {
		docs := c.docs[c.at:c.n]
		for i, d := range docs {
			if d >= end {
				c.at += i
				return
			}
			d -= base
			bits[d>>6] |= 1 << (d & 63)
		}
		c.at = c.n
	}
}

// Code returns the code of the document at the cursor.
func (c *Cursor) Code() uint32 {
	if !c.hasCodes {
		c.loadCodes()
	}
	return c.codes[c.at&(BlockSize-1)]
}

// Bound returns the greatest impact of the documents from doc to end, which is
// the last document of the block that doc is in. It does not move the cursor;
// doc must not fall between calls.
func (c *Cursor) Bound(doc uint32) (impact uint16, end uint32) {
	if c.blocks == 0 {
		return 0, End
	}
	if c.list.form != longForm {
		if c.n == 0 || doc > c.docs[c.n-1] {
			return 0, End
		}
		if doc < c.docs[0] {
			return 0, c.docs[0] - 1
		}
		return c.impact, c.docs[c.n-1]
	}
	if c.shallow < c.blocks && c.shallowEntry.last < doc {
		if c.shallow = c.findBlock(c.shallow+1, doc); c.shallow < c.blocks {
			c.shallowEntry = c.list.skipEntryAt(c.shallow)
		}
	}
	if c.shallow >= c.blocks {
		return 0, End
	}
	if doc < c.shallowEntry.first {
		return 0, c.shallowEntry.first - 1
	}
	return c.shallowEntry.impact, c.shallowEntry.last
}

// Positions returns the positions in the document at the cursor, until the
// next call.
func (c *Cursor) Positions() []uint32 {
	c.positions = c.positions[:0]
	if !c.list.hasPositions || c.at >= c.n {
		return c.positions
	}
	total, _, _ := UnpackCode(c.Code())
	if c.list.form == inlineForm {
		return c.inlinePositions(int(total))
	}
	c.loadStarts()
	return c.blockPositions(int(c.starts[c.at]), int(total))
}

// loadStarts adds up how many positions the documents of the block have.
func (c *Cursor) loadStarts() {
	if c.hasStarts {
		return
	}
	c.hasStarts = true
	c.placeFirst, c.placeCount, c.placeEnd = 0, 0, 0
	sum := uint32(0)
	for i := range c.n {
		c.starts[i] = sum
		total, _, _ := UnpackCode(c.codes[i])
		sum += total
	}
	c.starts[c.n] = sum
}

func (c *Cursor) inlinePositions(total int) []uint32 {
	data, last := c.placesAt, uint64(0)
	for range total {
		gap, k := binary.Uvarint(data)
		if last += gap; k <= 0 || last > 1<<32-1 {
			c.failCursor()
			return nil
		}
		c.positions = append(c.positions, uint32(last))
		data = data[k:]
	}
	return c.positions
}

// blockPositions decodes count positions behind skip others. What was decoded
// last is kept, since callers ask for one document after the other.
func (c *Cursor) blockPositions(skip, count int) []uint32 {
	if skip < c.placeFirst {
		c.placeFirst, c.placeCount, c.placeEnd = 0, 0, 0
	}
	last := uint32(0)
	for count > 0 {
		if skip >= c.placeFirst+c.placeCount && !c.nextPlaces(skip) {
			c.failCursor()
			return nil
		}
		from := skip - c.placeFirst
		n := min(count, c.placeCount-from)
		for _, gap := range c.placeBlock[from : from+n] {
			last += gap
			c.positions = append(c.positions, last)
		}
		skip, count = skip+n, count-n
	}
	return c.positions
}

// nextPlaces decodes the block that has the position with the number skip, which
// is behind the decoded one.
func (c *Cursor) nextPlaces(skip int) bool {
	all := int(c.starts[c.n])
	for {
		first := c.placeFirst + c.placeCount
		n := min(all-first, BlockSize)
		if n <= 0 || c.placeEnd > len(c.placesAt) {
			return false
		}
		data := c.placesAt[c.placeEnd:]
		isWanted := skip < first+n
		size := -1
		if isWanted {
			size = DecodeBlock(data, &c.placeBlock, n)
		} else {
			size = blockLength(data, n)
		}
		if size < 0 {
			return false
		}
		c.placeFirst, c.placeCount, c.placeEnd = first, n, c.placeEnd+size
		if isWanted {
			return true
		}
	}
}

// blockLength returns the length of a block of n values without decoding it,
// or -1 for damaged data.
func blockLength(data []byte, n int) int {
	if n < varintLimit {
		var out [BlockSize]uint32
		return decodeVarints(data, &out, n)
	}
	if len(data) < 2 || data[0] > 32 {
		return -1
	}
	size := 2 + (n+groupSize-1)/groupSize*int(data[0])
	for range data[1] {
		for size++; size < len(data) && data[size] >= 0x80; size++ {
		}
		size++
	}
	if size > len(data) {
		return -1
	}
	return size
}

// positionsEnd returns where the positions of the block end, from the end of
// all codes, or -1 for damaged data.
func (c *Cursor) positionsEnd() int {
	if c.err != nil {
		return -1
	}
	c.Code()
	c.loadStarts()
	all := int(c.starts[c.n])
	data, at := c.placesAt, 0
	for ; all > 0; all -= BlockSize {
		size := blockLength(data[at:], min(all, BlockSize))
		if size < 0 {
			return -1
		}
		at += size
	}
	return int(c.list.skipEntryAt(c.block).positionsAt) + at
}
