package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/freshet/freshet/index/engine/bm25"
)

// Version is the format that this package writes and reads.
const Version = 1

const (
	magic       = "freshet segment\n"
	entrySize   = 32
	trailerSize = 80
	padding     = 8
	maxSections = 64
)

// Kind names a section. Kinds of pages are below FirstNamesKind.
type Kind uint32

// FirstNamesKind is the first kind of the sections that only files of names have.
const FirstNamesKind Kind = 64

// The sections of a segment.
const (
	Texts Kind = iota + 1
	TextIndex
	Lists
	Terms
	TermIndex
	IDs
	IDOffsets
	IDHashes
	IDDocuments
	LengthColumn
	EndColumn
	DateColumn
	SizeColumn
	PopularityColumn
	HostColumn
	TypeColumn
	LangColumn
	KindColumn
	sectionsEnd
)

// Keywords are the keyword columns.
var Keywords = []Kind{HostColumn, TypeColumn, LangColumn, KindColumn}

// ErrDamaged is the error of a file that is not as it was written.
var ErrDamaged = errors.New("the file is damaged")

// ErrVersion is the error of a file in another format.
var ErrVersion = errors.New("written by another version")

// section is an entry of the section table.
type section struct {
	kind           Kind
	offset, length uint64
	sum            uint64
}

func (s section) appendSection(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.kind))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, s.offset)
	dst = binary.LittleEndian.AppendUint64(dst, s.length)
	return binary.LittleEndian.AppendUint64(dst, s.sum)
}

func readSection(b []byte) section {
	return section{
		kind: Kind(binary.LittleEndian.Uint32(b)), offset: binary.LittleEndian.Uint64(b[8:]),
		length: binary.LittleEndian.Uint64(b[16:]), sum: binary.LittleEndian.Uint64(b[24:]),
	}
}

// Totals are the sums of the lengths of all documents, in words.
type Totals struct{ Title, URL, Body uint64 }

// trailer ends a file.
type trailer struct {
	version   uint32
	docs      uint32
	sections  uint32
	schema    Schema
	totals    Totals
	reference bm25.Averages
	size      uint64
	sum       uint64 // of the section table and the trailer before it
}

// appendTrailer writes version, documents, sections, schema (4 each), totals of title,
// URL and body (8 each), reference averages (float32, 4 each), zero (4), size of
// the file (8) and the checksum (8).
func (t *trailer) appendTrailer(dst []byte) []byte {
	for _, v := range []uint32{t.version, t.docs, t.sections, uint32(t.schema)} {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	for _, v := range []uint64{t.totals.Title, t.totals.URL, t.totals.Body} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	for _, v := range []float64{t.reference.Title, t.reference.URL, t.reference.Body, 0} {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v)))
	}
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	return binary.LittleEndian.AppendUint64(dst, t.size)
}

// readTrailer reads the end of a file of size bytes and its section table.
func readTrailer(file []byte) (*trailer, []section, error) {
	if len(file) < len(magic)+trailerSize || string(file[:len(magic)]) != magic {
		return nil, nil, fmt.Errorf("not a segment: %w", ErrDamaged)
	}
	b := file[len(file)-trailerSize:]
	t := &trailer{version: binary.LittleEndian.Uint32(b), docs: binary.LittleEndian.Uint32(b[4:]), sections: binary.LittleEndian.Uint32(b[8:]), schema: Schema(binary.LittleEndian.Uint32(b[12:]))}
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	average := func(at int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[at:]))) }
	t.totals = Totals{number(16), number(24), number(32)}
	t.reference = bm25.Averages{Title: average(40), URL: average(44), Body: average(48)}
	t.size, t.sum = number(64), number(72)
	table := uint64(t.sections) * entrySize
	if t.size != uint64(len(file)) || t.sections > maxSections || uint64(len(file)) < table+trailerSize+uint64(len(magic)) {
		return nil, nil, fmt.Errorf("size or trailer: %w", ErrDamaged)
	}
	end := file[uint64(len(file))-trailerSize-table:]
	if xxh3.Hash(end[:len(end)-8]) != t.sum {
		return nil, nil, fmt.Errorf("checksum of the trailer: %w", ErrDamaged)
	}
	if t.version != Version {
		return nil, nil, fmt.Errorf("format %d, this program reads %d: %w", t.version, Version, ErrVersion)
	}
	all := make([]section, t.sections)
	limit := uint64(len(file)) - trailerSize - table
	for i := range all {
		all[i] = readSection(end[i*entrySize:])
		if s := all[i]; s.offset > limit || s.length > limit-s.offset || limit-s.offset-s.length < padding {
			return nil, nil, fmt.Errorf("section table: %w", ErrDamaged)
		}
	}
	return t, all, nil
}

// appendSum appends the checksum of everything before.
func appendSum(b []byte) []byte { return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b)) }
