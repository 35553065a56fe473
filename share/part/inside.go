package part

import (
	"slices"
)

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
