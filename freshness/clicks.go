package freshness

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/freshness/change"
	"github.com/freshet/freshet/store"
)

// Clicks counts how often results of our own search were opened, by page. Clicks
// fade by half in a month. They are saved in shards, to which processes that share a
// store add what they counted.
type Clicks struct {
	mu     sync.Mutex
	clicks map[string]float64              // by URL, all that are known
	added  [clickShards]map[string]float64 // by URL, those not saved yet
	faded  time.Time                       // up to when
}

// SettingUpdater replaces settings of a store; cluster.Cluster is one.
type SettingUpdater interface {
	// UpdateSetting replaces a setting by what change makes of it; no concurrent update is
	// lost. An empty value deletes it.
	UpdateSetting(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error
}

const (
	maxClicked      = 20_000
	maxShardClicked = maxClicked / clickShards
	maxClickedURL   = 2048 // bytes; longer ones are not counted
	clickShards     = 64
	clicksName      = "clicks" // of an older form, and the beginning of shards' names
	clicksSave      = time.Minute
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
	i.countUnsaved(url, 1)
	keepMostClicked(i.clicks, maxClicked)
}

// countUnsaved counts clicks that are to be saved. The caller holds mu.
func (i *Clicks) countUnsaved(url string, n float64) {
	added := &i.added[clickShard(url)]
	if *added == nil {
		*added = map[string]float64{}
	}
	(*added)[url] += n
	keepMostClicked(*added, maxShardClicked)
}

// fadeClicks takes off what has faded since the last time.
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
	for shard := range i.added {
		for u := range i.added[shard] {
			i.added[shard][u] *= f
		}
	}
	i.faded = now
}

// remainingShare is the share of clicks that is left after a time.
func remainingShare(past time.Duration) float64 {
	return math.Exp2(-max(0, past.Seconds()) / change.HalfLife.Seconds())
}

// keepMostClicked keeps the better half of more than maxPages pages.
func keepMostClicked(clicks map[string]float64, maxPages int) {
	if len(clicks) <= maxPages {
		return
	}
	counts := slices.Sorted(maps.Values(clicks))
	middle := counts[len(counts)/2]
	for u, n := range clicks {
		if n <= middle && len(clicks) > maxPages/2 {
			delete(clicks, u)
		}
	}
}

// Count returns how often a page was opened, lately.
func (i *Clicks) Count(url string) float64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.clicks[url]
}

// savedClicks is the value of a shard's setting.
type savedClicks struct {
	Faded  time.Time          `json:"faded"`
	Clicks map[string]float64 `json:"clicks"`
}

// parseClicks reads a saved value and lets its clicks fade.
func parseClicks(b []byte, now time.Time) (map[string]float64, error) {
	saved := savedClicks{Clicks: map[string]float64{}}
	if len(b) == 0 {
		return saved.Clicks, nil
	}
	if err := json.Unmarshal(b, &saved); err != nil {
		return nil, err
	}
	f := remainingShare(now.Sub(saved.Faded))
	for u := range saved.Clicks {
		saved.Clicks[u] *= f
	}
	return saved.Clicks, nil
}

// Load reads what this and other processes saved.
func (i *Clicks) Load(ctx context.Context, s store.Store, now time.Time) error {
	loaded := map[string]float64{}
	for shard := range clickShards {
		name := shardName(shard)
		b, err := s.Get(ctx, name)
		if err != nil {
			return err
		}
		clicks, err := parseClicks(b, now)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		maps.Copy(loaded, clicks)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, added := range i.added {
		for u, n := range added {
			loaded[u] += n
		}
	}
	i.clicks, i.faded = loaded, now
	return nil
}

// save adds new clicks to those that are saved, and learns of those that other processes
// saved in the same shards.
func (i *Clicks) save(ctx context.Context, settings SettingUpdater, now time.Time) error {
	for shard := range clickShards {
		i.mu.Lock()
		added := i.added[shard]
		i.added[shard] = nil
		i.mu.Unlock()
		if len(added) == 0 {
			continue
		}
		clicks, err := addToShard(ctx, settings, shardName(shard), added, now)
		if err != nil {
			i.mu.Lock()
			for u, n := range added {
				i.countUnsaved(u, n)
			}
			i.mu.Unlock()
			return err
		}
		i.mu.Lock()
		i.fadeClicks(now)
		for u, n := range clicks {
			i.clicks[u] = n + i.added[shard][u]
		}
		keepMostClicked(i.clicks, maxClicked)
		i.mu.Unlock()
	}
	return nil
}

// addToShard adds clicks to a setting and returns all that are in it then.
func addToShard(ctx context.Context, settings SettingUpdater, name string, added map[string]float64, now time.Time) (clicks map[string]float64, err error) {
	err = settings.UpdateSetting(ctx, name, func(old []byte) ([]byte, error) {
		var err error
		if clicks, err = parseClicks(old, now); err != nil {
			return nil, err
		}
		for u, n := range added {
			clicks[u] += n
		}
		keepMostClicked(clicks, maxShardClicked)
		return json.Marshal(savedClicks{now, clicks})
	})
	return clicks, err
}

// takeWhole takes over the clicks that an older program saved as a whole.
func (i *Clicks) takeWhole(ctx context.Context, settings SettingUpdater, now time.Time) error {
	var whole map[string]float64
	err := settings.UpdateSetting(ctx, clicksName, func(old []byte) (_ []byte, err error) {
		whole, err = parseClicks(old, now)
		return nil, err
	})
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for u, n := range whole {
		i.clicks[u] += n
		i.countUnsaved(u, n)
	}
	return nil
}

// Run saves clicks now and then, and at the end. Load was called before.
func (i *Clicks) Run(ctx context.Context, settings SettingUpdater, log *slog.Logger) error {
	if err := i.takeWhole(ctx, settings, time.Now()); err != nil {
		log.Warn("clicks of an older program", "err", err)
	}
	t := time.NewTicker(clicksSave)
	defer t.Stop()
	for {
		done := false
		select {
		case <-ctx.Done():
			done = true
		case <-t.C:
		}
		if err := i.save(context.WithoutCancel(ctx), settings, time.Now()); err != nil {
			log.Warn("save clicks", "err", err)
		}
		if done {
			return nil
		}
	}
}
