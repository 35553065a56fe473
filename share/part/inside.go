package part

import (
	"slices"
)

// noteInsideFolder notes that the folder on top, which parts inside may have, is there.
func (w *Walk) noteInsideFolder() {
	if w.alive == nil {
		w.alive = map[string]bool{}
	}
	w.alive[string(w.path)] = true
}

// noteOrphanParts notes the parts inside whose folder was not met and not kept either:
// the folder was deleted, or a folder above it.
func (w *Walk) noteOrphanParts() {
	for _, s := range w.Inside {
		kept := slices.ContainsFunc(w.Result.Kept, func(r Range) bool { return r.Low <= s.Low && s.Low < r.High })
		if !w.alive[s.Part.Folder] && !kept {
			w.Result.Orphans = append(w.Result.Orphans, s.Part)
		}
	}
}

func entrySign(dir bool) string {
	if dir {
		return folderSign
	}
	return fileSign
}

// isWithinBorders reports whether a name of the part's own folder is between its borders.
func (w *Walk) isWithinBorders(name string, dir bool) bool {
	if w.Part.Left == "" && w.Part.Right == "" {
		return true
	}
	key := entrySign(dir) + name
	return key >= w.Part.Left && (w.Part.Right == "" || key < w.Part.Right)
}

// partsBeginningBy returns the number of parts inside that begin at or before key.
func (w *Walk) partsBeginningBy(key string) int {
	i, _ := slices.BinarySearchFunc(w.Inside, key, func(s Span, k string) int {
		if s.Low <= k {
			return -1
		}
		return 1
	})
	return i
}

// overlapsInside reports whether any part inside touches the folder on top.
func (w *Walk) overlapsInside() bool {
	if len(w.Inside) == 0 {
		return false
	}
	low := string(w.key)
	i := w.partsBeginningBy(low + endSign)
	return i > 0 && w.Inside[i-1].High > low
}

// isCoveredInside reports whether one part inside holds everything in the folder on top.
func (w *Walk) isCoveredInside() bool {
	if len(w.Inside) == 0 {
		return false
	}
	low := string(w.key)
	i := w.partsBeginningBy(low + fileSign)
	return i > 0 && w.Inside[i-1].High >= low+endSign
}

// isHeldInside reports whether a part inside holds the entry of the folder on top.
func (w *Walk) isHeldInside(name string, dir bool) bool {
	key := string(w.key) + entrySign(dir) + name + "\x00"
	i := w.partsBeginningBy(key)
	return i > 0 && key < w.Inside[i-1].High
}
