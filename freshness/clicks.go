package freshness

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
)

// Clicks counts how often results of our own search were opened, by page. Clicks
// fade by half in a month. They are saved in shards, of which only those with new
// clicks are written.
type Clicks struct {
	mu     sync.Mutex
	clicks map[string]float64 // by URL
	faded  time.Time          // up to when
	dirty  [clickShards]bool
}

const (
	maxClicked    = 20_000
	maxClickedURL = 2048 // bytes; longer ones are not counted
	clickShards   = 64
	clicksName    = "clicks" // of an older form, and the beginning of shards' names
	clicksSave    = time.Minute
)

// clickShard is the shard in which a page's clicks are saved.
func clickShard(url string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(url))
	return int(h.Sum32() % clickShards)
}

func shardName(shard int) string { return fmt.Sprintf("%s-%02d", clicksName, shard) }

// Add counts a click. When there are too many pages, those with the fewest
// clicks are forgotten.
func (i *Clicks) Add(url string, now time.Time) {
	if len(url) > maxClickedURL {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.clicks == nil {
		i.clicks = map[string]float64{}
	}
	i.fadeClicks(now)
	i.clicks[url]++
	i.dirty[clickShard(url)] = true
	if len(i.clicks) > maxClicked {
		i.keepBetterHalf()
	}
}

// fadeClicks takes off what has faded since the last time. Shards need not be saved for
// it: they carry the time up to which they have faded.
func (i *Clicks) fadeClicks(now time.Time) {
	past := now.Sub(i.faded)
	if i.faded.IsZero() || past < 0 {
		i.faded = now
		return
	}
	if past < time.Hour {
		return
	}
	f := remainingShare(past)
	for u := range i.clicks {
		i.clicks[u] *= f
	}
	i.faded = now
}

// remainingShare is the share of clicks that is left after a time.
func remainingShare(past time.Duration) float64 {
	return math.Exp2(-max(0, past.Seconds()) / change.HalfLife.Seconds())
}

// keepBetterHalf keeps the better half.
func (i *Clicks) keepBetterHalf() {
	counts := make([]float64, 0, len(i.clicks))
	for _, n := range i.clicks {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	middle := counts[len(counts)/2]
	for u, n := range i.clicks {
		if n <= middle && len(i.clicks) > maxClicked/2 {
			delete(i.clicks, u)
			i.dirty[clickShard(u)] = true
		}
	}
}

// Count returns how often a page was opened, lately.
func (i *Clicks) Count(url string) float64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.clicks[url]
}

type savedClicks struct {
	Faded  time.Time          `json:"faded"`
	Clicks map[string]float64 `json:"clicks"`
}

// Load reads what an earlier process saved, in shards or, before there were any,
// as a whole.
func (i *Clicks) Load(ctx context.Context, s store.Store, now time.Time) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clicks, i.faded = map[string]float64{}, now
	for shard := -1; shard < clickShards; shard++ {
		name := clicksName
		if shard >= 0 {
			name = shardName(shard)
		}
		b, err := s.Get(ctx, name)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			continue
		}
		var saved savedClicks
		if err := json.Unmarshal(b, &saved); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f := remainingShare(now.Sub(saved.Faded))
		for u, n := range saved.Clicks {
			i.clicks[u] = n * f
			if shard < 0 {
				i.dirty[clickShard(u)] = true
			}
		}
	}
	return nil
}

// saveShards writes the shards that have new clicks.
func (i *Clicks) saveShards(ctx context.Context, s store.Store) error {
	changed := map[int]*savedClicks{}
	i.mu.Lock()
	for shard, dirty := range i.dirty {
		if dirty {
			changed[shard] = &savedClicks{i.faded, map[string]float64{}}
		}
	}
	if len(changed) > 0 {
		for u, n := range i.clicks {
			if c := changed[clickShard(u)]; c != nil {
				c.Clicks[u] = n
			}
		}
	}
	i.dirty = [clickShards]bool{}
	i.mu.Unlock()
	for shard, c := range changed {
		b, err := json.Marshal(c)
		if err == nil {
			err = s.Put(ctx, shardName(shard), b)
		}
		if err != nil {
			i.mu.Lock()
			for left := range changed { // those written already are written once more
				i.dirty[left] = true
			}
			i.mu.Unlock()
			return err
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return i.dropWhole(ctx, s)
}

// dropWhole empties the setting in which an older program saved all clicks: they
// are in shards now.
func (i *Clicks) dropWhole(ctx context.Context, s store.Store) error {
	if b, err := s.Get(ctx, clicksName); err != nil || len(b) == 0 {
		return err
	}
	return s.Put(ctx, clicksName, nil)
}

// Run saves clicks now and then, and at the end.
func (i *Clicks) Run(ctx context.Context, s store.Store, log *slog.Logger) error {
	t := time.NewTicker(clicksSave)
	defer t.Stop()
	for {
		done := false
		select {
		case <-ctx.Done():
			done = true
		case <-t.C:
		}
		if err := i.saveShards(context.WithoutCancel(ctx), s); err != nil {
			log.Warn("save clicks", "err", err)
		}
		if done {
			return nil
		}
	}
}
