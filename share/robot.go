// Package share is the robot for file shares of a local network: it keeps the
// list of files of many hosts, and the tags inside them, fresh within minutes.
//
// Hosts are cut into parts (package part). The robot scans the parts that have
// probably changed, recognises an unchanged part by one hash over its listings,
// and opens only files that are new or changed. One machine is never read by two
// of its workers at once. A host that does not answer is asked again later and
// later; its files stay. Only a scan that reached its end removes files.
package share

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/freshet/freshet/extract/pdftext"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
	"github.com/freshet/freshet/weburl"
)

// Config of a Robot. The zero value is useful but for Media.
type Config struct {
	Robots      int // workers; 0 means 10
	Bound       part.Bound
	Media       bool             // read tags and text
	Policy      Policy           // which part next; "" means Freshness
	PDF         *pdftext.Pool    // reads PDF documents; nil: none
	Knowledge   *media.Knowledge // what is known of titles besides; nil: nothing
	Source      source.Options
	TempDir     string        // where listings are sorted that do not fit into memory; "" is the system's
	TagTimeout  time.Duration // for the tags of one file; 0 means 1 min
	ForgetAfter time.Duration // a host gone for so long is dropped; 0 means 30 days
	DeniedRetry time.Duration // denied folders are asked again after; 0 means 24 h
	RetryMin    time.Duration // first pause before an offline host is asked again; 0 means 1 min
	RetryMax    time.Duration // greatest pause; 0 means 1 h
	ProbeEvery  time.Duration // address ranges are probed again after; 0 means 10 min
	MinInterval time.Duration // a part is not scanned more often; 0 means 1 min
	Idle        time.Duration // an unused session is closed after; 0 means 30 s
	Log         *slog.Logger  // nil means none
	Now         func() time.Time
}

func (c Config) withRobotDefaults() Config {
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{
		{&c.TagTimeout, time.Minute},
		{&c.ForgetAfter, 30 * 24 * time.Hour},
		{&c.DeniedRetry, 24 * time.Hour},
		{&c.RetryMin, time.Minute},
		{&c.RetryMax, time.Hour},
		{&c.ProbeEvery, 10 * time.Minute},
		{&c.MinInterval, time.Minute},
		{&c.Idle, 30 * time.Second},
	} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	if c.Robots <= 0 {
		c.Robots = 10
	}
	if c.Policy == "" {
		c.Policy = Freshness
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Robot scans hosts. Make one with New.
type Robot struct {
	store Store
	sink  Sink
	cfg   Config

	mu      sync.Mutex
	changed *sync.Cond // something to do may have appeared
	hosts   map[string]*host
	busy    map[string]bool // machines
	ranges  []addressRange
	probed  time.Time
	want    int // workers
	working int
	workers int
	counts  Counts
}

// addressRange is a source that is probed again and again.
type addressRange struct {
	spec    string
	options source.Options
}

// New returns a robot with the hosts that the store knows. A nil sink hears
// nothing.
func New(ctx context.Context, store Store, sink Sink, cfg Config) (*Robot, error) {
	if sink == nil {
		sink = none{}
	}
	r := &Robot{store: store, sink: sink, cfg: cfg.withRobotDefaults(), hosts: map[string]*host{}, busy: map[string]bool{}}
	r.changed = sync.NewCond(&r.mu)
	r.want = r.cfg.Robots
	known, err := store.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		u, err := url.Parse(k.Name)
		if err != nil {
			return nil, fmt.Errorf("stored host %q: %w", k.Name, err)
		}
		h := newHost(u)
		h.name, h.options = k.Name, r.cfg.Source
		if err := h.loadHost(ctx, store, k); err != nil {
			return nil, err
		}
		r.hosts[h.name] = h
		r.sink.Online(h.name, h.offline == 0)
	}
	return r, nil
}

// AddSource adds what a source names: a host, a list of hosts, or an address
// range, which is probed for the port of its protocol. It returns the names of
// the hosts.
func (r *Robot) AddSource(ctx context.Context, spec string) ([]string, error) {
	return r.AddSourceWith(ctx, spec, r.cfg.Source)
}

// AddSourceWith adds a source whose hosts are read with options of their own.
func (r *Robot) AddSourceWith(ctx context.Context, spec string, o source.Options) ([]string, error) {
	urls, err := source.Expand(ctx, spec, o)
	if err != nil {
		return nil, err
	}
	var names []string
	r.mu.Lock()
	defer r.mu.Unlock()
	if source.IsRange(spec) && !slices.ContainsFunc(r.ranges, func(a addressRange) bool { return a.spec == spec }) {
		r.ranges = append(r.ranges, addressRange{spec, o})
		r.probed = r.cfg.Now()
	}
	for _, u := range urls {
		h := newHost(u)
		if old := r.hosts[h.name]; old != nil {
			old.url = u // perhaps with other credentials
			h = old
		} else {
			r.hosts[h.name] = h
			h.dirty = true
		}
		h.options = o
		h.added = true
		h.configured = h.configured || !source.IsRange(spec)
		names = append(names, h.name)
	}
	r.changed.Broadcast()
	return names, nil
}

// Address returns the address of a host with its credentials, and the options that
// it is read with; ok is false unless a source of this process names the host.
func (r *Robot) Address(name string) (u *url.URL, o source.Options, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hosts[name]
	if h == nil || !h.added {
		return nil, o, false
	}
	o = h.options
	o.KnownHostKey = h.hostKey
	return h.url, o, true
}

// SetRobots changes the number of workers while the robot runs; a worker that is
// one too many finishes its part first.
func (r *Robot) SetRobots(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.want = max(0, n)
	r.changed.Broadcast()
}

// Status is what a robot is doing.
type Status struct {
	Robots  int
	Working int
	Hosts   []HostStatus
	Counts  Counts
}

// HostStatus is what is known of one host.
type HostStatus struct {
	Name          string
	Online        bool
	Error         string // class, if offline
	Reason        string // the error itself, if it was in this process
	Since         time.Time
	Next          time.Time
	Seen          time.Time // it answered last; zero: never
	Parts         int
	Files, Folder int64
	Media         int64
	Denied        int
	Scanning      bool
	Errors        map[string]int64 // by reason, since the start
}

// Status returns the present state.
func (r *Robot) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := Status{Robots: r.want, Working: r.working}
	st.Counts.Plus(r.counts)
	for _, h := range r.hosts {
		t := h.partTotals()
		hs := HostStatus{
			Name: h.name, Online: h.offline == 0, Error: string(h.err), Reason: h.reason, Parts: len(h.parts), Files: t.Files, Folder: t.Folders, Media: t.Media,
			Denied: len(h.denied), Scanning: r.busy[h.machine], Errors: maps.Clone(h.errors),
		}
		if h.offline > 0 {
			hs.Since, hs.Next = time.Unix(h.offline, 0), time.Unix(h.next, 0)
		}
		if h.seen > 0 {
			hs.Seen = time.Unix(h.seen, 0)
		}
		st.Hosts = append(st.Hosts, hs)
	}
	slices.SortFunc(st.Hosts, func(a, b HostStatus) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return st
}

// Sweep scans every part of the named hosts once, with the robot's number of
// workers, and returns what it did. Hosts that fail are counted, not an error.
func (r *Robot) Sweep(ctx context.Context, names []string) (Counts, error) {
	byMachine := map[string][]*host{}
	r.mu.Lock()
	for _, n := range names {
		if h := r.hosts[n]; h != nil && !slices.Contains(byMachine[h.machine], h) {
			byMachine[h.machine] = append(byMachine[h.machine], h)
		}
	}
	workers := max(1, r.want)
	r.mu.Unlock()
	queue := make(chan []*host, len(byMachine))
	for _, hosts := range byMachine {
		queue <- hosts
	}
	close(queue)
	var mu sync.Mutex
	var total Counts
	var fatal error
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for hosts := range queue {
				for _, h := range hosts {
					c, err := r.sweepHost(ctx, h)
					mu.Lock()
					total.Plus(c)
					if err != nil && fatal == nil {
						fatal = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return total, errors.Join(fatal, ctx.Err())
}

// sweepHost scans all parts of a host in the order of keys, and those that are
// cut again on the way.
func (r *Robot) sweepHost(ctx context.Context, h *host) (Counts, error) {
	var total Counts
	defer r.closeSession(h)
	todo := h.table.All()
	if len(todo) == 0 {
		todo = []part.Part{{}}
	}
	again := map[part.Part]int{}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		if len(h.parts) > 0 && !h.table.Has(p) {
			continue // merged or gone since
		}
		c, more, err := r.scanPart(ctx, h, p)
		total.Plus(c)
		if err != nil {
			if errors.Is(err, errHost) {
				break
			}
			return total, err
		}
		for _, q := range more {
			if again[q]++; again[q] <= 2 {
				todo = append([]part.Part{q}, slices.DeleteFunc(todo, func(x part.Part) bool { return x == q })...)
			}
		}
	}
	wrote, err := r.saveHost(context.WithoutCancel(ctx), h)
	total.StoreWrites += wrote
	return total, err
}

// errHost marks an error of the host, not of the robot or its store.
var errHost = errors.New("host")

// scanPart scans one part. The caller has the host's machine for itself.
func (r *Robot) scanPart(ctx context.Context, h *host, p part.Part) (Counts, []part.Part, error) {
	now := r.cfg.Now()
	s := &scan{robot: r, store: r.store, sink: r.sink, host: h, cfg: &r.cfg, part: p, now: toUnixSeconds(now)}
	src, err := r.openSession(ctx, h)
	var out outcome
	if err == nil {
		s.src = src
		out, err = s.scanPart(ctx)
		h.used = r.cfg.Now()
	}
	if err != nil {
		return r.failedPart(ctx, h, s, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if out.changed {
		s.counts.PartChanges++
	}
	r.noteHostAnswered(h, s)
	if sum := s.walk.Result.Sum; sum.Files+sum.Folders > 0 { // the root is there
		h.root, h.doubt = s.identity, 0
	}
	if out.unreadable != nil {
		r.cfg.Log.Warn("share folder not readable, its files are kept", "host", h.name, "part", p.String(), "error", out.unreadable)
	}
	if i := h.parts[p]; i != nil {
		i.item.recordVisit(s.now, out.changed)
		i.gone = s.gone
	}
	for _, q := range out.again {
		if i := h.parts[q]; i != nil {
			i.item.force = true
		}
	}
	r.addScanCounts(h, s)
	return s.counts, out.again, nil
}

// addScanCounts adds what a scan did to the robot's counts and its host's.
func (r *Robot) addScanCounts(h *host, s *scan) {
	r.counts.Plus(s.counts)
	for reason, n := range s.counts.Errors {
		h.errors[reason] += n
	}
}

func (r *Robot) addCounts(h *host, s *scan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addScanCounts(h, s)
}

// goneFolders returns the folders of a part that were gone in its last scan
// although they were listed.
func (r *Robot) goneFolders(h *host, p part.Part) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := h.parts[p]; i != nil {
		return i.gone
	}
	return nil
}

// failedPart notes an error: of the host, which is then offline for a while, or
// of ourselves, which ends the robot.
func (r *Robot) failedPart(ctx context.Context, h *host, s *scan, err error) (Counts, []part.Part, error) {
	var se *source.Error
	ours := !errors.As(err, &se)
	if ctx.Err() != nil { // stopped: nothing follows for the host
		if !ours {
			err = ctx.Err()
		}
		r.closeSession(h)
		r.addCounts(h, s)
		return s.counts, nil, err
	}
	if ours {
		return s.counts, nil, err
	}
	if se.Class == source.Canceled { // by the host's library: nobody stopped us
		se.Class = source.Offline
	}
	s.counts.countError(se.Class)
	r.closeSession(h)
	r.addCounts(h, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.Log.Warn("share scan cut off", "host", h.name, "part", s.part.String(), "class", se.Class, "error", err)
	now := toUnixSeconds(r.cfg.Now())
	if h.offline == 0 {
		h.offline = now
		r.sink.Online(h.name, false)
	}
	h.fails++
	h.err, h.reason = se.Class, weburl.Redact(err.Error())
	h.dirty = true
	pause := min(float64(r.cfg.RetryMax), float64(r.cfg.RetryMin)*math.Exp2(float64(min(h.fails-1, 20))))
	pause *= 0.75 + 0.5*rand.Float64()
	h.next = now + int64(math.Ceil(pause/float64(time.Second)))
	return s.counts, nil, fmt.Errorf("%w: %w", errHost, err)
}

// noteHostAnswered notes that the host was read.
func (r *Robot) noteHostAnswered(h *host, s *scan) {
	if h.offline > 0 || h.seen == 0 {
		r.sink.Online(h.name, true)
	}
	h.offline, h.next, h.fails, h.err, h.reason = 0, 0, 0, "", ""
	h.seen = s.now
	for _, path := range s.asked { // open again, unless denied again
		delete(h.denied, path)
	}
	for _, path := range s.denied {
		h.denied[path] = s.now
	}
	h.dirty = true
}

// applyParts changes the table of parts after a commit.
func (h *host) applyParts(r *Robot, parts []PartState, gone []part.Part, from part.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var history item
	if i := h.parts[from]; i != nil {
		history = *i.item
	}
	for _, s := range parts {
		if i := h.parts[s.Part]; i != nil {
			i.sum = s.Sum
			continue
		}
		it := history // a new part inherits the history of what it was cut from
		if s.Part != from {
			it.history.Last = r.cfg.Now()
		}
		h.table.Add(s.Part)
		h.parts[s.Part] = &partInfo{sum: s.Sum, item: &it}
	}
	for _, p := range gone {
		h.table.Remove(p)
		delete(h.parts, p)
	}
}

func (r *Robot) openSession(ctx context.Context, h *host) (source.Source, error) {
	if h.session != nil {
		return h.session, nil
	}
	r.mu.Lock()
	u, o := h.url, h.options
	o.KnownHostKey = h.hostKey
	r.mu.Unlock()
	o.NewHostKey = func(key string) { r.trustHostKey(h, key) }
	s, err := source.Dial(ctx, u, o)
	if err != nil {
		return nil, err
	}
	h.session = s
	return s, nil
}

// trustHostKey keeps the key that a host showed at the first connection, or that its
// source accepts.
func (r *Robot) trustHostKey(h *host, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.hostKey == key {
		return
	}
	r.cfg.Log.Info("share host key trusted from now on", "host", h.name, "key", key)
	h.hostKey, h.dirty = key, true
}

func (r *Robot) closeSession(h *host) {
	if h.session != nil {
		h.session.Close()
		h.session = nil
	}
}

// saveHost stores the host's row, if it changed, and returns the rows written.
func (r *Robot) saveHost(ctx context.Context, h *host) (rows int64, err error) {
	r.mu.Lock()
	rec, dirty := h.hostRecord(), h.dirty
	h.dirty = false
	r.mu.Unlock()
	if !dirty {
		return 0, nil
	}
	r.mu.Lock()
	r.counts.StoreWrites++
	r.mu.Unlock()
	return 1, r.store.PutHost(ctx, rec)
}
