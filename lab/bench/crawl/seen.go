package crawl

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/freshet/freshet/internal/pgload"
	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/store/local"
	"github.com/freshet/freshet/weburl"
)

// Seen fills the store of one machine with URLs as a crawl finds them, and asks
// it for known ones: 64 hosts are at work at a time, each until it has HostPages
// URLs; then the next begins.
type Seen struct {
	URLs      int
	HostPages int // URLs of a host
	Asked     int // known URLs asked for at each step
	Dir       string
	Config    local.Config
	Progress  func(done int)
}

// SeenRow is what one step cost: from the URLs of the row before to these.
type SeenRow struct {
	URLs       int     `json:"urls"`
	Seconds    float64 `json:"seconds"`    // to add
	CPU        float64 `json:"cpu_us"`     // user and system time for each URL added
	Rate       float64 `json:"new_per_s"`  // added
	Near       float64 `json:"near_per_s"` // known URLs of the hosts at work
	Far        float64 `json:"far_per_s"`  // known URLs of any host
	LooksNew   float64 `json:"new_looks"`  // questions to the disk for each URL
	LooksNear  float64 `json:"near_looks"`
	LooksFar   float64 `json:"far_looks"`
	FalseKnown int     `json:"false_known"` // new URLs taken for known
	FalseNew   int     `json:"false_new"`   // known URLs taken for new
	Resident   int64   `json:"resident"`    // bytes of memory of the process, its program file left out
	Peak       int64   `json:"peak"`        // the greatest so far, program file included
	Front      int64   `json:"front"`       // of that the tables of known URLs
	Disk       float64 `json:"disk_per_url"`
}

// SeenReopen is what opening the full store again cost, and whether it knows all
// that was added.
type SeenReopen struct {
	Seconds  float64 `json:"seconds"`
	CPU      float64 `json:"cpu_seconds"`
	Resident int64   `json:"resident"`
	Checked  int     `json:"checked"` // all URLs, in the order of adding
	Rate     float64 `json:"checked_per_s"`
	FalseNew int     `json:"false_new"`
}

const (
	seenHosts = 64
	seenBatch = 1000
)

// Run makes rows at the powers of ten and at the end, then opens the store again.
func (b *Seen) Run(ctx context.Context, row func(SeenRow) error) (SeenReopen, error) {
	s, err := local.Open(b.Dir, b.Config)
	if err != nil {
		return SeenReopen{}, err
	}
	for at, next := 0, min(10_000, b.URLs); at < b.URLs; next = min(next*10, b.URLs) {
		r, err := b.measureSeenStep(ctx, s, at, next)
		if err == nil {
			err = row(r)
		}
		if err != nil {
			_ = s.Close()
			return SeenReopen{}, err
		}
		at = next
	}
	if err := s.Close(); err != nil {
		return SeenReopen{}, err
	}
	return b.measureReopen(ctx)
}

// numberedURL returns the i-th URL: 64 hosts take turns until each has HostPages.
func (b *Seen) numberedURL(i int) (weburl.URL, error) {
	round := seenHosts * b.HostPages
	host, page := i/round*seenHosts+i%seenHosts, i%round/seenHosts
	buf := append(make([]byte, 0, 64), "http://host"...)
	buf = strconv.AppendInt(buf, int64(host), 10)
	buf = append(buf, ".example/section/page-"...)
	buf = strconv.AppendInt(buf, int64(page), 10)
	return weburl.Parse(string(append(buf, ".html"...)))
}

// addURLs adds URLs and returns how many were new.
func (b *Seen) addURLs(ctx context.Context, s *local.Store, n int, which func(j int) int) (int, error) {
	added := 0
	found := make([]store.Found, 0, seenBatch)
	for j := 0; j < n; {
		found = found[:0]
		for ; j < n && len(found) < seenBatch; j++ {
			i := which(j)
			u, err := b.numberedURL(i)
			if err != nil {
				return added, err
			}
			found = append(found, store.Found{URL: u, Order: uint64(i + 1)})
		}
		k, err := s.Add(ctx, found)
		if err != nil {
			return added, err
		}
		added += k
		if b.Progress != nil {
			b.Progress(which(j - 1))
		}
		if err := ctx.Err(); err != nil {
			return added, err
		}
	}
	return added, nil
}

func (b *Seen) measureSeenStep(ctx context.Context, s *local.Store, at, next int) (SeenRow, error) {
	r := SeenRow{URLs: next}
	looks := s.Memory().Looks
	share := func(n int) float64 {
		was := looks
		looks = s.Memory().Looks
		return float64(looks-was) / float64(n)
	}
	start, cpu := time.Now(), pgload.Own()
	added, err := b.addURLs(ctx, s, next-at, func(j int) int { return at + j })
	if err != nil {
		return r, err
	}
	r.Seconds = time.Since(start).Seconds()
	r.CPU = 1e6 * (pgload.Own() - cpu) / float64(next-at)
	r.Rate = float64(next-at) / r.Seconds
	r.FalseKnown = next - at - added
	r.LooksNew = share(next - at)

	random := rng.New(1, "seen", next)
	n := min(b.Asked, next)
	ask := func(pick func(*rand.Rand) int) (rate float64, err error) {
		start := time.Now()
		added, err := b.addURLs(ctx, s, n, func(int) int { return pick(random) })
		r.FalseNew += added
		return float64(n) / time.Since(start).Seconds(), err
	}
	round := seenHosts * b.HostPages
	first := (next - 1) / round * round
	if r.Near, err = ask(func(g *rand.Rand) int { return first + g.IntN(next-first) }); err != nil {
		return r, err
	}
	r.LooksNear = share(n)
	if r.Far, err = ask(func(g *rand.Rand) int { return g.IntN(next) }); err != nil {
		return r, err
	}
	r.LooksFar = share(n)
	r.Resident, r.Peak = ownMemory()
	r.Front = s.Memory().Bytes
	size, err := folderSize(b.Dir)
	r.Disk = float64(size) / float64(next)
	return r, err
}

func (b *Seen) measureReopen(ctx context.Context) (r SeenReopen, err error) {
	start, cpu := time.Now(), pgload.Own()
	s, err := local.Open(b.Dir, b.Config)
	if err != nil {
		return r, err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	r.Seconds, r.CPU = time.Since(start).Seconds(), pgload.Own()-cpu
	r.Resident, _ = ownMemory()
	start = time.Now()
	r.Checked = b.URLs
	r.FalseNew, err = b.addURLs(ctx, s, b.URLs, func(j int) int { return j })
	r.Rate = float64(b.URLs) / time.Since(start).Seconds()
	return r, err
}

// ownMemory reads how much memory of its own the process has, and the greatest
// amount of any it had, from Linux; 0 elsewhere.
func ownMemory() (now, peak int64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(string(f[1]), 10, 64)
		switch string(f[0]) {
		case "RssAnon:":
			now = 1024 * kb
		case "VmHWM:":
			peak = 1024 * kb
		}
	}
	return now, peak
}

// folderSize adds up the files in a folder.
func folderSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		st, err := d.Info()
		if err == nil {
			n += st.Size()
		}
		return ignoreGone(err)
	})
	if err != nil {
		return n, fmt.Errorf("bench: size of %s: %w", dir, err)
	}
	return n, nil
}

// ignoreGone drops the error of a file that a compaction took away meanwhile.
func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
