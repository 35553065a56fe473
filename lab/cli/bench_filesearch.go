package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/usage"

	"github.com/freshet/freshet/index/files"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
)

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
func (c *benchSearchCmd) Run(ctx context.Context, g *command.Globals) error {
	x := files.New()
	begin, used := time.Now(), usage.CPUSeconds()
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
	took, usedNow := time.Since(begin), usage.CPUSeconds()-used
	runtime.GC()
	st := x.Stats()
	out := map[string]any{
		"files": st.Files, "segments": st.Segments, "terms": st.Terms, "index_bytes": st.Bytes, "bytes_per_file": float64(st.Bytes) / float64(max(1, st.Files)),
		"ingest_per_second": float64(c.Files) / took.Seconds(), "ingest_cpu_us": usedNow / float64(c.Files) * 1e6, "peak_mb": usage.PeakMemory(),
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
	for name, makeQuery := range kinds {
		t, err := c.measureQueries(ctx, x, makeQuery)
		if err != nil {
			return err
		}
		times[name] = t
	}
	out["queries_ms"] = times
	update, err := c.measureUpdates(ctx, x)
	if err != nil {
		return err
	}
	out["update_of_100_ms"] = update
	if g.JSON {
		return g.PrintJSON(out)
	}
	for _, k := range slices.Sorted(mapKeys(out)) {
		fmt.Fprintf(g.Stdout, "%s: %v\n", k, out[k])
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

func (c *benchSearchCmd) measureQueries(ctx context.Context, x *files.Index, makeQuery func(int) string) (map[string]float64, error) {
	var ms []float64
	for i := range c.Queries {
		q := query.Parse(makeQuery(i), time.Now())
		begin := time.Now()
		if _, err := x.Search(ctx, q, files.Options{}); err != nil {
			return nil, err
		}
		ms = append(ms, float64(time.Since(begin).Microseconds())/1000)
	}
	slices.Sort(ms)
	return map[string]float64{"p50": ms[len(ms)/2], "p99": ms[len(ms)*99/100]}, nil
}

// measureUpdates changes 100 files at a time, as scans of changed parts do.
func (c *benchSearchCmd) measureUpdates(ctx context.Context, x *files.Index) (map[string]float64, error) {
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
func (c *benchSubstringCmd) Run(ctx context.Context, g *command.Globals) error {
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
	if err := measurePlocate(ctx, c.Dir, pieces, out); err != nil {
		return err
	}
	return g.PrintJSON(out)
}

func measurePlocate(ctx context.Context, dir string, pieces []string, out map[string]any) error {
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
