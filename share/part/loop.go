package part

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/freshet/freshet/share/source"
)

// isLoop reports whether the folder on top repeats folders above it for ever: a link
// back up that the server follows for us. Such a chain repeats the same listing,
// times included, at a fixed distance; but so may real folders. What tells them
// apart is the end: a server gives up after some tens of links (40 on Linux, 63 on
// Windows) and cannot enter a folder that it has just listed, while real folders
// end with one that has no such subfolder, or go on.
func (w *Walk) isLoop(ctx context.Context) (bool, error) {
	top := &w.stack[len(w.stack)-1]
	if top.entries == top.files {
		return false, nil // no way further down
	}
	way, ok := w.repeatsAbove(top)
	if !ok {
		return false, nil
	}
	if verdict, ok := w.verdicts[top.digest]; ok {
		return verdict, nil
	}
	verdict, err := w.isEndless(ctx, way, top.digest)
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

// repeatsAbove returns the way down from the nearest folder above the top that has the
// same listing.
func (w *Walk) repeatsAbove(top *level) (way string, ok bool) {
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
// lead back there. A folder that cannot be listed leads nowhere. The part is
// Missing if a folder above lists no such subfolder: servers follow links, and
// names in other letters, to folders that a walk from the root does not meet.
func (w *Walk) lookAbove(ctx context.Context) (above []ancestor, err error) {
	for path := w.Part.Folder; path != "" && len(above) < maxAbove; {
		var name string
		path, name = SplitPath(path)
		var digest Hash
		there := false
		err := source.Each(ctx, w.List, path, func(entries []source.Entry) error {
			sum, _ := w.digestListing(entries)
			digest = digest.plusHash(sum)
			there = there || slices.ContainsFunc(entries, func(e source.Entry) bool { return e.Dir && !e.Link && e.Name == name })
			return nil
		})
		w.Result.Listings++
		if err != nil {
			class := source.ClassOf(err)
			if class.Lost() {
				return nil, err
			}
			if path == "" && class == source.Gone {
				return nil, &source.Error{Op: "list", Path: "/", Class: source.Offline, Err: fmt.Errorf("the root is gone: %w", err)}
			}
			continue
		}
		if !there {
			w.Result.Missing = true
			return nil, nil
		}
		above = append(above, ancestor{path, digest})
	}
	return above, nil
}

// isEndless goes the way down from the top again and again, up to maxLinks times: a
// loop if it ends at a folder that still has the same listing.
func (w *Walk) isEndless(ctx context.Context, way string, digest Hash) (bool, error) {
	deeper := func(times int) (ok, same bool, err error) {
		var sum Hash
		err = source.Each(ctx, w.List, string(w.path)+strings.Repeat(way, times), func(entries []source.Entry) error {
			d, _ := w.digestListing(entries)
			sum = sum.plusHash(d)
			return nil
		})
		w.Result.Listings++
		if err != nil {
			if source.ClassOf(err).Lost() {
				return false, false, err
			}
			return false, false, nil
		}
		return true, sum == digest, nil
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

// digestOf adds a piece of the level's listing to its digest.
func (l *level) digestOf(w *Walk, entries []source.Entry) {
	sum, files := w.digestListing(entries)
	l.digest = l.digest.plusHash(sum)
	l.files += files
	l.entries += len(entries)
}

// digestListing hashes a listing, or a piece of one, without its place.
func (w *Walk) digestListing(entries []source.Entry) (sum Hash, files int) {
	h := hasher{buf: w.hash.buf}
	for _, e := range entries {
		if !e.Dir {
			files++
		}
		sum = sum.plusHash(h.hashEntry(entrySign(e.Dir), e.Name, e.Size, e.Modified))
	}
	w.hash.buf = h.buf
	return sum, files
}
