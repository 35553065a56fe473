package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/freshet/freshet/index/engine/nametable"
	"github.com/freshet/freshet/index/engine/postings"
	"github.com/freshet/freshet/index/engine/segment"
)

// Verify reads the whole index: all checksums, every list of postings, and every
// file, which must be found by its path and by the trigrams of its name.
func (x *Index) Verify(ctx context.Context) error {
	if err := x.refreshFiles(); err != nil {
		return err
	}
	return x.set.Read(func(parts []*view) error {
		for _, v := range parts {
			if err := errors.Join(ctx.Err(), v.Verify(), v.VerifyLists(ctx)); err != nil {
				return err
			}
			if err := newReader(v).verifyFiles(ctx); err != nil {
				return fmt.Errorf("segment %s: %w", v.Path(), err)
			}
		}
		return nil
	})
}

// verifyFiles reads every file.
func (r *reader) verifyFiles(ctx context.Context) error {
	damaged := func(doc uint32, what string) error {
		return fmt.Errorf("file %d %s: %w", doc, what, segment.ErrDamaged)
	}
	trigrams := trigramCheck{reader: r, cursors: map[[3]byte]*postings.Cursor{}}
	var l *locator
	host := -1
	for doc := range uint32(r.Len()) {
		if doc%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if h := r.hostOfFile(doc); h != host {
			l, host = newLocator(r.fileSegment, r.hosts[h]), h
		}
		name := bytes.Clone(r.nameOfFile(doc))
		found, ok, err := l.findFile(r.pathOfFolder(r.folderOf(doc)), string(name))
		switch {
		case err != nil:
			return err
		case !ok || found != doc:
			return damaged(doc, "is not found by its path")
		case !trigrams.hasAllTrigrams(string(name), doc/nametable.BlockSize):
			return damaged(doc, "is not found by its name")
		}
		r.infoOf(doc)
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// trigramCheck follows the lists of all trigrams while blocks ascend.
type trigramCheck struct {
	*reader
	cursors map[[3]byte]*postings.Cursor
}

// hasAllTrigrams reports whether all trigrams of a name lead to its block.
func (c *trigramCheck) hasAllTrigrams(name string, block uint32) bool {
	all := true
	c.words = eachWord(name, c.words, func(w []byte) {
		for i := 0; i+3 <= len(w); i++ {
			key := [3]byte(w[i:])
			at, ok := c.cursors[key]
			if !ok {
				list := c.lookupList(nameTrigram, string(key[:]))
				at = new(postings.Cursor)
				at.Open(&list)
				c.cursors[key] = at
			}
			all = all && at.Seek(block) == block
		}
	})
	return all
}
