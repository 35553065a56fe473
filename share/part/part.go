// Package part cuts a host's tree of folders into parts that are scanned, and
// written to the store, as one step each.
//
// A part is a folder with a left and a right border: the files and the subtrees
// of the subfolders of that folder whose names lie in [left, right), without
// what smaller parts inside hold. The root part of a host has the root folder
// and no borders; it holds whatever no other part holds. Borders are what plain
// subtrees lack: a root with a million one-file folders has no good cut along
// subtrees. The idea is the B-subtree with borders of the multimedia search
// engine "Paddle" (2008); three things differ.
//
// Names are put into one totally ordered space of keys (see FolderKey) in which
// a folder's files stand before its subfolders, so a part is a range of keys
// minus the ranges inside it: the ranges form a laminar family, and the holder of
// a file is the innermost range around its key. Because files have keys too, a
// folder with a million files is cut like a folder with a million subfolders.
//
// The hash of a part is a sum, modulo 2^128, of the hashes of what it holds
// (path, size, modification time). It does not depend on the order of listings
// and is additive: parts are split and merged without reading anything again.
//
// The cut runs after the walk of each subtree, bottom-up, on sums alone: a
// subtree hands its parent less than one bound, so a closed part has between a
// half and one and a half bounds, whatever the tree looks like (the thesis's
// recursion could hold a bound for every open level). What a walk keeps in memory
// besides is bounded by [Walk.Memory].
package part

import (
	"fmt"
	"time"

	"github.com/zeebo/xxh3"
)

// Part names a part of a host. The zero value is the root part.
type Part struct {
	Folder string // path below the host's root, "" the root
	// Borders: a sign ('-' a file, '/' a subfolder) and a name's key; "" is none.
	Left, Right string
}

// Range returns the first key of the part and the first behind it.
func (p Part) Range() (low, high string) {
	k := FolderKey(p.Folder)
	low, high = k+p.Left, k+p.Right
	if p.Left == "" {
		low = k + fileSign
	}
	if p.Right == "" {
		high = k + endSign
	}
	return low, high
}

// Root reports whether p is the root part of its host.
func (p Part) Root() bool { return p == Part{} }

// String prints the part as folder[left, right).
func (p Part) String() string {
	border := func(s string) string {
		if s == "" {
			return "…"
		}
		name := string(nameOf([]byte(s[1:])))
		if s[0] == '/' {
			name += "/"
		}
		return name
	}
	return fmt.Sprintf("/%s[%s, %s)", p.Folder, border(p.Left), border(p.Right))
}

// Hash is 128 bits that add up: the hash of a part is the sum over what it holds.
type Hash struct{ High, Low uint64 }

// Sum is what a part, or a piece of one, adds up to.
type Sum struct {
	Hash    Hash
	Files   int64
	Folders int64
	Media   int64
	Bytes   int64         // memory that the list of its files takes (see Cost)
	Time    time.Duration // spent on listing its folders
}

// Plus returns the sum of both.
func (s Sum) Plus(t Sum) Sum {
	s.Hash = s.Hash.plusHash(t.Hash)
	s.Files += t.Files
	s.Folders += t.Folders
	s.Media += t.Media
	s.Bytes += t.Bytes
	s.Time += t.Time
	return s
}

// Bound is the size that parts are cut to.
type Bound struct {
	Time  time.Duration // of listing; 0 means 90 s
	Bytes int64         // of the list of files; 0 means 10 MB
}

// Defaults of Bound.
const (
	DefaultTime  = 90 * time.Second
	DefaultBytes = 10 << 20
)

// Load returns the size of s in bounds: the greater of time and memory.
func (b Bound) Load(s Sum) float64 {
	if b.Time <= 0 {
		b.Time = DefaultTime
	}
	if b.Bytes <= 0 {
		b.Bytes = DefaultBytes
	}
	return max(float64(s.Time)/float64(b.Time), float64(s.Bytes)/float64(b.Bytes))
}

// Memory returns the bound on the list of files in bytes.
func (b Bound) Memory() int64 {
	if b.Bytes <= 0 {
		return DefaultBytes
	}
	return b.Bytes
}

// ID returns 64 bits that tell the parts of one host apart.
func (p Part) ID() uint64 {
	return xxh3.HashString(p.Folder + "\x00" + p.Left + "\x00" + p.Right)
}
