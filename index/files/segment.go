package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/freshet/freshet/index/engine/nametable"
	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/segment"
	"github.com/freshet/freshet/index/engine/segmentset"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
)

// Sections of a segment of files, beside the lists and terms that every segment
// has. Columns have one number a file, little endian.
const (
	hostSection    = segment.FirstNamesKind + iota // of each host in order: length (varint), name, first folder (varint)
	folderBlocks                                   // see package nametable; a folder is its host's number (4, big endian) and its path
	folderIndex                                    // likewise
	folderStarts                                   // first file of each folder (4), then the number of files
	nameBlocks                                     // see package nametable
	nameIndex                                      // likewise
	sizeColumn                                     // bytes (8)
	modifiedColumn                                 // seconds since 1970 (4)
	seenColumn                                     // seconds since 1970 (4)
	groupColumn                                    // hash of the title that the file is a copy of (8)
	kindColumn                                     // index into kindNames (1)
	lengthColumn                                   // words, at most 255 (1)
	taggedColumn                                   // numbers of the files that have tags, ascending (4)
	tagNumbers                                     // of each: year (2), rating in hundredths (2), seconds (4)
	tagIndex                                       // offset of every 16th record (8)
	tagRecords                                     // of each: length (varint), then as the store of shares keeps it
)

// Fields are the first byte of a term. Lists of words hold files with codes, all
// others hold numbers alone.
const (
	kindField byte = iota + 1
	extField
	genreField
	wordField     // a word of a name, of tags or of a document; the code is its mask less 1
	folderField   // a word of a folder's path; the list holds folders
	nameTrigram   // three bytes of a word of a name or of tags; the list holds blocks of names
	folderTrigram // three bytes of a word of a folder's path; the list holds blocks of folders
)

// tagBlock is how many records of tags share an offset.
const tagBlock = 16

// columnWidths are the sizes of the numbers of a file.
var columnWidths = map[segment.Kind]int{sizeColumn: 8, modifiedColumn: 4, seenColumn: 4, groupColumn: 8, kindColumn: 1, lengthColumn: 1}

// columns are the columns in the order in which they are written.
var columns = []segment.Kind{sizeColumn, modifiedColumn, seenColumn, groupColumn, kindColumn, lengthColumn}

// fileSegment is an open segment: files in the order of host, folder and name.
type fileSegment struct {
	*segment.File
	hosts   []string
	first   []uint32 // folder of each host, then the number of folders
	folders *nametable.Table
	names   *nametable.Table
	starts  []byte

	size, modified, seen, group, kind, length []byte

	tagged, numbers, tagAt, tags []byte
}

// openSegment maps a file and checks its small sections.
func openSegment(path string) (*fileSegment, error) {
	f, err := segment.OpenFile(path, segment.Names)
	if err != nil {
		return nil, err
	}
	return newSegment(f)
}

// newSegment takes the sections of f and closes it if they are damaged.
func newSegment(f *segment.File) (*fileSegment, error) {
	s := &fileSegment{File: f}
	if err := s.openFileSegment(); err != nil {
		return nil, errors.Join(fmt.Errorf("segment %s: %w", f.Path(), err), f.Close())
	}
	return s, nil
}

func (s *fileSegment) openFileSegment() error {
	for _, k := range []segment.Kind{hostSection, folderIndex, nameIndex, tagIndex} {
		if err := s.CheckSection(k); err != nil {
			return err
		}
	}
	for i, column := range []*[]byte{&s.size, &s.modified, &s.seen, &s.group, &s.kind, &s.length} {
		k := columns[i]
		if *column = s.Section(k); len(*column) != s.Len()*columnWidths[k] {
			return fmt.Errorf("column %d: %w", k, segment.ErrDamaged)
		}
	}
	s.starts = s.Section(folderStarts)
	s.tagged, s.numbers, s.tagAt, s.tags = s.Section(taggedColumn), s.Section(tagNumbers), s.Section(tagIndex), s.Section(tagRecords)
	count := len(s.tagged) / 4
	if len(s.starts) < 4 || len(s.numbers) != 8*count || len(s.tagAt) != 8*((count+tagBlock-1)/tagBlock) {
		return fmt.Errorf("columns: %w", segment.ErrDamaged)
	}
	var err error
	if s.names, err = nametable.New(s.Section(nameBlocks), s.Section(nameIndex), s.Len()); err != nil {
		return err
	}
	if s.folders, err = nametable.New(s.Section(folderBlocks), s.Section(folderIndex), len(s.starts)/4-1); err != nil {
		return err
	}
	return s.openHosts(s.Section(hostSection))
}

func (s *fileSegment) openHosts(b []byte) error {
	damaged := fmt.Errorf("hosts: %w", segment.ErrDamaged)
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return damaged
		}
		s.hosts = append(s.hosts, string(b[n:n+int(size)]))
		b = b[n+int(size):]
		first, n := binary.Uvarint(b)
		if n <= 0 || first > uint64(s.folders.Len()) || len(s.first) > 0 && uint32(first) < s.first[len(s.first)-1] {
			return damaged
		}
		s.first = append(s.first, uint32(first))
		b = b[n:]
	}
	s.first = append(s.first, uint32(s.folders.Len()))
	return nil
}

// hostRange returns the files of a host.
func (s *fileSegment) hostRange(host int) (from, to uint32) {
	return s.firstFileOf(s.first[host]), s.firstFileOf(s.first[host+1])
}

// hostOfFile returns the number of the host of a file.
func (s *fileSegment) hostOfFile(doc uint32) int {
	i := sort.Search(len(s.hosts), func(i int) bool { return s.firstFileOf(s.first[i]) > doc })
	return max(i-1, 0)
}

// firstFileOf returns the first file of a folder; of the number of folders, the number
// of files.
func (s *fileSegment) firstFileOf(folder uint32) uint32 {
	if int(folder) >= len(s.starts)/4 {
		return uint32(s.Len())
	}
	return min(binary.LittleEndian.Uint32(s.starts[4*folder:]), uint32(s.Len()))
}

// folderOf returns the folder of a file.
func (s *fileSegment) folderOf(doc uint32) uint32 {
	low, high := 0, s.folders.Len() // every folder has a file
	for low < high {
		if mid := (low + high) / 2; s.firstFileOf(uint32(mid)) <= doc {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return uint32(max(low-1, 0))
}

func (s *fileSegment) sizeOf(doc uint32) int64 {
	return int64(binary.LittleEndian.Uint64(s.size[8*doc:]))
}

func (s *fileSegment) modifiedOf(doc uint32) uint32 {
	return binary.LittleEndian.Uint32(s.modified[4*doc:])
}

func (s *fileSegment) seenOf(doc uint32) uint32 { return binary.LittleEndian.Uint32(s.seen[4*doc:]) }

func (s *fileSegment) groupOf(doc uint32) uint64 { return binary.LittleEndian.Uint64(s.group[8*doc:]) }

func (s *fileSegment) kindOf(doc uint32) media.Kind {
	return kindNames[min(int(s.kind[doc]), len(kindNames)-1)]
}

// taggedCount is the number of files that have tags.
func (s *fileSegment) taggedCount() int { return len(s.tagged) / 4 }

// taggedDoc returns the file of a record of tags.
func (s *fileSegment) taggedDoc(i int) uint32 { return binary.LittleEndian.Uint32(s.tagged[4*i:]) }

// taggedFrom returns the first record of a file that is at least doc.
func (s *fileSegment) taggedFrom(doc uint32) int {
	low, high := 0, s.taggedCount()
	for low < high {
		if mid := (low + high) / 2; s.taggedDoc(mid) < doc {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// tagNumber returns the year, the rating or the duration in seconds of a record.
func (s *fileSegment) tagNumber(i int, field string) float64 {
	b := s.numbers[8*i:]
	switch field {
	case "year":
		return float64(binary.LittleEndian.Uint16(b))
	case "rating":
		return float64(binary.LittleEndian.Uint16(b[2:])) / 100
	}
	return float64(binary.LittleEndian.Uint32(b[4:]))
}

// appendTagNumbers appends what tagNumber reads.
func appendTagNumbers(dst []byte, in *media.Info) []byte {
	small := func(v float64) uint16 { return uint16(max(0, min(v, math.MaxUint16))) }
	dst = binary.LittleEndian.AppendUint16(dst, small(float64(in.Year)))
	dst = binary.LittleEndian.AppendUint16(dst, small(math.Round(in.Rating*100)))
	return binary.LittleEndian.AppendUint32(dst, uint32(max(0, min(in.Duration/time.Second, math.MaxUint32))))
}

// tagRecord returns record i of the tags as it is stored.
func (s *fileSegment) tagRecord(i int) ([]byte, error) {
	at := binary.LittleEndian.Uint64(s.tagAt[8*(i/tagBlock):])
	if at > uint64(len(s.tags)) {
		return nil, fmt.Errorf("tags: %w", segment.ErrDamaged)
	}
	b := s.tags[at:]
	for skip := i % tagBlock; ; skip-- {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, fmt.Errorf("tags: %w", segment.ErrDamaged)
		}
		if skip == 0 {
			return b[n : n+int(size)], nil
		}
		b = b[n+int(size):]
	}
}

// parseTags reads a record.
func parseTags(record []byte) (media.Info, error) {
	var f share.File
	if err := share.ParseFile(record, &f); err != nil {
		return f.Media, fmt.Errorf("tags: %w: %w", segment.ErrDamaged, err)
	}
	return f.Media, nil
}

// hostKey is the beginning of the folders of a host in the table of folders.
func hostKey(host uint32, path string) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(path)), host), path...)
}

// locator finds files by their paths; paths of one folder in a row cost one lookup.
type locator struct {
	segment  *fileSegment
	host     uint32
	isKnown  bool // the segment has the host
	folder   string
	from, to uint32 // files of the folder
	block    nametable.Block
}

func newLocator(s *fileSegment, host string) *locator {
	n, ok := slices.BinarySearch(s.hosts, host)
	return &locator{segment: s, host: uint32(n), isKnown: ok, folder: "\x00"}
}

// findFile returns the file at a path.
func (l *locator) findFile(folder, name string) (uint32, bool, error) {
	if !l.isKnown {
		return 0, false, nil
	}
	if folder != l.folder {
		s := l.segment
		at, ok, err := s.folders.Search(0, uint32(s.folders.Len()), hostKey(l.host, folder), &l.block)
		if err != nil {
			return 0, false, err
		}
		l.folder, l.from, l.to = folder, 0, 0
		if ok {
			l.from, l.to = s.firstFileOf(at), s.firstFileOf(at+1)
		}
	}
	return l.segment.names.Search(l.from, l.to, []byte(name), &l.block)
}

// view is a segment as one search sees it.
type view struct {
	*fileSegment
	dead *roaring.Bitmap
}

func newView(s *fileSegment, st segmentset.State) *view {
	return &view{s, roaring.FromDense(st.Dead, true)}
}

// IsDead implements segmentset.Part.
func (v *view) IsDead(doc uint32) bool { return v.dead.Contains(doc) }

// Live implements segmentset.Part.
func (v *view) Live() int { return v.Len() - int(v.dead.GetCardinality()) }

// reader reads one view for one search or merge. It keeps the blocks that were
// decoded last, and the first error.
type reader struct {
	*view
	err         error
	nameText    nametable.Block
	nameBlock   int
	folderText  nametable.Block
	folderBlock int
	cursor      postings.Cursor
	lower       []byte // scratch space
	words       []byte // scratch space
}

func newReader(v *view) *reader { return &reader{view: v, nameBlock: -1, folderBlock: -1} }

// keepFirstError keeps the first error.
func (r *reader) keepFirstError(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("segment %s: %w", r.Path(), err)
	}
}

// loadNames decodes a block of names.
func (r *reader) loadNames(block int) *nametable.Block {
	if block != r.nameBlock {
		r.nameBlock = block
		r.keepFirstError(r.names.Decode(block, &r.nameText))
	}
	return &r.nameText
}

// nameOfFile returns the name of a file until another block is read.
func (r *reader) nameOfFile(doc uint32) []byte {
	return r.loadNames(int(doc / nametable.BlockSize)).Name(int(doc % nametable.BlockSize))
}

// loadFolders decodes a block of folders.
func (r *reader) loadFolders(block int) *nametable.Block {
	if block != r.folderBlock {
		r.folderBlock = block
		r.keepFirstError(r.folders.Decode(block, &r.folderText))
	}
	return &r.folderText
}

// folderKey returns host and path of a folder as they are in the table.
func (r *reader) folderKey(folder uint32) []byte {
	if int(folder) >= r.folders.Len() {
		r.keepFirstError(fmt.Errorf("folder: %w", segment.ErrDamaged))
		return make([]byte, 4)
	}
	key := r.loadFolders(int(folder / nametable.BlockSize)).Name(int(folder % nametable.BlockSize))
	if len(key) < 4 || int(binary.BigEndian.Uint32(key)) >= len(r.hosts) {
		r.keepFirstError(fmt.Errorf("folder: %w", segment.ErrDamaged))
		return make([]byte, 4)
	}
	return key
}

// pathOfFolder returns the path of a folder.
func (r *reader) pathOfFolder(folder uint32) string { return string(r.folderKey(folder)[4:]) }

// hostOf returns the name of the host of a folder.
func (r *reader) hostOf(folder uint32) string {
	n := binary.BigEndian.Uint32(r.folderKey(folder))
	if int(n) >= len(r.hosts) {
		return ""
	}
	return r.hosts[n]
}

// infoOf returns the tags of a file, nil if it has none.
func (r *reader) infoOf(doc uint32) *media.Info {
	i := r.taggedFrom(doc)
	if i >= r.taggedCount() || r.taggedDoc(i) != doc {
		return nil
	}
	record, err := r.tagRecord(i)
	if err != nil {
		r.keepFirstError(err)
		return nil
	}
	in, err := parseTags(record)
	r.keepFirstError(err)
	return &in
}

// eachHost calls f for the files of each host, in order.
func (s *fileSegment) eachHost(f func(host string, from, to uint32)) {
	for i, h := range s.hosts {
		if from, to := s.hostRange(i); from < to {
			f(h, from, to)
		}
	}
}
