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
