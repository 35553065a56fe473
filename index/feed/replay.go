package feed

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// cursor says what an index holds: all changes of a store up to one.
type cursor struct {
	Store string `json:"store"` // store.Store.ID
	Seq   uint64 `json:"seq"`
	// URL and Time, in milliseconds, are those of the change Seq; without a URL it
	// was forgotten when the index was filled.
	URL  string `json:"url,omitempty"`
	Time int64  `json:"time,omitempty"`
}

func (c *cursor) encodeCursor() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

// resumeCursor reads the engine's cursor. If the index cannot go on from there, why says
// so.
func (x *Indexer) resumeCursor(ctx context.Context) (why string, err error) {
	b, err := x.config.Engine.Cursor(ctx)
	if err != nil {
		return "", err
	}
	st, err := x.config.Store.Stats(ctx)
	if err != nil {
		return "", err
	}
	var c cursor
	switch {
	case len(b) == 0:
		return "the index is new", nil
	case len(b) == 8 && x.config.OneDatabase: // of a node that is new here, or of before cursors named their store
		c = cursor{Store: x.config.Store.ID(), Seq: binary.BigEndian.Uint64(b)}
	case json.Unmarshal(b, &c) != nil || c.Store == "":
		return "the index does not say which store it belongs to", nil
	}
	if c.Store != x.config.Store.ID() {
		x.otherStore = true
		return "the index belongs to another store", nil
	}
	if c.Seq > st.Feed {
		return "the index is ahead of the store", nil
	}
	if c.URL != "" && !x.config.OneDatabase {
		// A store that was set back and has gone on since has other changes under the
		// same numbers; an index that was set back lacks changes that are trimmed.
		changes, err := x.config.Store.Changes(ctx, c.Seq-1, 1)
		if err != nil {
			return "", err
		}
		if len(changes) != 1 || changes[0].Seq != c.Seq || changes[0].URL != c.URL || changes[0].Time.UnixMilli() != c.Time {
			return "the store has another history than the index", nil
		}
	}
	x.cursor.Store(&c)
	return "", nil
}

// progressEvery is how often a replay says how far it is.
const progressEvery = 5 * time.Second

// replayStore fills an index from all pages of the store, since the feed may have been
// trimmed, and removes documents of pages that the store does not know. Until it is
// done the index keeps its old cursor: a crash begins it again.
func (x *Indexer) replayStore(ctx context.Context) error {
	st, err := x.config.Store.Stats(ctx)
	if err != nil {
		return err
	}
	x.flushed = false
	var b batch
	flush := func(next *cursor) error {
		err := x.applyBatch(ctx, &b, next)
		b = batch{}
		return err
	}
	read, told := 0, time.Now()
	err = x.config.Store.Pages(ctx, func(p *store.Page) error {
		if read++; time.Since(told) > progressEvery {
			told = time.Now()
			x.config.Log.Info("indexer: filling the index from the store", "pages", read, "of", st.URLs)
		}
		if !p.Held() {
			return nil // forget sees to it
		}
		if err := x.addPage(ctx, &b, p); err != nil && !errors.Is(err, ErrElsewhere) { // which is that node's to index
			return err
		}
		if b.batchSize() < x.config.Batch {
			return nil
		}
		return flush(nil)
	})
	if err != nil {
		return err
	}
	if err := flush(nil); err != nil {
		return err
	}
	if err := x.removeUnknown(ctx); err != nil {
		return err
	}
	next := &cursor{Store: x.config.Store.ID(), Seq: st.Feed}
	if st.Feed > 0 {
		last, err := x.config.Store.Changes(ctx, st.Feed-1, 1)
		if err != nil {
			return err
		}
		if len(last) == 1 && last[0].Seq == st.Feed {
			next.URL, next.Time = last[0].URL, last[0].Time.UnixMilli()
		}
	}
	if err := flush(next); err != nil {
		return err
	}
	x.cursor.Store(next)
	return nil
}

// forgetAtOnce is how many documents are looked up in the store at once.
const forgetAtOnce = 500

// removeUnknown removes the documents whose pages the store does not know or keep.
func (x *Indexer) removeUnknown(ctx context.Context) error {
	var ids []string
	check := func() error {
		var keys []weburl.Key
		for _, id := range ids {
			if u, err := weburl.Parse(id); err == nil {
				keys = append(keys, u.Key())
			}
		}
		pages, err := x.config.Store.Records(ctx, keys)
		if err != nil {
			return err
		}
		known := make(map[string]*store.Page, len(pages))
		for i := range pages {
			known[pages[i].URL] = &pages[i]
		}
		var b batch
		for _, id := range ids {
			p := known[id]
			if p != nil && p.Held() {
				continue
			}
			if b.Delete = append(b.Delete, id); p != nil {
				x.noteVersion(&b, p)
			}
		}
		ids = ids[:0]
		if len(b.Delete) == 0 {
			return nil
		}
		return x.config.Engine.Apply(ctx, b.Batch)
	}
	err := x.config.Engine.IDs(ctx, func(id string) error {
		if ids = append(ids, id); len(ids) < forgetAtOnce {
			return nil
		}
		return check()
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	return check()
}
