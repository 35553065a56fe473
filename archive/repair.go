package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// repairFile cuts a file behind its last whole record and gives it its final name.
// Damage before that, which is no crash of this program but of the machine or its
// disk, stays where it is, so that the records behind it keep their places; it is
// told of.
func repairFile(name string) (damage []string, err error) {
	final := strings.TrimSuffix(name, openSuffix)
	if _, err := os.Lstat(final); err == nil {
		return nil, fmt.Errorf("there is a finished %s", filepath.Base(final))
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	whole, err := wholeRecords(f, 0)
	for err == nil {
		var next, end int64
		if next, end, err = recordAfter(f, whole); err != nil || end == 0 {
			break
		}
		damage = append(damage, fmt.Sprintf("%s: damaged between bytes %d and %d: bodies that lie there are lost, those behind it are not", strings.TrimSuffix(filepath.Base(name), openSuffix), whole, next))
		whole = end
	}
	if err != nil { // of the disk: what cannot be read now must not be cut off
		return damage, errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Truncate(whole), f.Sync(), f.Close()); err != nil {
		return damage, err
	}
	if whole == 0 {
		return damage, os.Remove(name)
	}
	if err := os.Rename(name, final); err != nil {
		return damage, err
	}
	return damage, syncFolder(filepath.Dir(name))
}

// wholeRecords is where the last of the records ends that lie one after the other
// from a place on; the place itself, if there is none.
func wholeRecords(f *os.File, from int64) (end int64, err error) {
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	end = from
	r := newReader(f)
	for {
		if _, err := r.Next(); err != nil {
			return end, ofDisk(err)
		}
		if err := r.skipRecord(); err != nil {
			return end, ofDisk(err)
		}
		end = from + r.recordOffset()
	}
}

// ofDisk returns err if a file could not be read, and nil if what was read is no
// whole record.
func ofDisk(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return err
	}
	return nil
}

// starts are what records begin with, packed and not.
var starts = [][]byte{{0x1f, 0x8b, 0x08}, []byte("WARC/1.")}

// recordAfter looks behind damage for the next whole record, and returns where it
// and those that follow it lie; end is 0 where there is none.
func recordAfter(f *os.File, from int64) (start, end int64, err error) {
	const window, overlap = 1 << 20, 8
	buf := make([]byte, window)
	for at := from + 1; ; {
		n, err := f.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		for i := 0; i < n; i++ {
			skip := -1
			for _, s := range starts {
				if k := bytes.Index(buf[i:n], s); k >= 0 && (skip < 0 || k < skip) {
					skip = k
				}
			}
			if skip < 0 {
				break
			}
			i += skip
			here := at + int64(i)
			if !recordAt(f, here) {
				continue
			}
			if end, err := wholeRecords(f, here); err != nil || end > here {
				return here, end, err
			}
		}
		if n < window {
			return 0, 0, nil
		}
		at += int64(n - overlap)
	}
}

// recordAt reports whether the header of a record can be read at a place: a look
// at little, before the whole is read.
func recordAt(f *os.File, at int64) bool {
	r := NewReader(bufio.NewReader(io.NewSectionReader(f, at, 1<<20)))
	_, err := r.Next()
	return err == nil
}
