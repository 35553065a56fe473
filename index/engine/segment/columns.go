package segment

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/freshet/freshet/index/engine/bm25"
)

// Document is the columns of a document.
type Document struct {
	ID                     string
	Host, Type, Lang, Kind string
	Date, Size             int64
	Popularity             uint8
	Lengths                bm25.Lengths
	TitleEnd, URLEnd       uint16 // positions behind the title and behind the URL
}

// columns collects documents for a Writer.
type columns struct {
	ids        []byte
	offsets    []byte
	hashes     []idHash
	lengths    []bm25.Lengths
	ends       []byte
	dates      []byte
	sizes      []byte
	popularity []byte
	keywords   [4]keywordColumn // in the order of Keywords
	totals     Totals
}

// idHash leads from an identifier to its document.
type idHash struct {
	hash uint64
	doc  uint32
}

func hashID(id string) uint64 { return xxh3.HashString(id) }

func (c *columns) addDocument(d Document) {
	doc := uint32(len(c.lengths))
	c.ids = append(c.ids, d.ID...)
	c.offsets = binary.LittleEndian.AppendUint32(c.offsets, uint32(len(c.ids)))
	c.hashes = append(c.hashes, idHash{hashID(d.ID), doc})
	c.lengths = append(c.lengths, d.Lengths)
	title, url, body := d.Lengths.Words()
	c.totals.Title += uint64(title)
	c.totals.URL += uint64(url)
	c.totals.Body += uint64(body)
	c.ends = binary.LittleEndian.AppendUint16(c.ends, d.TitleEnd)
	c.ends = binary.LittleEndian.AppendUint16(c.ends, d.URLEnd)
	c.dates = binary.LittleEndian.AppendUint64(c.dates, uint64(d.Date))
	c.sizes = binary.LittleEndian.AppendUint64(c.sizes, uint64(d.Size))
	c.popularity = append(c.popularity, d.Popularity)
	for i, v := range []string{d.Host, d.Type, d.Lang, d.Kind} {
		c.keywords[i].addKeyword(v)
	}
}

// eachSection gives each section of the columns with its bytes.
func (c *columns) eachSection() iter.Seq2[Kind, []byte] {
	return func(yield func(Kind, []byte) bool) {
		var lengths, hashes, docs []byte
		for _, l := range c.lengths {
			lengths = binary.LittleEndian.AppendUint32(lengths, uint32(l))
		}
		slices.SortFunc(c.hashes, func(a, b idHash) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.doc, b.doc)) })
		for _, h := range c.hashes {
			hashes = binary.LittleEndian.AppendUint64(hashes, h.hash)
			docs = binary.LittleEndian.AppendUint32(docs, h.doc)
		}
		_ = yield(IDs, c.ids) && yield(IDOffsets, c.offsets) && yield(IDHashes, hashes) && yield(IDDocuments, docs) &&
			yield(LengthColumn, lengths) && yield(EndColumn, c.ends) && yield(DateColumn, c.dates) && yield(SizeColumn, c.sizes) &&
			yield(PopularityColumn, c.popularity) && yield(HostColumn, c.keywords[0].encodeColumn()) && yield(TypeColumn, c.keywords[1].encodeColumn()) &&
			yield(LangColumn, c.keywords[2].encodeColumn()) && yield(KindColumn, c.keywords[3].encodeColumn())
	}
}

// keywordColumn collects one value a document.
type keywordColumn struct {
	number map[string]uint32
	values []string
	ords   []uint32
}

func (k *keywordColumn) addKeyword(v string) {
	n, ok := k.number[v]
	if !ok {
		if k.number == nil {
			k.number = map[string]uint32{}
		}
		n = uint32(len(k.values))
		k.number[v] = n
		k.values = append(k.values, v)
	}
	k.ords = append(k.ords, n)
}

func (k *keywordColumn) encodeColumn() []byte {
	width := 4
	switch n := len(k.values); {
	case n <= 1<<8:
		width = 1
	case n <= 1<<16:
		width = 2
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(k.values)))
	out = binary.LittleEndian.AppendUint32(out, uint32(width))
	end := 0
	for _, v := range k.values {
		end += len(v)
		out = binary.LittleEndian.AppendUint32(out, uint32(end))
	}
	for _, v := range k.values {
		out = append(out, v...)
	}
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	for _, o := range k.ords {
		switch width {
		case 1:
			out = append(out, byte(o))
		case 2:
			out = binary.LittleEndian.AppendUint16(out, uint16(o))
		default:
			out = binary.LittleEndian.AppendUint32(out, o)
		}
	}
	return out
}

// Keyword is a keyword column of an open segment.
type Keyword struct {
	values []string
	ords   []byte
	width  int
}

// openKeyword reads a column of docs documents and checks every ordinal.
func openKeyword(b []byte, docs int) (*Keyword, error) {
	if len(b) < 8 {
		return nil, ErrDamaged
	}
	count, width := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
	if width != 1 && width != 2 && width != 4 || count > (len(b)-8)/4 {
		return nil, ErrDamaged
	}
	ends, text := b[8:8+4*count], b[8+4*count:]
	k := &Keyword{values: make([]string, count), width: width}
	at := 0
	for i := range k.values {
		end := int(binary.LittleEndian.Uint32(ends[4*i:]))
		if end < at || end > len(text) {
			return nil, ErrDamaged
		}
		k.values[i] = string(text[at:end]) // a copy: facets outlive the segment
		at = end
	}
	start := (8 + 4*count + at + 3) &^ 3
	if start > len(b) || len(b)-start != docs*width {
		return nil, ErrDamaged
	}
	k.ords = b[start:]
	for doc := range docs {
		if k.Ordinal(uint32(doc)) >= uint32(count) {
			return nil, ErrDamaged
		}
	}
	return k, nil
}

// Ordinal returns the number of a document's value.
func (k *Keyword) Ordinal(doc uint32) uint32 {
	switch k.width {
	case 1:
		return uint32(k.ords[doc])
	case 2:
		return uint32(binary.LittleEndian.Uint16(k.ords[2*doc:]))
	}
	return binary.LittleEndian.Uint32(k.ords[4*doc:])
}

// Values are all values; a document's is at its ordinal.
func (k *Keyword) Values() []string { return k.values }

// Value returns the value of a document.
func (k *Keyword) Value(doc uint32) string { return k.values[k.Ordinal(doc)] }
