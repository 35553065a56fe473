package part

import (
	"context"
	"strings"

	"github.com/freshet/freshet/share/source"
)

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
