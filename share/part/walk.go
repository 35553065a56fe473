package part

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/freshet/freshet/share/source"
)

// Walk reads a part and finds where it may be cut. The zero value of every
// field but List is useful.
type Walk struct {
	List   source.Lister
	Part   Part
	Inside []Span // the outermost parts inside, in order: left out
	Bound  Bound
	// Memory bounds the names of subfolders that wait for their turn, and what a
	// listing takes to be sorted; 0 means Bound's. What does not fit goes to Spill.
	Memory int64
	// Spill is where names wait that do not fit into memory. nil: a file in the
	// system's folder for temporary files.
	Spill *Spill
	// File is called for every file, in the order of keys. folder is the same
	// pointer for all files of one folder.
	File func(folder *Folder, e source.Entry) error
	// Media tells which names count as media files.
	Media func(name string) bool
	// Skip tells of folders that are not to be listed (denied before). What is
	// stored of them stays.
	Skip func(path string) bool
	// Failed hears of a folder that could not be read while the walk goes on, and
	// reports whether what is stored of it stays. A folder that is Gone although its
	// parent listed it is told, too. nil: it stays.
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
	waiting  int64   // bytes of names that wait in memory
	hash     hasher
	failed   int             // folders in a row that could not be read
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
	Spilled  int64  // folders whose listing or names went to disk
	Links    int64  // symbolic links left out
	Loops    int64  // folders left out because they repeat a folder above
	Peak     int64  // most bytes of waiting names held at once
	Orphans  []Part // outermost parts inside whose folder the walk did not meet
	Missing  bool   // the part's own folder is gone
	// Unreadable is why the part's own folder could not be read: what is stored of
	// the part stays, and the rest of the result says nothing.
	Unreadable error
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
	left    string // border behind the last closed piece
	last    string // name key of the subfolder walked last
	waiting waitingNames
	own     Sum  // the folder itself; its parent's part holds it
	run     Sum  // since left, without closed pieces inside
	digest  Hash // of the listing, to find loops
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
	if w.Spill == nil {
		w.Spill = new(Spill)
		defer w.Spill.Close()
	}
	w.path = append(w.path[:0], w.Part.Folder...)
	w.key = append(w.key[:0], FolderKey(w.Part.Folder)...)
	w.stack = append(w.stack[:0], level{left: w.Part.Left})
	above, err := w.lookAbove(ctx)
	if err != nil || w.Result.Missing {
		return err
	}
	if err := w.listFolder(ctx); err != nil {
		return w.notEntered(err)
	}
	w.above = above
	for {
		if err := ctx.Err(); err != nil {
			return canceledAt(string(w.path), err)
		}
		top := &w.stack[len(w.stack)-1]
		if n := &top.waiting; len(n.names) == 0 && len(n.regions) > 0 {
			bytes, err := n.loadNames(w.Spill, w.Memory/2)
			if err != nil {
				return err
			}
			w.waiting += bytes
			if len(n.regions) == 0 {
				w.freeSpill()
			}
		}
		if len(top.waiting.names) > 0 {
			if err := w.descendFirst(ctx); err != nil {
				return err
			}
			continue
		}
		if len(w.stack) == 1 {
			w.Result.Rest = top.own.Plus(top.run)
			w.Result.Sum = w.Result.Sum.Plus(w.Result.Rest)
			w.noteOrphanParts()
			return nil
		}
		w.finishLevel()
	}
}

// descendFirst takes the first waiting subfolder of the top level.
func (w *Walk) descendFirst(ctx context.Context) error {
	top := &w.stack[len(w.stack)-1]
	name := top.waiting.names[0]
	top.waiting.names[0] = ""
	top.waiting.names = top.waiting.names[1:]
	w.waiting -= nameSize(name)
	top.waiting.size -= nameSize(name)
	top.last = Name(name)
	w.pushFolder(name)
	if len(w.stack) > w.MaxDepth {
		w.Result.Loops++
		w.finishLevel()
		return nil
	}
	if w.isCoveredInside() {
		w.noteInsideFolder()
		return nil // a part inside holds all of it: nothing to list
	}
	err := w.listFolder(ctx)
	if err == nil {
		w.failed = 0
		return nil
	}
	return w.handleUnreadable(ctx, err)
}

// notEntered decides what an error for the part's own folder means. The host's
// root must be readable; another folder may be gone or closed.
func (w *Walk) notEntered(err error) error {
	class := source.ClassOf(err)
	switch {
	case w.Part.Folder == "" || class.Lost():
		return err
	case class != source.Gone && (w.Failed == nil || w.Failed(w.Part.Folder, err)):
		w.Result.Unreadable = err
		low, high := w.Part.Range()
		w.Result.Kept = append(w.Result.Kept, Range{low, high})
	default:
		w.Result.Missing = true
	}
	return nil
}

// canceledAt is the error of a walk that was stopped at a folder.
func canceledAt(path string, err error) error {
	return &source.Error{Op: "list", Path: "/" + path, Class: source.Canceled, Err: err}
}

func (w *Walk) pushFolder(name string) {
	if len(w.path) > 0 {
		w.path = append(w.path, '/')
	}
	w.path = append(w.path, name...)
	w.key = append(append(append(w.key, folderSign...), Name(name)...), 0)
	w.hash.enterFolder(w.key)
	own := Sum{Folders: 1, Bytes: int64(folderCost + 2*len(w.key)), Hash: w.hash.hashEntry(folderSign, "", 0, 0)}
	w.stack = append(w.stack, level{name: name, own: own})
}

// finishLevel pops a finished level and gives what remains of it to its parent.
func (w *Walk) finishLevel() {
	top := &w.stack[len(w.stack)-1]
	if w.Bound.Load(top.run) >= 1 {
		w.closePiece(top, "")
	}
	rest := top.own.Plus(top.run)
	w.popLevel()
	w.addChild(folderSign, w.stack[len(w.stack)-1].last, rest)
}

func (w *Walk) popLevel() {
	n := len(w.stack) - 1
	name := w.stack[n].name
	w.waiting -= w.stack[n].waiting.size // of a folder that was left before its end
	w.stack[n] = level{}
	w.stack = w.stack[:n]
	w.path = w.path[:len(w.path)-len(name)]
	if len(w.path) > 0 {
		w.path = w.path[:len(w.path)-1]
	}
	w.key = w.key[:len(w.key)-len(Name(name))-2]
	w.folder = nil
}

// addChild puts a finished child with this sign and name key on the top level's
// running sum, and closes a piece before it when the sum is large enough.
func (w *Walk) addChild(sign, name string, s Sum) {
	top := &w.stack[len(w.stack)-1]
	if load := w.Bound.Load(top.run); load >= 1 || (load >= 0.5 && w.Bound.Load(top.run.Plus(s)) > 1) {
		w.closePiece(top, sign+name)
	}
	top.run = top.run.Plus(s)
}

// closePiece makes a piece of what the top level gathered since its last border.
func (w *Walk) closePiece(top *level, right string) {
	p := Part{Folder: string(w.path), Left: top.left, Right: right}
	if len(w.stack) == 1 && right == "" {
		p.Right = w.Part.Right
	}
	w.Result.Pieces = append(w.Result.Pieces, Piece{p, top.run})
	w.Result.Sum = w.Result.Sum.Plus(top.run)
	top.left, top.run = right, Sum{}
}

// handleUnreadable decides what an error for the folder just entered means. The folder
// itself is there: its parent lists it.
func (w *Walk) handleUnreadable(ctx context.Context, err error) error {
	class := source.ClassOf(err)
	path, key := string(w.path), string(w.key)
	own := w.stack[len(w.stack)-1].own
	w.popLevel()
	if class.Lost() {
		return err
	}
	if class != source.Denied {
		if err := w.tryRoot(ctx); err != nil {
			return err
		}
	}
	if w.Failed == nil || w.Failed(path, err) {
		w.Result.Kept = append(w.Result.Kept, Range{key, key + endSign})
	}
	if class != source.Gone {
		w.addChild(folderSign, w.stack[len(w.stack)-1].last, own)
	}
	return nil
}

// failuresInRow is how many folders in a row may be gone or unreadable before the
// root is asked for; after that it is asked for at twice as many each time.
const failuresInRow = 10

// tryRoot counts a failed folder. After many in a row it lists the root: a host
// whose root cannot be read is lost, and nothing follows from the failures.
func (w *Walk) tryRoot(ctx context.Context) error {
	w.failed++
	if n := w.failed / failuresInRow; w.failed%failuresInRow != 0 || n&(n-1) != 0 {
		return nil
	}
	w.Result.Listings++
	_, err := w.List.List(ctx, "")
	if err == nil {
		return nil
	}
	class := source.ClassOf(err)
	if !class.Lost() {
		class = source.Offline
	}
	return &source.Error{Op: "list", Path: "/", Class: class, Err: fmt.Errorf("the root is lost after %d folders in a row that could not be read: %w", w.failed, err)}
}

// listFolder lists the folder on top, gives out its files and keeps the names of
// its subfolders.
func (w *Walk) listFolder(ctx context.Context) error {
	path := string(w.path)
	if w.Skip != nil && path != "" && w.Skip(path) {
		return &source.Error{Op: "list", Path: "/" + path, Class: source.Denied, Err: ErrRemembered}
	}
	top := &w.stack[len(w.stack)-1]
	sorted := sorter{spill: w.Spill, memory: max(minSort, w.Memory)}
	inside := w.overlapsInside()
	start := w.Now()
	err := source.Each(ctx, w.List, path, func(entries []source.Entry) error {
		top.digestOf(w, entries)
		return w.siftListing(entries, inside, &sorted)
	})
	if err != nil {
		return err
	}
	w.Result.Listings++
	top.own.Time += w.Now().Sub(start)
	w.hash.enterFolder(w.key)
	if again, err := w.isLoop(ctx); again || err != nil {
		if again {
			w.Result.Loops++
		}
		return err
	}
	if inside {
		w.noteInsideFolder()
	}
	w.folder = nil
	return w.takeIn(ctx, &sorted)
}

// ErrRemembered is why a folder was not listed: it was denied before.
var ErrRemembered = errors.New("denied before, not asked again yet")

// siftListing takes from a piece of a listing what belongs to the part.
func (w *Walk) siftListing(entries []source.Entry, inside bool, into *sorter) error {
	for _, e := range entries {
		if e.Link {
			w.Result.Links++
			continue
		}
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") {
			continue // no name of a file: a host that lies or a listing misread
		}
		key := Name(e.Name)
		if len(w.stack) == 1 && !w.isWithinBorders(key, e.Dir) || inside && w.isHeldInside(key, e.Dir) {
			continue
		}
		if err := into.addListed(listed{key, e}); err != nil {
			return err
		}
	}
	return nil
}

// takeIn takes a sorted listing: files go out, subfolders wait for their turn.
func (w *Walk) takeIn(ctx context.Context, sorted *sorter) error {
	top := len(w.stack) - 1
	names := &w.stack[top].waiting
	err := sorted.forEachSorted(ctx, func(e listed) error {
		if !e.Dir {
			return w.walkFile(e.key, e.Entry)
		}
		bytes, err := names.pushName(w.Spill, e.Name, w.Memory/2)
		w.waiting += bytes
		return err
	})
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = canceledAt(string(w.path), err)
		}
		return err
	}
	if err := names.sealNames(w.Spill); err != nil {
		return err
	}
	if len(sorted.runs) > 0 || len(names.regions) > 0 {
		w.Result.Spilled++
		w.freeSpill()
	}
	return w.makeRoom()
}

// freeSpill gives the end of the spill free behind what still waits there.
func (w *Walk) freeSpill() {
	end := int64(0)
	for i := range w.stack {
		end = max(end, w.stack[i].waiting.spilledEnd())
	}
	w.Spill.truncateSpill(end)
}

func (w *Walk) walkFile(key string, e source.Entry) error {
	media := w.Media != nil && w.Media(e.Name)
	s := Sum{Files: 1, Bytes: Cost(e.Name, media), Hash: w.hash.hashEntry(fileSign, e.Name, e.Size, e.Modified)}
	if media {
		s.Media = 1
	}
	w.addChild(fileSign, key, s)
	if w.File == nil {
		return nil
	}
	if w.folder == nil {
		w.folder = &Folder{Path: string(w.path), Key: string(w.key)}
	}
	return w.File(w.folder, e)
}

// makeRoom moves the names of the level that holds most of them to disk, until what
// waits in memory is within the bound; the level on top keeps its own.
func (w *Walk) makeRoom() error {
	w.Result.Peak = max(w.Result.Peak, w.waiting)
	for w.waiting > w.Memory {
		most := -1
		for i := range w.stack[:len(w.stack)-1] {
			if size := w.stack[i].waiting.size; size > 0 && (most < 0 || size > w.stack[most].waiting.size) {
				most = i
			}
		}
		if most < 0 {
			return nil
		}
		freed, err := w.stack[most].waiting.toDisk(w.Spill)
		if err != nil {
			return err
		}
		w.Result.Spilled++
		w.waiting -= freed
	}
	return nil
}
