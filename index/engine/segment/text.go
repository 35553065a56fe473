package segment

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Text is what is stored of a document to be shown.
type Text struct {
	Title, Body string
	Same        string // digest of the content
}

// textBlock is the size from which a block of texts is compressed: smaller
// blocks compress worse, larger ones make a result slower to show.
const textBlock = 16 << 10

// maxTextBlock bounds what a block may unpack to.
const maxTextBlock = 64 << 20

var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxTextBlock))
		if err != nil {
			panic(err)
		}
		return d
	})
)

// textWriter packs texts into blocks. A record is its length, the lengths of
// title and digest (varints), title, digest, body.
type textWriter struct {
	raw, packed []byte
	record      []byte
	index       []byte
	first, next uint32 // documents
}

// addTextRecord returns a block when one is full.
func (w *textWriter) addTextRecord(t Text) []byte {
	r := binary.AppendUvarint(w.record[:0], uint64(len(t.Title)))
	r = binary.AppendUvarint(r, uint64(len(t.Same)))
	r = append(append(append(r, t.Title...), t.Same...), t.Body...)
	w.record = r
	w.raw = binary.AppendUvarint(w.raw, uint64(len(r)))
	w.raw = append(w.raw, r...)
	w.next++
	if len(w.raw) < textBlock {
		return nil
	}
	return w.lastTextBlock()
}

// lastTextBlock returns the last block, nil if it is empty.
func (w *textWriter) lastTextBlock() []byte {
	if len(w.raw) == 0 {
		return nil
	}
	w.packed = encoder().EncodeAll(w.raw, w.packed[:0])
	w.raw = w.raw[:0]
	return w.packed
}

// noteTextBlock adds the block that is written at offset to the index.
func (w *textWriter) noteTextBlock(offset uint64) {
	w.index = binary.LittleEndian.AppendUint32(w.index, w.first)
	w.index = binary.LittleEndian.AppendUint64(w.index, offset)
	w.first = w.next
}

const textEntry = 12

// texts reads stored texts.
type texts struct {
	blocks, index []byte
}

func (t *texts) textBlockCount() int   { return len(t.index) / textEntry }
func (t *texts) firstDoc(k int) uint32 { return binary.LittleEndian.Uint32(t.index[k*textEntry:]) }

// blockOf returns the block that a document is in.
func (t *texts) blockOf(doc uint32) int {
	low, high := 0, t.textBlockCount()
	for low < high { // the first block that begins behind doc
		if mid := (low + high) / 2; t.firstDoc(mid) <= doc {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// packedBlock returns the compressed bytes of block k.
func (t *texts) packedBlock(k int) ([]byte, error) {
	offset := func(k int) uint64 {
		if k == t.textBlockCount() {
			return uint64(len(t.blocks))
		}
		return binary.LittleEndian.Uint64(t.index[k*textEntry+4:])
	}
	if k < 0 || k >= t.textBlockCount() || offset(k) > offset(k+1) || offset(k+1) > uint64(len(t.blocks)) {
		return nil, fmt.Errorf("stored texts: %w", ErrDamaged)
	}
	return t.blocks[offset(k):offset(k+1)], nil
}

// unpackBlock appends block k to dst.
func (t *texts) unpackBlock(dst []byte, k int) ([]byte, error) {
	b, err := t.packedBlock(k)
	if err != nil {
		return nil, err
	}
	out, err := decoder().DecodeAll(b, dst)
	if err != nil {
		return nil, fmt.Errorf("stored texts: %w: %w", ErrDamaged, err)
	}
	return out, nil
}

var textBuffers = sync.Pool{New: func() any { return new([]byte) }}

// textOf returns the text of a document.
func (t *texts) textOf(doc uint32) (Text, error) {
	k := t.blockOf(doc)
	buf := textBuffers.Get().(*[]byte)
	defer textBuffers.Put(buf)
	raw, err := t.unpackBlock((*buf)[:0], k)
	if err != nil {
		return Text{}, err
	}
	*buf = raw
	for range doc - t.firstDoc(k) {
		if _, raw, err = cutRecord(raw); err != nil {
			return Text{}, err
		}
	}
	record, _, err := cutRecord(raw)
	if err != nil {
		return Text{}, err
	}
	return parseText(record)
}

// ForEachText calls f for the text of every document in turn; what it gets is
// valid until it returns.
func (s *Segment) ForEachText(f func(doc uint32, t Text) error) error {
	var raw []byte
	doc := uint32(0)
	for k := range s.texts.textBlockCount() {
		var err error
		if raw, err = s.texts.unpackBlock(raw[:0], k); err != nil {
			return fmt.Errorf("segment %s: %w", s.path, err)
		}
		for rest := raw; len(rest) > 0; doc++ {
			var record []byte
			if record, rest, err = cutRecord(rest); err != nil {
				return fmt.Errorf("segment %s: %w", s.path, err)
			}
			t, err := parseText(record)
			if err != nil {
				return fmt.Errorf("segment %s: %w", s.path, err)
			}
			if err := f(doc, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// cutRecord returns the first record and what follows it.
func cutRecord(b []byte) (record, rest []byte, err error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, fmt.Errorf("stored texts: %w", ErrDamaged)
	}
	return b[n : n+int(size)], b[n+int(size):], nil
}

func parseText(b []byte) (Text, error) {
	title, n := binary.Uvarint(b)
	if n <= 0 {
		return Text{}, fmt.Errorf("stored texts: %w", ErrDamaged)
	}
	same, m := binary.Uvarint(b[n:])
	if b = b[n+max(m, 0):]; m <= 0 || title > uint64(len(b)) || same > uint64(len(b))-title {
		return Text{}, fmt.Errorf("stored texts: %w", ErrDamaged)
	}
	return Text{Title: string(b[:title]), Same: string(b[title : title+same]), Body: string(b[title+same:])}, nil
}
