package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/freshet/freshet/index/files"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/lab/rng"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
	"github.com/freshet/freshet/share/source"
	"github.com/freshet/freshet/share/state"
)

// benchShareCmd measures the share robot and the search of files.
type benchShareCmd struct {
	Rescan    benchRescanCmd    `cmd:"" help:"An unchanged tree: first scan, plain walk, rescan, rclone lsf -R, over the same protocol."`
	Stale     benchStaleCmd     `cmd:"" help:"How long changes stay unseen under each policy, with equal budgets."`
	Search    benchSearchCmd    `cmd:"" help:"Synthetic files: ingest, memory, times of queries."`
	Substring benchSubstringCmd `cmd:"" help:"Pieces of names beside plocate, on the paths of a folder."`
	Tree      benchTreeCmd      `cmd:"" help:"Make a tree of small files to measure with."`
}

type benchRescanCmd struct {
	Sources []string `arg:"" name:"source" help:"Share to scan, such as smb://127.0.0.1:4450/share."`
	Memory  int64    `help:"Bytes of a part's list of files." default:"10485760"`
	Rclone  bool     `help:"Run rclone as well, where it is installed." default:"true" negatable:""`

	stderr func(format string, args ...any)
}

// cpu returns the processor seconds that this process has used.
func cpu() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// peak returns the most memory that this process has held, in MB.
func peak() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Maxrss) / 1024
}

type rescanRow struct {
	Source      string  `json:"source"`
	What        string  `json:"what"`
	Files       int64   `json:"files"`
	Listings    int64   `json:"listings"`
	StoreReads  int64   `json:"store_reads"`
	StoreWrites int64   `json:"store_writes"`
	Seconds     float64 `json:"seconds"`
	CPU         float64 `json:"cpu_seconds"`
	Peak        float64 `json:"peak_mb"`
}

// Run measures each source in one run.
func (c *benchRescanCmd) Run(ctx context.Context, g *globals) error {
	c.stderr = func(format string, args ...any) { fmt.Fprintf(g.stderr, format, args...) }
	dir, err := os.MkdirTemp("", "freshet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rows []rescanRow
	for i, s := range c.Sources {
		r, err := c.measure(ctx, filepath.Join(dir, fmt.Sprint(i)), s)
		if err != nil {
			return err
		}
		rows = append(rows, r...)
	}
	if g.JSON {
		return g.printJSON(map[string]any{"runs": rows})
	}
	w := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "source\twhat\tfiles\tlistings\tstore reads\twrites\tseconds\tCPU s\tpeak MB\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.0f\t\n", r.Source, r.What, r.Files, r.Listings, r.StoreReads, r.StoreWrites, r.Seconds, r.CPU, r.Peak)
	}
	return w.Flush()
}

func (c *benchRescanCmd) measure(ctx context.Context, dir, spec string) ([]rescanRow, error) {
	store, err := state.Open(dir, state.Config{})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	robot, err := share.New(ctx, store, nil, share.Config{Bound: part.Bound{Bytes: c.Memory}})
	if err != nil {
		return nil, err
	}
	names, err := robot.AddSource(ctx, spec)
	if err != nil {
		return nil, usageError{err}
	}
	u, err := url.Parse(names[0])
	if err != nil {
		return nil, err
	}
	var rows []rescanRow
	timed := func(what string, f func(r *rescanRow) error) error {
		r := rescanRow{Source: u.Scheme, What: what}
		begin, used := time.Now(), cpu()
		if err := f(&r); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		r.Seconds, r.CPU, r.Peak = time.Since(begin).Seconds(), cpu()-used, peak()
		rows = append(rows, r)
		return nil
	}
	sweep := func(r *rescanRow) error {
		n, err := robot.Sweep(ctx, names)
		r.Listings, r.StoreReads, r.StoreWrites = n.Listings, n.StoreReads, n.StoreWrites
		for _, h := range robot.Status().Hosts {
			r.Files += h.Files
		}
		if len(n.Errors) > 0 {
			err = fmt.Errorf("errors %v", n.Errors)
		}
		return err
	}
	walk := func(r *rescanRow) error { return plainWalk(ctx, u, r) }
	steps := []struct {
		name string
		f    func(*rescanRow) error
	}{{"first scan", sweep}, {"plain walk", walk}, {"rescan", sweep}}
	for _, s := range steps {
		if err := timed(s.name, s.f); err != nil {
			return nil, err
		}
	}
	if remote := rcloneRemote(u); c.Rclone && remote != "" {
		if err := timed("rclone lsf -R", func(r *rescanRow) error { return rclone(ctx, remote, r) }); err != nil {
			c.stderr("bench share rescan: no row of rclone: %v\n", err)
		}
	}
	return rows, nil
}

// plainWalk lists every folder over one connection, which is what a robot without
// parts does at least, and keeps nothing.
func plainWalk(ctx context.Context, u *url.URL, r *rescanRow) error {
	src, err := source.Dial(ctx, u, source.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	todo := []string{""}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		list, err := src.List(ctx, path)
		if err != nil {
			return err
		}
		r.Listings++
		for _, e := range list {
			if e.Dir {
				todo = append(todo, part.JoinPath(path, e.Name))
			} else {
				r.Files++
			}
		}
	}
	return nil
}

// obscured is the word "guest" in rclone's disguise of passwords, which it wants
// even of anonymous users.
const obscured = "ZqYWiYa4BhHhIAHZx6_H1S8rAYf-"

// rcloneRemote returns u as rclone writes remotes without a configuration.
func rcloneRemote(u *url.URL) string {
	port := u.Port()
	switch u.Scheme {
	case "file":
		return u.Path
	case "smb":
		return ":smb,host=" + u.Hostname() + ",port=" + port + ",user=Guest:" + strings.TrimPrefix(u.Path, "/")
	case "ftp":
		return ":ftp,host=" + u.Hostname() + ",port=" + port + ",user=anonymous,pass=" + obscured + ":" + strings.TrimPrefix(u.Path, "/")
	case "webdav":
		return ":webdav,url='http://" + u.Host + u.Path + "':"
	}
	return ""
}

// rclone lists recursively with sizes and times, as a rescan needs them, with one
// checker: as many connections as the others have.
func rclone(ctx context.Context, remote string, r *rescanRow) error {
	bin, err := exec.LookPath("rclone")
	if err != nil {
		return nil //nolint:nilerr // not installed: no row
	}
	c := exec.CommandContext(ctx, bin, "lsf", "-R", "--files-only", "--format", "pst", "--checkers", "1", "--config", os.DevNull, remote)
	var out countLines
	var errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, errs.String())
	}
	r.Files = int64(out)
	return nil
}

type countLines int64

func (n *countLines) Write(p []byte) (int, error) {
	*n += countLines(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

type benchTreeCmd struct {
	Dir    string `arg:"" help:"New folder." type:"path"`
	Files  int    `help:"Files." default:"200000"`
	Folder int    `help:"Files of a folder." default:"10"`
}

// Run makes empty files in folders of folders.
func (c *benchTreeCmd) Run(ctx context.Context) error {
	for i := 0; i < c.Files; i++ {
		d := i / max(1, c.Folder)
		dir := filepath.Join(c.Dir, fmt.Sprintf("set %03d", d/1000), fmt.Sprintf("album %03d", d%1000))
		if i%max(1, c.Folder) == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		f, err := os.Create(filepath.Join(dir, syntheticName(uint64(i))))
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

type benchStaleCmd struct {
	Parts  int     `help:"Parts." default:"2000"`
	Days   int     `help:"Simulated days; the first third is not counted." default:"30"`
	Visits float64 `help:"Visits of all parts together, a part and day." default:"2"`
	Seed   uint64  `help:"Seed of the changes." default:"1"`
}

type staleRow struct {
	Policy    share.Policy `json:"policy"`
	Freshness float64      `json:"freshness"`
	Median    float64      `json:"median_delay_hours"`
	P95       float64      `json:"p95_delay_hours"`
	Mean      float64      `json:"mean_delay_hours"`
	Found     int          `json:"changes_found"`
	Decision  float64      `json:"decision_us"`
}

// Run lets the robot's own schedule choose among parts whose Poisson rates of
// change differ 1,000-fold, each policy with the same changes and visits.
func (c *benchStaleCmd) Run(_ context.Context, g *globals) error {
	if c.Parts < 1 || c.Days < 3 || c.Visits <= 0 {
		return usagef("bench share stale: --parts >= 1, --days >= 3, --visits > 0")
	}
	var rows []staleRow
	for _, p := range share.Policies() {
		rows = append(rows, c.simulate(p))
	}
	if g.JSON {
		return g.printJSON(map[string]any{"runs": rows})
	}
	w := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tfreshness\tmedian delay h\tp95 h\tmean h\tfound\tus a decision\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.4f\t%.2f\t%.1f\t%.2f\t%d\t%.0f\t\n", r.Policy, r.Freshness, r.Median, r.P95, r.Mean, r.Found, r.Decision)
	}
	return w.Flush()
}

func (c *benchStaleCmd) simulate(p share.Policy) staleRow {
	sched := share.NewSchedule(p, c.Parts)
	rate := make([]float64, c.Parts)  // changes per second
	next := make([]float64, c.Parts)  // next change
	since := make([]float64, c.Parts) // first unseen change, 0 none
	streams := make([]interface{ ExpFloat64() float64 }, c.Parts)
	for i := range rate {
		r := rng.New(c.Seed, "stale", i)
		streams[i] = r
		rate[i] = math.Pow(1000, float64(i)/float64(c.Parts)) / (100 * 86400) // one in 100 days to ten a day
		next[i] = r.ExpFloat64() / rate[i]
	}
	end := float64(c.Days) * 86400
	begin := end / 3
	step := 86400 / (c.Visits * float64(c.Parts))
	var delays []float64
	stale := 0.0
	var spent time.Duration
	visits := 0
	catchUp := func(i int, now float64) {
		for next[i] <= now {
			if since[i] == 0 {
				since[i] = next[i]
			}
			next[i] += streams[i].ExpFloat64() / rate[i]
		}
	}
	for now := step; now < end; now += step {
		clock := time.Now()
		i := sched.Next(int64(now) + 1)
		spent += time.Since(clock)
		visits++
		catchUp(i, now)
		changed := since[i] > 0
		if changed {
			stale += max(0, now-max(since[i], begin))
			if now > begin {
				delays = append(delays, (now-since[i])/3600)
			}
			since[i] = 0
		}
		sched.Visited(i, int64(now)+1, changed)
	}
	for i := range since {
		catchUp(i, end)
		if since[i] > 0 {
			stale += end - max(since[i], begin)
		}
	}
	slices.Sort(delays)
	sum := 0.0
	for _, d := range delays {
		sum += d
	}
	at := func(q float64) float64 {
		if len(delays) == 0 {
			return 0
		}
		return delays[int(q*float64(len(delays)-1))]
	}
	return staleRow{
		Policy: p, Freshness: 1 - stale/((end-begin)*float64(c.Parts)), Median: at(0.5), P95: at(0.95), Mean: sum / float64(max(1, len(delays))),
		Found: len(delays), Decision: float64(spent.Microseconds()) / float64(max(1, visits)),
	}
}

type benchSearchCmd struct {
	Files   int `help:"Files, a tenth of them with tags." default:"2000000"`
	Queries int `help:"Queries of each kind." default:"300"`
}

var syntheticWords = strings.Fields("love music night blue river stone fire winter summer dance live best hits rock jazz piano история любовь зима музыка ночь песня naktis daina upė ruduo world city road moon sun star dream heart")

// syntheticName makes file names with words by Zipf's law and numbers.
func syntheticName(i uint64) string {
	h := rng.Mix(7, i)
	n := len(syntheticWords)
	pick := func(shift uint) string {
		u := rng.Unit(rng.Mix(h, uint64(shift)))
		return syntheticWords[int(math.Pow(float64(n), u))-1]
	}
	rare := fmt.Sprintf("%c%c%c%c%c", 'a'+h%26, 'a'+h>>8%26, "aeiou"[h>>16%5], 'a'+h>>24%26, "aeiou"[h>>32%5])
	ext := []string{"mp3", "txt", "jpg", "avi", "zip", "pdf"}[h>>40%6]
	return fmt.Sprintf("%02d - %s %s %s %d.%s", h>>48%20, pick(1), rare, pick(2), i%1000, ext)
}

func syntheticFile(i uint64) share.File {
	f := share.File{
		Path: fmt.Sprintf("share %d/%s %d/%s", i/100_000, syntheticWords[i/1000%uint64(len(syntheticWords))], i/10, syntheticName(i)),
		Size: int64(rng.Mix(3, i) % (1 << 30)), Modified: 1_700_000_000 + int64(i%10_000_000), Seen: 1_750_000_000,
	}
	if i%10 == 0 {
		h := rng.Mix(5, i/10%100_000) // ten copies of each on the average
		f.Media = media.Info{
			Title: fmt.Sprintf("%s %s %d", syntheticWords[h%uint64(len(syntheticWords))], syntheticWords[h>>8%uint64(len(syntheticWords))], h%5000), Artist: fmt.Sprintf("Artist %d", h>>16%5000), Year: 1960 + int(h>>32%60),
			Genre: "Pop", Duration: 200 * time.Second, BitRate: 192_000,
		}
	}
	return f
}

// Run fills an index and asks it.
func (c *benchSearchCmd) Run(ctx context.Context, g *globals) error {
	x := files.New()
	begin, used := time.Now(), cpu()
	const batch = 100_000
	for from := 0; from < c.Files; from += batch {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		list := make([]share.File, 0, batch)
		for i := from; i < min(c.Files, from+batch); i++ {
			list = append(list, syntheticFile(uint64(i)))
		}
		if err := x.Update(ctx, fmt.Sprintf("smb://host%d/share", from/batch%1000), list, nil); err != nil {
			return err
		}
	}
	took, usedNow := time.Since(begin), cpu()-used
	runtime.GC()
	st := x.Stats()
	out := map[string]any{
		"files": st.Files, "segments": st.Segments, "terms": st.Terms, "index_bytes": st.Bytes, "bytes_per_file": float64(st.Bytes) / float64(max(1, st.Files)),
		"ingest_per_second": float64(c.Files) / took.Seconds(), "ingest_cpu_us": usedNow / float64(c.Files) * 1e6, "peak_mb": peak(),
	}
	kinds := map[string]func(i int) string{
		"two words": func(i int) string {
			return syntheticWords[i%len(syntheticWords)] + " " + syntheticWords[i*7%len(syntheticWords)]
		},
		"rare word": func(i int) string { return rareWord(i) },
		"artist":    func(i int) string { return fmt.Sprintf("artist:%d", i%5000) },
		"prefix":    func(i int) string { return rareWord(i)[:3] + "*" },
		"substring": func(i int) string { return rareWord(i)[1:4] },
		"filters": func(i int) string {
			return fmt.Sprintf("%s ext:mp3 year:%d", syntheticWords[i%len(syntheticWords)], 1960+i%60)
		},
	}
	times := map[string]map[string]float64{}
	for name, make := range kinds {
		t, err := c.ask(ctx, x, make)
		if err != nil {
			return err
		}
		times[name] = t
	}
	out["queries_ms"] = times
	update, err := c.churn(ctx, x)
	if err != nil {
		return err
	}
	out["update_of_100_ms"] = update
	if g.JSON {
		return g.printJSON(out)
	}
	for _, k := range slices.Sorted(mapKeys(out)) {
		fmt.Fprintf(g.stdout, "%s: %v\n", k, out[k])
	}
	return nil
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func rareWord(i int) string {
	name := syntheticName(uint64(i) * 7919)
	return strings.Fields(name)[3]
}

func (c *benchSearchCmd) ask(ctx context.Context, x *files.Index, make func(int) string) (map[string]float64, error) {
	var ms []float64
	for i := range c.Queries {
		q := query.Parse(make(i), time.Now())
		begin := time.Now()
		if _, err := x.Search(ctx, q, files.Options{}); err != nil {
			return nil, err
		}
		ms = append(ms, float64(time.Since(begin).Microseconds())/1000)
	}
	slices.Sort(ms)
	return map[string]float64{"p50": ms[len(ms)/2], "p99": ms[len(ms)*99/100]}, nil
}

// churn changes 100 files at a time, as scans of changed parts do.
func (c *benchSearchCmd) churn(ctx context.Context, x *files.Index) (map[string]float64, error) {
	var ms []float64
	for n := range 200 {
		var list []share.File
		for j := range 100 {
			f := syntheticFile(uint64((n*1000 + j) % 100_000))
			f.Size++
			list = append(list, f)
		}
		begin := time.Now()
		if err := x.Update(ctx, "smb://host0/share", list, nil); err != nil {
			return nil, err
		}
		ms = append(ms, float64(time.Since(begin).Microseconds())/1000)
	}
	slices.Sort(ms)
	return map[string]float64{"p50": ms[100], "p99": ms[198]}, nil
}

type benchSubstringCmd struct {
	Dir     string `arg:"" help:"Folder whose paths are indexed by both." type:"existingdir"`
	Queries int    `help:"Pieces to look for." default:"100"`
}

// Run asks our index and plocate for the same pieces of names.
func (c *benchSubstringCmd) Run(ctx context.Context, g *globals) error {
	x := files.New()
	var list []share.File
	err := filepath.WalkDir(c.Dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(c.Dir, p)
			list = append(list, share.File{Path: rel})
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := x.Update(ctx, "file://"+c.Dir, list, nil); err != nil {
		return err
	}
	pieces := make([]string, c.Queries)
	for i := range pieces {
		pieces[i] = rareWord(i)[1:4]
	}
	out := map[string]any{"files": len(list), "index_bytes": x.Stats().Bytes}
	begin := time.Now()
	found := 0
	for _, p := range pieces {
		r, err := x.Search(ctx, query.Parse(p, time.Now()), files.Options{})
		if err != nil {
			return err
		}
		found += r.Files
	}
	out["freshet"] = map[string]any{"ms_per_query": float64(time.Since(begin).Microseconds()) / 1000 / float64(len(pieces)), "found": found}
	if err := plocate(ctx, c.Dir, pieces, out); err != nil {
		return err
	}
	return g.printJSON(out)
}

func plocate(ctx context.Context, dir string, pieces []string, out map[string]any) error {
	updatedb, err := exec.LookPath("updatedb.plocate")
	if err != nil {
		return nil //nolint:nilerr // not installed: no column
	}
	db := filepath.Join(os.TempDir(), fmt.Sprintf("freshet-bench-%d.db", os.Getpid()))
	defer os.Remove(db)
	if b, err := exec.CommandContext(ctx, updatedb, "-l", "no", "-U", dir, "-o", db, "--prunepaths", "", "--prune-bind-mounts", "no").CombinedOutput(); err != nil {
		return fmt.Errorf("updatedb: %w: %s", err, b)
	}
	st, err := os.Stat(db)
	if err != nil {
		return err
	}
	begin := time.Now()
	found := countLines(0)
	for _, p := range pieces {
		c := exec.CommandContext(ctx, "plocate", "-d", db, "-b", "-i", p)
		c.Stdout, c.Stderr = &found, io.Discard
		_ = c.Run() // exit code 1 means nothing found
	}
	out["plocate"] = map[string]any{"ms_per_query": float64(time.Since(begin).Microseconds()) / 1000 / float64(len(pieces)), "found": int64(found), "db_bytes": st.Size()}
	return nil
}
