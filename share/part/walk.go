package part

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/share/source"
)

// Lister lists a folder; a source.Source is one.
type Lister interface {
	List(ctx context.Context, path string) ([]source.Entry, error)
}

// Walk reads a part and finds where it may be cut. The zero value of every
// field but List is useful.
type Walk struct {
	List   Lister
	Part   Part
	Inside []Span // the outermost parts inside, in order: left out
	Bound  Bound
	// Memory bounds the names of subfolders that wait for their turn; 0 means
	// Bound's. What does not fit is forgotten and listed again later.
	Memory int64
	// File is called for every file, in the order of keys. folder is the same
	// pointer for all files of one folder.
	File func(folder *Folder, e source.Entry) error
	// Media tells which names count as media files.
	Media func(name string) bool
	// Skip tells of folders that are not to be listed (denied before). What is
	// stored of them stays.
	Skip func(path string) bool
	// Failed hears of a folder that could not be read while the walk goes on, and
	// tells whether what is stored of it stays. nil: it stays.
	Failed func(path string, err error) (keep bool)
	// Now is the clock that listings are timed with; nil means time.Now.
	Now func() time.Time
	// MaxDepth ends walks into whatever has no end; 0 means 20,000.
	MaxDepth int

	Result Result // what Run found

	stack    []level
	path     []byte // of the folder on top
	key      []byte
	folder   *Folder // of the files on top
	waiting  int64   // bytes of names that wait
	hash     hasher
	failed   int             // failures in a row
	alive    map[string]bool // folders of parts inside that were met
	above    []ancestor
	verdicts map[Hash]bool // listings that repeat: whether for ever
}

// Folder is where a file is.
type Folder struct {
	Path string
	Key  string
}

// Result is what a walk found.
type Result struct {
	Sum      Sum     // of the whole part
	Rest     Sum     // of the part without the pieces
	Pieces   []Piece // closed pieces, inner before outer: candidates for parts
	Kept     []Range // key ranges that could not be read: stored entries stay
	Listings int64
	Relisted int64  // listings repeated for want of memory
	Links    int64  // symbolic links left out
	Loops    int64  // folders left out because they repeat a folder above
	Peak     int64  // most bytes of waiting names held at once
	Orphans  []Part // outermost parts inside whose folder the walk did not meet
	Missing  bool   // the part's own folder is gone
}

// Range is a range of keys [Low, High).
type Range struct{ Low, High string }

// Piece is a candidate for a part.
type Piece struct {
	Part Part
	Sum  Sum // without the pieces inside it
}

// level is a folder that is being walked.
type level struct {
	name    string
	left    string   // border behind the last closed piece
	last    string   // name key of the subfolder walked last
	names   []string // subfolders that wait, in order
	dropped bool     // names were forgotten: list again
	own     Sum      // the folder itself; its parent's part holds it
	run     Sum      // since left, without closed pieces inside
	size    int64    // bytes of names
	digest  Hash     // of the listing, to find loops
	entries int
	files   int
}

const fileCost, folderCost, mediaCost = 120, 160, 160

// Cost returns the memory that a file takes in a list of files.
func Cost(name string, media bool) int64 {
	c := int64(fileCost + len(name))
	if media {
		c += mediaCost
	}
	return c
}

// Run walks the part. An error means that the walk was cut off: what was not
// reached is unknown, nothing follows from its absence.
func (w *Walk) Run(ctx context.Context) error {
	if w.Now == nil {
		w.Now = time.Now
	}
	if w.Memory <= 0 {
		w.Memory = w.Bound.Memory()
	}
	if w.MaxDepth <= 0 {
		w.MaxDepth = 20_000
	}
	w.path = append(w.path[:0], w.Part.Folder...)
	w.key = append(w.key[:0], FolderKey(w.Part.Folder)...)
	w.stack = append(w.stack[:0], level{left: w.Part.Left})
	if err := w.enter(ctx); err != nil {
		if source.ClassOf(err) == source.Gone && !w.Part.Root() {
			w.Result.Missing = true
			return nil
		}
		return err
	}
	if err := w.lookAbove(ctx); err != nil {
		return err
	}
	for {
		top := &w.stack[len(w.stack)-1]
		if top.dropped {
			if err := w.relist(ctx); err != nil {
				return err
			}
			continue
		}
		if len(top.names) > 0 {
			if err := w.descend(ctx); err != nil {
				return err
			}
			continue
		}
		if len(w.stack) == 1 {
			w.Result.Rest = top.own.Plus(top.run)
			w.Result.Sum = w.Result.Sum.Plus(w.Result.Rest)
			w.orphans()
			return nil
		}
		w.leave()
	}
}

// descend takes the first waiting subfolder of the top level.
func (w *Walk) descend(ctx context.Context) error {
	top := &w.stack[len(w.stack)-1]
	name := top.names[0]
	top.names[0] = ""
	top.names = top.names[1:]
	w.waiting -= nameSize(name)
	top.size -= nameSize(name)
	top.last = Name(name)
	w.push(name)
	if len(w.stack) > w.MaxDepth {
		w.Result.Loops++
		w.leave()
		return nil
	}
	if w.covered() {
		w.meet()
		return nil // a part inside holds all of it: nothing to list
	}
	err := w.enter(ctx)
	if err == nil {
		w.failed = 0
		return nil
	}
	return w.unreadable(err)
}

func (w *Walk) push(name string) {
	if len(w.path) > 0 {
		w.path = append(w.path, '/')
	}
	w.path = append(w.path, name...)
	w.key = append(append(append(w.key, folderSign...), Name(name)...), 0)
	w.hash.enter(w.key)
	own := Sum{Folders: 1, Bytes: int64(folderCost + 2*len(w.key)), Hash: w.hash.entry(folderSign, "", 0, 0)}
	w.stack = append(w.stack, level{name: name, own: own})
}

// leave pops a finished level and gives what remains of it to its parent.
func (w *Walk) leave() {
	top := &w.stack[len(w.stack)-1]
	if w.Bound.Load(top.run) >= 1 {
		w.close(top, "")
	}
	rest := top.own.Plus(top.run)
	w.pop()
	w.add(folderSign, w.stack[len(w.stack)-1].last, rest)
}

func (w *Walk) pop() {
	n := len(w.stack) - 1
	name := w.stack[n].name
	w.stack[n] = level{}
	w.stack = w.stack[:n]
	w.path = w.path[:len(w.path)-len(name)]
	if len(w.path) > 0 {
		w.path = w.path[:len(w.path)-1]
	}
	w.key = w.key[:len(w.key)-len(Name(name))-2]
	w.folder = nil
}

// add puts a finished child with this sign and name key on the top level's
// running sum, and closes a piece before it when the sum is large enough.
func (w *Walk) add(sign, name string, s Sum) {
	top := &w.stack[len(w.stack)-1]
	if load := w.Bound.Load(top.run); load >= 1 || (load >= 0.5 && w.Bound.Load(top.run.Plus(s)) > 1) {
		w.close(top, sign+name)
	}
	top.run = top.run.Plus(s)
}

// close makes a piece of what the top level gathered since its last border.
func (w *Walk) close(top *level, right string) {
	p := Part{Folder: string(w.path), Left: top.left, Right: right}
	if len(w.stack) == 1 && right == "" {
		p.Right = w.Part.Right
	}
	w.Result.Pieces = append(w.Result.Pieces, Piece{p, top.run})
	w.Result.Sum = w.Result.Sum.Plus(top.run)
	top.left, top.run = right, Sum{}
}

// unreadable decides what an error for the folder just entered means. The folder
// itself is there: its parent lists it.
func (w *Walk) unreadable(err error) error {
	class := source.ClassOf(err)
	path, key := string(w.path), string(w.key)
	own := w.stack[len(w.stack)-1].own
	w.pop()
	if class.Lost() {
		return err
	}
	if class == source.Protocol {
		if w.failed++; w.failed >= 10 {
			return fmt.Errorf("%d folders in a row: %w", w.failed, err)
		}
	}
	keep := w.Failed == nil || w.Failed(path, err)
	if class == source.Gone {
		return nil // since its parent was listed
	}
	if keep {
		w.Result.Kept = append(w.Result.Kept, Range{key, key + endSign})
	}
	w.add(folderSign, w.stack[len(w.stack)-1].last, own)
	return nil
}

// enter lists the folder on top, gives out its files and keeps the names of
// its subfolders.
func (w *Walk) enter(ctx context.Context) error {
	path := string(w.path)
	if w.Skip != nil && len(w.stack) > 1 && w.Skip(path) {
		return &source.Error{Op: "list", Path: "/" + path, Class: source.Denied, Err: ErrRemembered}
	}
	start := w.Now()
	entries, err := w.List.List(ctx, path)
	if err != nil {
		return err
	}
	w.Result.Listings++
	top := &w.stack[len(w.stack)-1]
	top.own.Time += w.Now().Sub(start)
	w.hash.enter(w.key)
	if again, err := w.loop(ctx, entries); again || err != nil {
		if again {
			w.Result.Loops++
		}
		return err
	}
	w.folder = nil
	return w.sift(entries, "")
}

// ErrRemembered is why a folder was not listed: it was denied before.
var ErrRemembered = errors.New("denied before, not asked again yet")

// relist lists the top folder again for the names of subfolders that were
// forgotten.
func (w *Walk) relist(ctx context.Context) error {
	top := &w.stack[len(w.stack)-1]
	entries, err := w.List.List(ctx, string(w.path))
	if err != nil {
		return err
	}
	w.Result.Listings++
	w.Result.Relisted++
	top.dropped = false
	w.hash.enter(w.key)
	entries = slices.DeleteFunc(entries, func(e source.Entry) bool { return !e.Dir })
	return w.sift(entries, top.last)
}

// sift sorts a listing and takes from it what belongs to the part: files go out,
// subfolders behind the name key after wait for their turn.
func (w *Walk) sift(entries []source.Entry, after string) error {
	type item struct {
		key string
		source.Entry
	}
	items := make([]item, 0, len(entries))
	for _, e := range entries {
		if e.Link {
			w.Result.Links++
			continue
		}
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") {
			continue // no name of a file: a host that lies or a listing misread
		}
		key := Name(e.Name)
		if (after != "" && key <= after) || (len(w.stack) == 1 && !w.within(key, e.Dir)) {
			continue
		}
		items = append(items, item{key, e})
	}
	slices.SortFunc(items, func(a, b item) int {
		if a.Dir != b.Dir {
			if a.Dir {
				return 1
			}
			return -1
		}
		return strings.Compare(a.key, b.key)
	})
	items = slices.CompactFunc(items, func(a, b item) bool { return a.Dir == b.Dir && a.key == b.key })
	inside := w.overlaps()
	if inside {
		w.meet()
	}
	for _, it := range items {
		if inside && w.held(it.key, it.Dir) {
			continue
		}
		if it.Dir {
			w.wait(it.Name)
			continue
		}
		if err := w.file(it.key, it.Entry); err != nil {
			return err
		}
	}
	w.forget()
	return nil
}

// meet notes that the folder on top, which parts inside may have, is there.
func (w *Walk) meet() {
	if w.alive == nil {
		w.alive = map[string]bool{}
	}
	w.alive[string(w.path)] = true
}

// orphans notes the parts inside whose folder was not met and not kept either:
// the folder was deleted, or a folder above it.
func (w *Walk) orphans() {
	for _, s := range w.Inside {
		kept := slices.ContainsFunc(w.Result.Kept, func(r Range) bool { return r.Low <= s.Low && s.Low < r.High })
		if !w.alive[s.Part.Folder] && !kept {
			w.Result.Orphans = append(w.Result.Orphans, s.Part)
		}
	}
}

func sign(dir bool) string {
	if dir {
		return folderSign
	}
	return fileSign
}

// within reports whether a name of the part's own folder is between its borders.
func (w *Walk) within(name string, dir bool) bool {
	if w.Part.Left == "" && w.Part.Right == "" {
		return true
	}
	key := sign(dir) + name
	return key >= w.Part.Left && (w.Part.Right == "" || key < w.Part.Right)
}

// around returns the number of parts inside that begin at or before key.
func (w *Walk) around(key string) int {
	i, _ := slices.BinarySearchFunc(w.Inside, key, func(s Span, k string) int {
		if s.Low <= k {
			return -1
		}
		return 1
	})
	return i
}

// overlaps reports whether any part inside touches the folder on top.
func (w *Walk) overlaps() bool {
	if len(w.Inside) == 0 {
		return false
	}
	low := string(w.key)
	i := w.around(low + endSign)
	return i > 0 && w.Inside[i-1].High > low
}

// covered reports whether one part inside holds everything in the folder on top.
func (w *Walk) covered() bool {
	if len(w.Inside) == 0 {
		return false
	}
	low := string(w.key)
	i := w.around(low + fileSign)
	return i > 0 && w.Inside[i-1].High >= low+endSign
}

// held reports whether a part inside holds the entry of the folder on top.
func (w *Walk) held(name string, dir bool) bool {
	key := string(w.key) + sign(dir) + name + "\x00"
	i := w.around(key)
	return i > 0 && key < w.Inside[i-1].High
}

func (w *Walk) file(key string, e source.Entry) error {
	media := w.Media != nil && w.Media(e.Name)
	s := Sum{Files: 1, Bytes: Cost(e.Name, media), Hash: w.hash.entry(fileSign, e.Name, e.Size, e.Modified)}
	if media {
		s.Media = 1
	}
	w.add(fileSign, key, s)
	if w.File == nil {
		return nil
	}
	if w.folder == nil {
		w.folder = &Folder{Path: string(w.path), Key: string(w.key)}
	}
	return w.File(w.folder, e)
}

// wait puts a subfolder in line.
func (w *Walk) wait(name string) {
	top := &w.stack[len(w.stack)-1]
	top.names = append(top.names, name)
	top.size += nameSize(name)
	w.waiting += nameSize(name)
}

func nameSize(name string) int64 { return int64(len(name)) + 16 }

// forget drops the names of the level that holds most of them, until what waits
// is within the memory; the level on top keeps its own.
func (w *Walk) forget() {
	w.Result.Peak = max(w.Result.Peak, w.waiting)
	for w.waiting > w.Memory {
		most := -1
		for i := range w.stack[:len(w.stack)-1] {
			if w.stack[i].size > 0 && (most < 0 || w.stack[i].size > w.stack[most].size) {
				most = i
			}
		}
		if most < 0 {
			return
		}
		l := &w.stack[most]
		w.waiting -= l.size
		l.names, l.size, l.dropped = nil, 0, true
	}
}

// loop reports whether the folder on top repeats folders above it for ever: a link
// back up that the server follows for us. Such a chain repeats the same listing,
// times included, at a fixed distance; but so may real folders. What tells them
// apart is the end: a server gives up after some tens of links (40 on Linux, 63 on
// Windows) and cannot enter a folder that it has just listed, while real folders
// end with one that has no such subfolder, or go on.
func (w *Walk) loop(ctx context.Context, entries []source.Entry) (bool, error) {
	top := &w.stack[len(w.stack)-1]
	top.digest, top.files = w.digest(entries)
	top.entries = len(entries)
	if top.entries == top.files {
		return false, nil // no way further down
	}
	way, ok := w.repeats(top)
	if !ok {
		return false, nil
	}
	if verdict, ok := w.verdicts[top.digest]; ok {
		return verdict, nil
	}
	verdict, err := w.endless(ctx, way, top.digest)
	if err != nil {
		return false, err
	}
	if w.verdicts == nil || len(w.verdicts) > 1000 {
		w.verdicts = map[Hash]bool{}
	}
	w.verdicts[top.digest] = verdict
	return verdict, nil
}

// minTurns is how often a link must lead on: fewer turns are folders that happen to
// look alike.
const minTurns = 5

// maxLinks is more than any server follows in one path.
const maxLinks = 80

// repeats returns the way down from the nearest folder above the top that has the
// same listing.
func (w *Walk) repeats(top *level) (way string, ok bool) {
	for i := len(w.stack) - 2; i >= 0; i-- {
		way = "/" + w.stack[i+1].name + way
		if l := &w.stack[i]; l.digest == top.digest && l.entries == top.entries && l.files == top.files {
			return way, true
		}
	}
	for _, a := range w.above {
		if a.digest == top.digest {
			return "/" + strings.TrimPrefix(strings.TrimPrefix(string(w.path), a.path), "/"), true
		}
	}
	return "", false
}

// ancestor is a folder above the walked part.
type ancestor struct {
	path   string
	digest Hash
}

// maxAbove bounds the folders above a part that are looked at.
const maxAbove = 64

// lookAbove lists the folders above the part, nearest first: a link inside it may
// lead back there. A folder that cannot be listed leads nowhere.
func (w *Walk) lookAbove(ctx context.Context) error {
	w.above = w.above[:0]
	for path := w.Part.Folder; path != "" && len(w.above) < maxAbove; {
		path, _ = SplitPath(path)
		entries, err := w.List.List(ctx, path)
		if err != nil {
			if source.ClassOf(err).Lost() {
				return err
			}
			continue
		}
		w.Result.Listings++
		d, _ := w.digest(entries)
		w.above = append(w.above, ancestor{path, d})
	}
	return nil
}

// endless goes the way down from the top again and again, up to maxLinks times: a
// loop if it ends at a folder that still has the same listing.
func (w *Walk) endless(ctx context.Context, way string, digest Hash) (bool, error) {
	deeper := func(times int) (ok, same bool, err error) {
		entries, err := w.List.List(ctx, string(w.path)+strings.Repeat(way, times))
		w.Result.Listings++
		if err != nil {
			if source.ClassOf(err).Lost() {
				return false, false, err
			}
			return false, false, nil
		}
		d, _ := w.digest(entries)
		return true, d == digest, nil
	}
	good, bad := 0, maxLinks
	if ok, _, err := deeper(maxLinks); ok || err != nil {
		return false, err
	}
	same := true
	for bad-good > 1 {
		mid := (good + bad) / 2
		ok, equal, err := deeper(mid)
		if err != nil {
			return false, err
		}
		if ok {
			good, same = mid, equal
		} else {
			bad = mid
		}
	}
	return same && good >= minTurns, nil
}

// digest hashes a listing without its place.
func (w *Walk) digest(entries []source.Entry) (sum Hash, files int) {
	h := hasher{buf: w.hash.buf}
	for _, e := range entries {
		if !e.Dir {
			files++
		}
		sum = sum.plus(h.entry(sign(e.Dir), e.Name, e.Size, e.Modified))
	}
	w.hash.buf = h.buf
	return sum, files
}
