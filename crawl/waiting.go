package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// renders is the list of pages that wait for a browser. It is a row of numbered
// values in the store, so that it is as durable as the pages and costs no
// memory; the first number is a value, too.
type renders struct {
	store  store.Store
	ready  func() error
	prefix string
	mu     sync.Mutex
	head   uint64
	tail   uint64
	again  map[string]bool // fed back to the queue and not seen yet
	fedAt  time.Time
}

// feedPages is how many waiting pages are queued again at a time.
const (
	feedPages = 64
	feedEvery = 2 * time.Second
)

// open finds the list of an earlier process.
func (w *renders) open(ctx context.Context, c *Config) error {
	if c.Render == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store, w.ready, w.prefix, w.again = c.Store, c.Render.Ready, "render-wait/"+c.Node+"/", map[string]bool{}
	v, err := w.store.Get(ctx, w.prefix+"first")
	if err != nil {
		return err
	}
	if len(v) == 8 {
		w.head = binary.BigEndian.Uint64(v)
	}
	for w.tail = w.head; ; w.tail++ {
		v, err := w.store.Get(ctx, w.key(w.tail))
		if err != nil {
			return err
		}
		if len(v) == 0 {
			return nil
		}
	}
}

func (w *renders) key(n uint64) string { return w.prefix + strconv.FormatUint(n, 10) }

func (w *renders) length() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(w.tail - w.head)
}

// due reports whether there are pages that wait without need.
func (w *renders) due() bool { return w.length() > 0 && w.ready() == nil }

// fed reports, once, whether a page was queued again from the list.
func (w *renders) fed(url string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.again[url]
	delete(w.again, url)
	return was
}

func (w *renders) add(ctx context.Context, url string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.store.Put(ctx, w.key(w.tail), []byte(url)); err != nil {
		return err
	}
	w.tail++
	return nil
}

// feedWaiting queues some waiting pages again if there is a browser now.
func (r *Robot) feedWaiting(ctx context.Context) error {
	w := &r.renders
	if w.store == nil || !w.due() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.fedAt) < feedEvery {
		return nil
	}
	w.fedAt = time.Now()
	var found []store.Found
	last := min(w.tail, w.head+feedPages)
	clear(w.again) // a page not seen since is in the queue all the same
	for n := w.head; n < last; n++ {
		v, err := w.store.Get(ctx, w.key(n))
		if err != nil {
			return err
		}
		u, err := weburl.Parse(string(v))
		if err != nil {
			r.config.Log.Error("waiting list of pages to render", "entry", n, "err", err)
			continue
		}
		found = append(found, store.Found{URL: u, Due: time.Now()})
		w.again[string(v)] = true
	}
	if _, err := w.store.Add(ctx, found); err != nil {
		return err
	}
	first := binary.BigEndian.AppendUint64(nil, last)
	if err := w.store.Put(ctx, w.prefix+"first", first); err != nil {
		return fmt.Errorf("waiting list of pages to render: %w", err)
	}
	for n := w.head; n < last; n++ {
		if err := w.store.Put(ctx, w.key(n), nil); err != nil {
			return err
		}
	}
	w.head = last
	return nil
}
