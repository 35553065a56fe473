package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/freshet/freshet/index/engine/dictionary"
	"github.com/freshet/freshet/index/engine/nametable"
	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/segment"
	"github.com/freshet/freshet/index/engine/segmentset"
)

// gone is the new number of a deleted file or an emptied folder.
const gone = postings.End

// mapping leads from the files of a source to those of the merged segment.
type mapping []uint32

// New implements segmentset.Mapping.
func (m mapping) New(doc uint32) (uint32, bool) { return m[doc], m[doc] != gone }

// merger merges segments: their files are interleaved in the order of host,
// folder and name. Columns are written one after the other, so that memory holds
// two numbers for each file and no column.
type merger struct {
	ctx     context.Context
	writer  *segment.FileWriter
	sources []*source
	order   []uint16 // source of each file

	hosts        []byte
	hostCount    uint32
	hostLast     string
	folders      nametable.Writer
	folderBlocks []byte
	starts       []byte
	nameWriter   nametable.Writer
	tags         tagWriter

	nameTrigrams, folderTrigrams nametable.Trigrams
	chunk, buf                   []byte
}

// source is a segment that is merged.
type source struct {
	*reader
	number    uint16
	docs      mapping
	dirs      []uint32 // new numbers of folders
	host      string   // of the folder that is next
	key       []byte   // path of the folder that is next
	folder    uint32
	doc       uint32 // in the folder, or in a column
	end       uint32
	tag       int
	terms     *dictionary.Iterator
	list      postings.List
	cursor    postings.Cursor
	numbersOf []uint32 // new numbers of what the list holds
}

// mergeFiles writes the files of views that are not deleted to a new file.
func mergeFiles(ctx context.Context, path string, views []*view, limit func(int)) (*fileSegment, []segmentset.Mapping, error) {
	w, err := segment.CreateFile(path, segment.Names, limit)
	if err != nil {
		return nil, nil, err
	}
	m := &merger{ctx: ctx, writer: w}
	err = segmentset.Guard(func() error { return m.runMerge(views) })
	if err != nil {
		return nil, nil, errors.Join(err, w.Abort())
	}
	f, err := w.FinishFile(len(m.order))
	if err != nil {
		return nil, nil, err
	}
	s, err := newSegment(f)
	mappings := make([]segmentset.Mapping, len(views))
	for i, src := range m.sources {
		mappings[i] = src.docs
	}
	return s, mappings, err
}

func (m *merger) runMerge(views []*view) error {
	for i, v := range views {
		s := &source{number: uint16(i), reader: newReader(v), docs: make(mapping, v.Len()), dirs: make([]uint32, v.folders.Len())}
		m.sources = append(m.sources, s)
	}
	for _, step := range []func() error{m.mergeNames, m.copyColumns, m.copyTags, m.mergeTerms} {
		if err := step(); err != nil {
			return err
		}
		for _, s := range m.sources {
			if s.err != nil {
				return s.err
			}
		}
		if err := m.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// writeChunk appends chunk to the section once it is large, or at the end of the section.
func (m *merger) writeChunk(isEnd bool) error {
	if !isEnd && len(m.chunk) < chunkSize {
		return nil
	}
	err := m.writer.Write(m.chunk)
	m.chunk = m.chunk[:0]
	if err == nil && isEnd {
		err = m.writer.EndSection()
	}
	return errors.Join(err, m.ctx.Err())
}

const chunkSize = 64 << 10

// mergeNames writes hosts, folders and names, and fills order and mappings.
func (m *merger) mergeNames() error {
	m.writer.BeginSection(nameBlocks)
	for _, s := range m.sources {
		s.seekFolder(0)
	}
	var same []*source
	for {
		same = m.nextFolder(same[:0])
		if len(same) == 0 {
			break
		}
		if err := m.mergeFolder(same); err != nil {
			return err
		}
	}
	if err := m.writeChunk(true); err != nil {
		return err
	}
	m.starts = binary.LittleEndian.AppendUint32(m.starts, uint32(len(m.order)))
	for _, s := range []struct {
		kind  segment.Kind
		bytes []byte
	}{
		{hostSection, m.hosts}, {folderBlocks, m.folderBlocks}, {folderIndex, m.folders.Index()}, {folderStarts, m.starts}, {nameIndex, m.nameWriter.Index()},
	} {
		if err := m.writer.WriteSection(s.kind, s.bytes); err != nil {
			return err
		}
	}
	return nil
}

// seekFolder moves to a folder, which begins where the one before ended; behind the
// last one key is nil.
func (s *source) seekFolder(folder uint32) {
	s.folder, s.key = folder, nil
	isLast := int(folder) >= s.folders.Len()
	if s.firstFileOf(folder) != s.end || isLast && int(s.end) != s.Len() || !isLast && s.firstFileOf(folder+1) <= s.end {
		s.keepFirstError(fmt.Errorf("folder %d: %w", folder, segment.ErrDamaged))
	}
	if !isLast && s.err == nil {
		s.host, s.key = s.hostOf(folder), append([]byte{}, s.folderKey(folder)[4:]...)
		s.doc, s.end = s.firstFileOf(folder), s.firstFileOf(folder+1)
	}
}

// nextFolder returns the sources that have the first of all next folders.
func (m *merger) nextFolder(same []*source) []*source {
	for _, s := range m.sources {
		if s.key == nil {
			continue
		}
		c := -1
		if len(same) > 0 {
			c = cmp.Or(cmp.Compare(s.host, same[0].host), bytes.Compare(s.key, same[0].key))
		}
		if c < 0 {
			same = same[:0]
		}
		if c <= 0 {
			same = append(same, s)
		}
	}
	return same
}

// mergeFolder writes the files of one folder of all sources that have it.
func (m *merger) mergeFolder(same []*source) error {
	n, first := uint32(m.folders.Count()), len(m.order)
	for {
		var next *source
		var name []byte
		for _, s := range same {
			for ; s.doc < s.end && s.IsDead(s.doc); s.doc++ {
				s.docs[s.doc] = gone
			}
			if s.doc >= s.end {
				continue
			}
			if own := s.nameOfFile(s.doc); next == nil || bytes.Compare(own, name) < 0 {
				next, name = s, own
			}
		}
		if next == nil {
			break
		}
		if err := m.addName(next, name); err != nil {
			return err
		}
	}
	isEmpty := len(m.order) == first
	if !isEmpty {
		m.addFolder(same[0].host, string(same[0].key), uint32(first))
	}
	for _, s := range same {
		s.dirs[s.folder] = n
		if isEmpty {
			s.dirs[s.folder] = gone
		}
		s.seekFolder(s.folder + 1)
	}
	return nil
}

// addName writes the name of the next file, which is the one that s is at.
func (m *merger) addName(s *source, name []byte) error {
	n := uint32(len(m.order))
	block := n / nametable.BlockSize
	add := func(w []byte) { m.nameTrigrams.Add(w, block) }
	m.buf = eachWord(string(name), m.buf, add)
	if s.seekTag(s.doc) {
		if in := s.infoOf(s.doc); in != nil {
			eachText("", in, "", func(text string, _ byte) { m.buf = eachWord(text, m.buf, add) })
		}
	}
	m.chunk = m.nameWriter.Append(m.chunk, name)
	m.order = append(m.order, s.number)
	s.docs[s.doc] = n
	s.doc++
	return m.writeChunk(false)
}

func (m *merger) addFolder(host, path string, first uint32) {
	if m.hostCount == 0 || host != m.hostLast {
		m.hosts = appendHost(m.hosts, host, m.folders.Count())
		m.hostLast = host
		m.hostCount++
	}
	n := uint32(m.folders.Count())
	m.folderBlocks = m.folders.Append(m.folderBlocks, hostKey(m.hostCount-1, path))
	m.starts = binary.LittleEndian.AppendUint32(m.starts, first)
	m.buf = eachWord(path, m.buf, func(w []byte) { m.folderTrigrams.Add(w, n/nametable.BlockSize) })
}

// eachFile calls f with the source and the number there of every file in order.
func (m *merger) eachFile(f func(s *source, doc uint32) error) error {
	for _, s := range m.sources {
		s.doc = 0
	}
	for _, i := range m.order {
		s := m.sources[i]
		for s.docs[s.doc] == gone {
			s.doc++
		}
		if err := f(s, s.doc); err != nil {
			return err
		}
		s.doc++
	}
	return nil
}

func (m *merger) copyColumns() error {
	for _, k := range columns {
		width := uint32(columnWidths[k])
		from := make(map[*source][]byte, len(m.sources))
		for _, s := range m.sources {
			from[s] = s.Section(k)
		}
		m.writer.BeginSection(k)
		err := m.eachFile(func(s *source, doc uint32) error {
			m.chunk = append(m.chunk, from[s][doc*width:(doc+1)*width]...)
			return m.writeChunk(false)
		})
		if err := errors.Join(err, m.writeChunk(true)); err != nil {
			return err
		}
	}
	return nil
}

// copyTags copies the records of tags as they are.
func (m *merger) copyTags() error {
	m.writer.BeginSection(tagRecords)
	for _, s := range m.sources {
		s.tag = 0
	}
	n := uint32(0)
	err := m.eachFile(func(s *source, doc uint32) error {
		if s.seekTag(doc) {
			record, err := s.tagRecord(s.tag)
			if err != nil {
				return err
			}
			m.tags.numbers = append(m.tags.numbers, s.numbers[8*s.tag:8*s.tag+8]...)
			m.chunk = m.tags.appendRecord(m.chunk, n, record)
		}
		n++
		return m.writeChunk(false)
	})
	if err := errors.Join(err, m.writeChunk(true)); err != nil {
		return err
	}
	return errors.Join(m.writer.WriteSection(tagIndex, m.tags.index), m.writer.WriteSection(taggedColumn, m.tags.docs), m.writer.WriteSection(tagNumbers, m.tags.numbers))
}

// seekTag moves tag to the record of a file and reports whether there is one.
// Files ascend.
func (s *source) seekTag(doc uint32) bool {
	for s.tag < s.taggedCount() && s.taggedDoc(s.tag) < doc {
		s.tag++
	}
	return s.tag < s.taggedCount() && s.taggedDoc(s.tag) == doc
}

// mergeTerms merges the dictionaries. Lists of trigrams are made of the names as they
// lie now.
func (m *merger) mergeTerms() error {
	m.writer.BeginTerms()
	for _, s := range m.sources {
		s.terms = s.Terms().Seek(nil)
	}
	var key []byte
	for n := 0; ; n++ {
		if n%1024 == 0 && m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		var first *source
		for _, s := range m.sources {
			if s.terms.Valid() && (first == nil || bytes.Compare(s.terms.Term(), first.terms.Term()) < 0) {
				first = s
			}
		}
		if first == nil {
			break
		}
		key = append(key[:0], first.terms.Term()...)
		if len(key) == 0 || key[0] >= nameTrigram {
			break
		}
		if err := m.mergeTerm(key); err != nil {
			return err
		}
	}
	for _, s := range m.sources {
		if s.terms.Err() != nil {
			return s.terms.Err()
		}
	}
	return errors.Join(m.nameTrigrams.Write(m.writer, nameTrigram), m.folderTrigrams.Write(m.writer, folderTrigram))
}

// mergeTerm writes the list of one term and moves all sources that have it.
func (m *merger) mergeTerm(key []byte) error {
	var with []*source
	for _, s := range m.sources {
		if !s.terms.Valid() || !bytes.Equal(s.terms.Term(), key) {
			continue
		}
		list, err := s.List(s.terms.Entry())
		if err != nil {
			return err
		}
		s.list, s.numbersOf = list, s.docs
		if key[0] == folderField {
			s.numbersOf = s.dirs
		}
		s.cursor.Open(&s.list)
		with = append(with, s)
		s.terms.Next()
	}
	out := m.writer.BeginTerm(false)
	last := uint32(gone)
	for {
		var next *source
		number := uint32(gone)
		for _, s := range with {
			if n := s.nextNumber(); n < number {
				next, number = s, n
			}
		}
		if next == nil {
			break
		}
		if number != last { // else a folder that two sources have
			out.Add(number, next.cursor.Code(), nil)
		}
		last = number
		next.cursor.Next()
	}
	for _, s := range with {
		if s.cursor.Err() != nil {
			return s.cursor.Err()
		}
	}
	return m.writer.EndTerm(key, false)
}

// nextNumber passes over what is gone and returns the new number at the cursor, or
// gone at the end.
func (s *source) nextNumber() uint32 {
	for {
		at := s.cursor.Doc()
		if int(at) >= len(s.numbersOf) {
			if at != postings.End {
				s.keepFirstError(postings.ErrDamaged)
			}
			return gone
		}
		if n := s.numbersOf[at]; n != gone {
			return n
		}
		s.cursor.Next()
	}
}
