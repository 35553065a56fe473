package share

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
)

// Counts are what scans did, added up.
type Counts struct {
	Listings    int64 // folders listed
	TagReads    int64 // files opened for tags or text
	StoreReads  int64 // rows read
	StoreWrites int64 // rows written
	Added       int64
	Changed     int64
	Removed     int64
	Scans       int64 // parts scanned
	PartChanges int64 // scans that found a change
	Bytes       int64 // read of files, for tags
	Errors      map[string]int64
}

func (c *Counts) countError(class source.Class) {
	if c.Errors == nil {
		c.Errors = map[string]int64{}
	}
	c.Errors[string(class)]++
}

// Plus adds d to c.
func (c *Counts) Plus(d Counts) {
	c.Listings += d.Listings
	c.TagReads += d.TagReads
	c.StoreReads += d.StoreReads
	c.StoreWrites += d.StoreWrites
	c.Added += d.Added
	c.Changed += d.Changed
	c.Removed += d.Removed
	c.Scans += d.Scans
	c.PartChanges += d.PartChanges
	c.Bytes += d.Bytes
	for k, n := range d.Errors {
		if c.Errors == nil {
			c.Errors = map[string]int64{}
		}
		c.Errors[k] += n
	}
}

// scan is one scan of one part: walk, compare hashes, and where they differ,
// compare with the stored files, read tags, commit.
type scan struct {
	store Store
	sink  Sink
	src   source.Source
	host  *host
	cfg   *Config
	robot *Robot
	part  part.Part
	now   int64

	old        PartState
	inside     []part.Span
	walk       part.Walk
	found      []found
	bytes      int64  // that found takes
	peak       int64  // most of it
	next       string // first key that was not compared yet
	spilled    bool   // something was compared before the walk's end
	folder     *part.Folder
	batch      Batch
	size       int64      // of batch.Put
	remove     part.Paths // of files that are to be removed at the end
	spill      part.Spill // of remove
	walkSpill  part.Spill
	denied     []string        // folders denied in this scan
	asked      []string        // folders denied before that were asked again
	emptied    bool            // a folder was denied or gone again: what is stored of it goes
	gone       map[string]bool // folders that were gone although their parents listed them
	goneBefore map[string]bool // those of the part's last scan
	identity   string          // of the root, at the beginning
	rootSeen   bool            // the root was seen since the walk
	refused    bool            // a document exceeds the reader's limits
	lost       error           // why the host cannot be connected to again
	counts     Counts
}

// found is a file that the walk met and that was not compared yet.
type found struct {
	folder *part.Folder
	name   string
	size   int64
	mtime  int64
}

// outcome of a scan that reached its end.
type outcome struct {
	changed    bool        // something differs from what was stored
	missing    bool        // the part's folder is gone, and with it the part
	unreadable error       // why the part's folder could not be read
	again      []part.Part // parts to look at at once
}

// scanPart scans the part. On an error nothing is removed from the store; files that
// were added or changed before it are kept.
func (s *scan) scanPart(ctx context.Context) (outcome, error) {
	old, known, err := s.store.Part(ctx, s.host.name, s.part)
	if err != nil {
		return outcome{}, err
	}
	s.old = old
	s.old.Part = s.part
	s.counts.StoreReads++
	s.counts.Scans++
	s.inside = s.host.table.Inside(s.part)
	s.goneBefore = s.robot.goneFolders(s.host, s.part)
	s.next, _ = s.part.Range()
	s.batch.Host = s.host.name
	s.spill.Dir, s.walkSpill.Dir = s.cfg.TempDir, s.cfg.TempDir
	defer s.spill.Close()
	defer s.walkSpill.Close()
	s.remove = part.Paths{Spill: &s.spill, Memory: s.cfg.Bound.Memory()}
	s.walk = part.Walk{
		Spill: &s.walkSpill,
		List:  s.src, Part: s.part, Inside: s.inside, Bound: s.cfg.Bound, Media: media.Readable,
		Skip: s.skipDenied, Failed: s.noteUnreadable, Now: s.cfg.Now,
		File: func(folder *part.Folder, e source.Entry) error { return s.takeFile(ctx, folder, e) },
	}
	if s.identity, err = s.rootIdentity(ctx); err != nil {
		return outcome{}, err
	}
	err = s.walk.Run(ctx)
	s.counts.Listings += s.walk.Result.Listings
	if err != nil {
		return outcome{}, err
	}
	if err := s.sameRoot(ctx); err != nil {
		return outcome{}, err
	}
	r := &s.walk.Result
	if r.Unreadable != nil {
		return outcome{unreadable: r.Unreadable}, nil
	}
	emptyRoot := s.part.Folder == "" && r.Sum.Files+r.Sum.Folders == 0
	if emptyRoot || r.Missing || len(r.Orphans) > 0 {
		if err := s.confirmRoot(ctx); err != nil {
			return outcome{}, err
		}
	}
	if len(s.gone) > 0 { // to be looked at once more, now that their parents have changed
		r.Orphans = append(r.Orphans, s.part)
	}
	re := s.cfg.Bound.Recut(s.part, *r)
	if known && old.Changed > 0 && !r.Missing && !s.spilled && !s.emptied && r.Sum.Hash == old.Sum.Hash && !s.refusedByOther() && len(re.New) == 0 && !re.Merge {
		return outcome{again: r.Orphans}, nil
	}
	_, high := s.part.Range()
	if err := s.compareUpTo(ctx, high); err != nil {
		return outcome{}, err
	}
	return s.finishScan(ctx, re)
}

// refusedByOther reports whether the part has documents that another version of the
// program, or one with other limits, could not read.
func (s *scan) refusedByOther() bool {
	return s.cfg.Media && s.old.Refused != 0 && s.old.Refused != s.cfg.PDF.Fingerprint()
}

// takeFile takes a file from the walk. What is held stays within twice the bound: a
// part that grew beyond it is compared and committed as the walk goes.
func (s *scan) takeFile(ctx context.Context, folder *part.Folder, e source.Entry) error {
	if folder != s.folder {
		s.folder = folder
		s.bytes += int64(len(folder.Path) + len(folder.Key))
	}
	s.bytes += part.Cost(e.Name, media.Readable(e.Name))
	s.peak = max(s.peak, s.bytes)
	s.found = append(s.found, found{folder, e.Name, e.Size, e.Modified})
	if s.bytes <= 2*s.cfg.Bound.Memory() {
		return nil
	}
	if err := s.compareUpTo(ctx, part.FileKey(folder.Key, e.Name)+"\x00"); err != nil {
		return err
	}
	return s.flushFiles(ctx)
}

// skipDenied tells the walk of folders that were denied not long ago.
func (s *scan) skipDenied(folder string) bool {
	at, ok := s.host.denied[folder]
	if !ok {
		return false
	}
	if s.now-at < int64(s.cfg.DeniedRetry.Seconds()) {
		return true
	}
	s.asked = append(s.asked, folder)
	return false
}

// noteUnreadable remembers a folder that could not be read. What is stored of a denied
// folder stays until it is denied a second time: one refusal may be a mood of
// the server. So does what is stored of a folder that is gone although its parent
// lists it, until the part's next scan: its host or a mount may be about to go.
func (s *scan) noteUnreadable(folder string, err error) (keep bool) {
	if errors.Is(err, part.ErrRemembered) {
		return true
	}
	class := source.ClassOf(err)
	s.counts.countError(class)
	before := false
	switch class {
	case source.Denied:
		_, before = s.host.denied[folder]
		if len(s.host.denied)+len(s.denied) < maxDenied {
			s.denied = append(s.denied, folder)
		}
	case source.Gone:
		if before = s.goneBefore[folder]; !before && len(s.gone) < maxDenied {
			if s.gone == nil {
				s.gone = map[string]bool{}
			}
			s.gone[folder] = true
		}
	}
	if before {
		s.emptied = true
	}
	return !before
}

// maxDenied bounds the denied folders remembered of one host, and the folders of
// one part that are gone.
const maxDenied = 10_000

// compareUpTo goes through what was found and what is stored up to the key upto,
// side by side, and notes the differences.
func (s *scan) compareUpTo(ctx context.Context, upto string) error {
	var changes []difference
	sides := s.sideFiles()
	same := map[string]*File{} // unchanged films that have a side file
	i := 0
	key := func() string { return part.FileKey(s.found[i].folder.Key, s.found[i].name) }
	k := ""
	if len(s.found) > 0 {
		k = key()
	}
	step := func() {
		if i++; i < len(s.found) {
			k = key()
		}
	}
	for _, r := range s.scannedRanges(upto) {
		err := s.store.Files(ctx, s.host.name, r.Low, r.High, func(stored string, f *File) error {
			s.counts.StoreReads++
			for i < len(s.found) && k < stored {
				changes = append(changes, difference{found: s.found[i]})
				step()
			}
			if i == len(s.found) || k != stored {
				return s.remove.Add(f.Path)
			}
			f.Media.Text = "" // the difference needs none of it
			refusedBy := f.refusedBy()
			if n := s.found[i]; n.size != f.Size || !sameTime(n.mtime, f.Modified) || s.cfg.Media && refusedBy != "" && refusedBy != s.readerID() {
				changes = append(changes, difference{n, f})
			} else if len(sides) > 0 && sides[n.pathStem()] != "" {
				same[n.pathStem()] = f
			}
			s.refused = s.refused || refusedBy != ""
			step()
			return nil
		})
		if err != nil {
			return err
		}
	}
	for ; i < len(s.found); i++ {
		changes = append(changes, difference{found: s.found[i]})
	}
	changes = s.withFilms(changes, same)
	s.next = upto
	s.spilled = true
	s.found, s.bytes, s.folder = s.found[:0], 0, nil
	for j := range changes {
		if err := s.stageFile(ctx, changes[j].found, changes[j].old, sides[changes[j].pathStem()]); err != nil {
			return err
		}
		changes[j] = difference{}
	}
	return nil
}

// difference is a file that is new, or differs from what is stored.
type difference struct {
	found
	old *File
}

// pathStem is the path of the file without its extension.
func (n *found) pathStem() string {
	return part.JoinPath(n.folder.Path, strings.TrimSuffix(n.name, path.Ext(n.name)))
}

// sideFiles returns the .nfo files among what was found, by the stem that they
// share with their film.
func (s *scan) sideFiles() map[string]string {
	var out map[string]string
	for i := range s.found {
		if n := &s.found[i]; media.Ext(n.name) == "nfo" && n.size <= media.MaxNFO && s.cfg.Media {
			if out == nil {
				out = map[string]string{}
			}
			out[n.pathStem()] = part.JoinPath(n.folder.Path, n.name)
		}
	}
	return out
}

// withFilms adds the unchanged films whose side file changed.
func (s *scan) withFilms(changes []difference, same map[string]*File) []difference {
	for _, c := range changes {
		if f := same[c.pathStem()]; media.Ext(c.name) == "nfo" && f != nil && f.Kind() == media.Video {
			folder, name := part.SplitPath(f.Path)
			changes = append(changes, difference{found{&part.Folder{Path: folder, Key: c.folder.Key}, name, f.Size, f.Modified}, f})
		}
	}
	return changes
}

// scannedRanges returns the ranges from next to upto that this scan has looked at: without
// the parts inside and what could not be read.
func (s *scan) scannedRanges(upto string) []part.Range {
	var out []part.Range
	from := s.next
	cut := func(low, high string) {
		if high <= from || low >= upto {
			return
		}
		if low > from {
			out = append(out, part.Range{Low: from, High: low})
		}
		from = max(from, high)
	}
	kept, i := s.walk.Result.Kept, 0
	for _, in := range s.inside {
		for ; i < len(kept) && kept[i].Low < in.Low; i++ {
			cut(kept[i].Low, kept[i].High)
		}
		cut(in.Low, in.High)
	}
	for ; i < len(kept); i++ {
		cut(kept[i].Low, kept[i].High)
	}
	if from < upto {
		out = append(out, part.Range{Low: from, High: upto})
	}
	return out
}

// sameTime compares times of one file as a listing may give them. FTP's LIST
// shows minutes for recent files and days for older ones: a time that only lost
// its minutes or hours is the same.
func sameTime(a, b int64) bool {
	if a == b {
		return true
	}
	if a > b {
		a, b = b, a
	}
	switch {
	case a%86400 == 0:
		return b-a < 86400 && b%60 == 0
	case a%60 == 0:
		return b-a < 60
	}
	return false
}

// stageFile puts a new or changed file into the batch, with its tags.
func (s *scan) stageFile(ctx context.Context, n found, old *File, side string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f := File{Host: s.host.name, Path: part.JoinPath(n.folder.Path, n.name), Size: n.size, Modified: n.mtime, Seen: s.now}
	if old != nil {
		f.Seen = old.Seen
		s.counts.Changed++
	} else {
		s.counts.Added++
	}
	if s.cfg.Media && media.Readable(n.name) && n.size > 0 {
		if err := s.readTags(ctx, &f); err != nil {
			return err
		}
	}
	if side != "" && f.Kind() == media.Video {
		if err := s.readSideFile(ctx, side, &f); err != nil {
			return err
		}
	}
	s.cfg.Knowledge.Tell(n.name, &f.Media)
	s.size += part.Cost(f.Path, true) + int64(len(f.Media.Text))
	s.batch.Put = append(s.batch.Put, f)
	if s.lost != nil {
		if err := s.flushFiles(ctx); err != nil {
			return err
		}
		return s.lost
	}
	if s.size > 2*s.cfg.Bound.Memory() {
		return s.flushFiles(ctx)
	}
	return nil
}

// readTags reads the tags of f. A file that says nothing, or cannot be read, is kept
// without tags, and so is one that takes too long. Only a lost connection is an
// error, and only the first time: what loses it twice is the file's fault.
func (s *scan) readTags(ctx context.Context, f *File) error {
	return s.openForTags(ctx, f, f.Path, func(ctx context.Context, r source.File) error {
		blocks := media.NewBlocks(ctx, r, r.Size())
		var err error
		f.Media, err = media.Reader{PDF: s.cfg.PDF}.Read(ctx, f.Name(), blocks, r.Size())
		s.counts.Bytes += blocks.BytesRead()
		if cut := blocks.Err(); cut != nil {
			return cut
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			class := source.Class(noTags)
			f.TagError = noTags
			if f.Media.Problem != "" {
				class = source.Class(f.Media.Problem)
				f.TagError = f.Media.Problem + " " + s.readerID()
				s.refused = true
			}
			s.counts.countError(class)
		}
		return nil
	})
}

// readerID names the version and the limits of who reads tags, in the TagError of files that
// exceeded them.
func (s *scan) readerID() string { return strconv.FormatUint(uint64(s.cfg.PDF.Fingerprint()), 16) }

// noTags is the reason of files whose bytes are damaged, or say nothing.
const noTags = "tags"

// openForTags opens the file at path and lets read read it, for f, within TagTimeout.
func (s *scan) openForTags(ctx context.Context, f *File, path string, read func(context.Context, source.File) error) error {
	s.counts.TagReads++
	limited, cancel := context.WithTimeout(ctx, s.cfg.TagTimeout)
	defer cancel()
	r, err := s.src.Open(limited, path)
	if err == nil {
		err = read(limited, r)
		r.Close()
	}
	if err == nil {
		return nil
	}
	err = source.Wrap("read", path, err)
	if ctx.Err() != nil {
		return err // of the scan itself
	}
	class := source.ClassOf(err)
	tooSlow := limited.Err() != nil
	if tooSlow {
		class = source.Timeout
	}
	s.counts.countError(class)
	if class.Lost() && !tooSlow && s.host.suspect != path {
		s.host.suspect = path
		if ferr := s.flushFiles(ctx); ferr != nil {
			return ferr
		}
		return err
	}
	f.TagError = string(class)
	s.cfg.Log.Debug("file without tags", "host", s.host.name, "path", path, "class", class, "error", err)
	if !class.Lost() {
		return nil
	}
	s.host.suspect = ""
	return s.reconnectSession(ctx)
}

// reconnectSession replaces a connection that a file was slow on or lost: some protocols
// cannot go on with it. The file is committed first, so that it cannot lose the next.
func (s *scan) reconnectSession(ctx context.Context) error {
	s.robot.closeSession(s.host)
	src, err := s.robot.openSession(ctx, s.host)
	if err != nil {
		s.lost = err
		return nil
	}
	s.src, s.walk.List = src, src
	return nil
}

// readSideFile reads a film's side file. What it says goes before the film's own tags,
// which releases fill with their names.
func (s *scan) readSideFile(ctx context.Context, name string, f *File) error {
	return s.openForTags(ctx, f, name, func(_ context.Context, r source.File) error {
		b, err := io.ReadAll(io.NewSectionReader(r, 0, min(r.Size(), media.MaxNFO)))
		if err != nil {
			return err
		}
		s.counts.Bytes += int64(len(b))
		if in, err := media.ParseNFO(b); err == nil {
			in.Learn(f.Media)
			in.Duration, in.BitRate, in.Width, in.Height = f.Media.Duration, f.Media.BitRate, f.Media.Width, f.Media.Height
			f.Media = in
		}
		return nil
	})
}

// flushFiles commits files before the scan's end. The part is marked as not scanned
// to its end, so that a crash now is mended by the next scan.
func (s *scan) flushFiles(ctx context.Context) error {
	if len(s.batch.Put) == 0 {
		return nil
	}
	return s.commitOpen(ctx)
}

// commitOpen commits the batch and marks the part as not scanned to its end.
func (s *scan) commitOpen(ctx context.Context) error {
	open := s.old
	open.Changed, open.Sum.Hash = 0, part.Hash{}
	s.batch.Parts = []PartState{open}
	return s.commitBatch(ctx)
}

func (s *scan) commitBatch(ctx context.Context) error {
	if err := s.store.Commit(ctx, s.batch); err != nil {
		return err
	}
	s.counts.StoreWrites += s.batch.Writes()
	if len(s.batch.Put)+len(s.batch.Delete) > 0 {
		if err := s.sink.Update(ctx, s.host.name, s.batch.Put, s.batch.Delete); err != nil {
			return fmt.Errorf("index a scan of %s: %w", s.host.name, err)
		}
	}
	s.batch, s.size = Batch{Host: s.host.name}, 0
	return nil
}

// maxRemovals bounds the files that one batch removes.
const maxRemovals = 10_000

// removeFiles puts the files that are gone into the batch, and commits before where
// they are too many for one.
func (s *scan) removeFiles(ctx context.Context) error {
	s.counts.Removed += s.remove.Len()
	return s.remove.Each(maxRemovals, func(paths []string) error {
		if len(s.batch.Delete) > 0 {
			if err := s.commitOpen(ctx); err != nil {
				return err
			}
		}
		s.batch.Delete = paths
		return nil
	})
}

// finishScan commits what the whole walk found, and the new cut.
func (s *scan) finishScan(ctx context.Context, re part.Recut) (outcome, error) {
	r := &s.walk.Result
	if s.remove.Len() > 0 {
		if err := s.confirmRoot(ctx); err != nil {
			return outcome{}, err
		}
	}
	if err := s.removeFiles(ctx); err != nil {
		return outcome{}, err
	}
	out := outcome{again: r.Orphans, missing: r.Missing}
	out.changed = r.Missing || s.old.Changed == 0 || r.Sum.Hash != s.old.Sum.Hash
	state := PartState{Part: s.part, Sum: re.Sum, Changed: s.now}
	if s.refused {
		state.Refused = s.cfg.PDF.Fingerprint()
	}
	if !out.changed {
		state.Changed = s.old.Changed
	}
	for _, n := range re.New {
		s.batch.Parts = append(s.batch.Parts, PartState{Part: n.Part, Sum: n.Sum, Changed: s.now, Refused: state.Refused})
	}
	outer, ok := s.host.table.Around(s.part)
	switch {
	case r.Missing:
		s.batch.Gone = append(s.batch.Gone, s.part)
	case re.Merge && ok:
		o, _, err := s.store.Part(ctx, s.host.name, outer)
		if err != nil {
			return outcome{}, err
		}
		s.counts.StoreReads++
		o.Part = outer
		o.Sum = o.Sum.Plus(state.Sum)
		o.Refused = cmp.Or(o.Refused, state.Refused)
		s.batch.Parts = append(s.batch.Parts, o)
		s.batch.Gone = append(s.batch.Gone, s.part)
		if s.cfg.Bound.Load(o.Sum) > 2 {
			out.again = append(out.again, outer)
		}
	default:
		s.batch.Parts = append(s.batch.Parts, state)
	}
	parts, gone := s.batch.Parts, s.batch.Gone
	if err := s.commitBatch(ctx); err != nil {
		return outcome{}, err
	}
	s.host.applyParts(s.robot, parts, gone, s.part)
	return out, nil
}
