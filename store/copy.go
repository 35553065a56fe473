package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/freshet/freshet/weburl"
)

// Source is what can be copied: all records of a store, as they are.
type Source interface {
	Hosts(ctx context.Context, f func(*Host) error) error
	Pages(ctx context.Context, f func(*Page) error) error
	Links(ctx context.Context, f func(from weburl.Key, to []weburl.Key) error) error
	Visits(ctx context.Context, since time.Time, f func(*VisitLog) error) error
	// Settings calls f for every value that Put has kept.
	Settings(ctx context.Context, f func(name string, value []byte) error) error
}

// Part is a piece of a copy.
type Part struct {
	Hosts    []Host
	Pages    []Page
	Links    []PageLinks
	Visits   []VisitLog
	Settings []Setting
}

// PageLinks are the stored links of one page.
type PageLinks struct {
	From weburl.Key   `json:"from"`
	To   []weburl.Key `json:"to"`
}

// Setting is one value that Put has kept.
type Setting struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

// Target takes a copy. It was empty before.
type Target interface {
	// Load writes a part. Hosts come before their pages, pages before their links
	// and visits.
	Load(ctx context.Context, p *Part) error
	// Loaded is called once after the last part and makes all of it usable.
	Loaded(ctx context.Context) error
}

// Copied counts what a copy holds.
type Copied struct {
	Hosts    int64 `json:"hosts"`
	Pages    int64 `json:"pages"`
	Links    int64 `json:"linking_pages"`
	Visits   int64 `json:"visits"`
	Settings int64 `json:"settings"`
	// LeftOut counts pages and visits that are not copied, since their URLs are none.
	LeftOut int64 `json:"left_out,omitempty"`
}

// ErrNotEmpty is the error of copying into a store that holds something.
var ErrNotEmpty = errors.New("it is not empty")

// ErrPartial is the error of opening a store into which a copy was begun and not finished.
var ErrPartial = errors.New("it holds a part of a copy that was broken off")

// copyPart is how many records are written at once.
const copyPart = 1000

// Copy writes all of a source to a target. The feed of changes is not copied: a
// new index is built from all pages. Times of queue and log may be cut to
// milliseconds.
func Copy(ctx context.Context, from Source, to Target, progress func(Copied)) (Copied, error) {
	c := copier{ctx: ctx, to: to, progress: progress}
	for _, step := range []struct {
		what string
		run  func() error
	}{
		{"hosts", func() error {
			return from.Hosts(ctx, func(h *Host) error { c.part.Hosts = append(c.part.Hosts, *h); c.n.Hosts++; return c.flushIfFull() })
		}},
		{"pages", func() error {
			return from.Pages(ctx, func(p *Page) error { c.part.Pages = append(c.part.Pages, *p); c.n.Pages++; return c.flushIfFull() })
		}},
		{"links", func() error {
			return from.Links(ctx, func(k weburl.Key, to []weburl.Key) error {
				c.part.Links = append(c.part.Links, PageLinks{k, append([]weburl.Key(nil), to...)})
				c.n.Links++
				return c.flushIfFull()
			})
		}},
		{"visits", func() error {
			return from.Visits(ctx, time.Time{}, func(v *VisitLog) error {
				c.part.Visits = append(c.part.Visits, *v)
				c.n.Visits++
				return c.flushIfFull()
			})
		}},
		{"settings", func() error {
			return from.Settings(ctx, func(name string, value []byte) error {
				c.part.Settings = append(c.part.Settings, Setting{name, append([]byte{}, value...)})
				c.n.Settings++
				return c.flushIfFull()
			})
		}},
	} {
		err := step.run()
		if err == nil {
			err = c.flushPart()
		}
		if err != nil {
			return c.n, fmt.Errorf("copy %s: %w", step.what, err)
		}
	}
	if err := to.Loaded(ctx); err != nil {
		return c.n, fmt.Errorf("finish the copy: %w", err)
	}
	return c.n, nil
}

type copier struct {
	ctx      context.Context
	to       Target
	progress func(Copied)
	part     Part
	size     int
	n        Copied
}

// flushIfFull writes the part when it has grown so far.
func (c *copier) flushIfFull() error {
	if c.size++; c.size < copyPart {
		return nil
	}
	return c.flushPart()
}

func (c *copier) flushPart() error {
	if c.size == 0 {
		return nil
	}
	err := c.to.Load(c.ctx, &c.part)
	c.part, c.size = Part{}, 0
	if c.progress != nil {
		c.progress(c.n)
	}
	return err
}
