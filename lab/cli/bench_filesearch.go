package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/internal/usage"

	"github.com/freshet/freshet/index/files"
	"github.com/freshet/freshet/index/query"
	"github.com/freshet/freshet/internal/rng"
	"github.com/freshet/freshet/share"
	"github.com/freshet/freshet/share/media"
	"github.com/freshet/freshet/share/part"
)

type benchSearchCmd struct {
	Files   int    `help:"Files, a tenth of them with tags." default:"2000000"`
	Queries int    `help:"Queries of each kind." default:"300"`
	Paths   string `help:"File of real paths, one a line, instead of synthetic ones." type:"existingfile" placeholder:"FILE"`
	Plocate bool   `help:"Ask plocate for the same pieces. It hides files of folders that do not exist, so empty folders are made."`
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
	rare := syntheticWord(rng.Mix(11, i))
	ext := []string{"mp3", "txt", "jpg", "avi", "zip", "pdf"}[h>>40%6]
	return fmt.Sprintf("%02d - %s %s %s %d.%s", h>>48%20, pick(1), rare, pick(2), i%1000, ext)
}

// syntheticWord makes a word of five to ten letters that few names have.
func syntheticWord(h uint64) string {
	b := make([]byte, 5+h%6)
	for i := range b {
		h = rng.Mix(13, h)
		if b[i] = "bcdfghjklmnpqrstvwxz"[h%20]; i%2 == 1 {
			b[i] = "aeiouy"[h%6]
		}
	}
	return string(b)
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
func (c *benchSearchCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	dir, err := os.MkdirTemp("", "freshet-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	x, err := files.Open(filepath.Join(dir, "names"), files.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	out, err := c.build(ctx, x)
	if err != nil {
		return err
	}
	kinds := c.kinds()
	times := map[string]any{}
	for name, makeQuery := range kinds {
		t, err := c.measureQueries(ctx, x, makeQuery)
		if err != nil {
			return err
		}
		times[name] = t
	}
	out["queries_ms"] = times
	if c.Plocate {
		if out["plocate"], err = c.plocate(ctx, dir, kinds); err != nil {
			return err
		}
	}
	if out["update_of_100_ms"], err = c.measureUpdates(ctx, x); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(out)
	}
	for _, k := range slices.Sorted(mapKeys(out)) {
		fmt.Fprintf(g.Stdout, "%s: %v\n", k, out[k])
	}
	return nil
}

// build fills the index and returns what that took.
func (c *benchSearchCmd) build(ctx context.Context, x *files.Index) (map[string]any, error) {
	begin, used := time.Now(), usage.CPUSeconds()
	const batch = 10_000
	list := make([]share.File, 0, batch)
	count, anonymous := 0, 0.0
	var making float64
	flush := func() error {
		anonymous = max(anonymous, anonymousMemory())
		err := x.Update(ctx, fmt.Sprintf("smb://host%d/share", count/100_000), list, nil)
		count += len(list)
		list = list[:0]
		return errors.Join(err, ctx.Err())
	}
	err := c.eachFile(func(f share.File) error {
		list = append(list, f)
		if len(list) < batch {
			return nil
		}
		return flush()
	})
	if err := errors.Join(err, flush(), x.Commit(ctx)); err != nil {
		return nil, err
	}
	// Making the names is no part of it: they are made again without an index.
	took, usedNow := time.Since(begin), usage.CPUSeconds()-used
	made := usage.CPUSeconds()
	if err := c.eachFile(func(share.File) error { return nil }); err != nil {
		return nil, err
	}
	making = usage.CPUSeconds() - made
	runtime.GC()
	st, err := x.Stats()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"files": st.Files, "segments": len(st.Segments), "terms": st.Terms, "disk_bytes": st.Bytes, "bytes_per_file": float64(st.Bytes) / float64(max(1, st.Files)),
		"ingest_per_second": float64(count) / took.Seconds(), "ingest_cpu_us": (usedNow - making) / float64(max(1, count)) * 1e6,
		"anonymous_mb_while_building": anonymous, "anonymous_mb": anonymousMemory(),
	}, nil
}

// eachFile calls f for all files.
func (c *benchSearchCmd) eachFile(f func(share.File) error) error {
	if c.Paths == "" {
		for i := range c.Files {
			if err := f(syntheticFile(uint64(i))); err != nil {
				return err
			}
		}
		return nil
	}
	in, err := os.Open(c.Paths)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	for n := 0; lines.Scan() && n < c.Files; n++ {
		if err := f(share.File{Path: strings.TrimPrefix(lines.Text(), "/"), Size: int64(n), Modified: 1_700_000_000, Seen: 1_750_000_000}); err != nil {
			return err
		}
	}
	return lines.Err()
}

// anonymousMemory returns the memory of the process that no file backs, in MB; 0 where
// the system does not tell.
func anonymousMemory() float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "RssAnon:")
	var kb float64
	_, _ = fmt.Sscan(rest, &kb)
	return kb / 1024
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

// kinds returns, by name, what makes the i-th query of a kind. Pieces are cut out of the
// words of names.
func (c *benchSearchCmd) kinds() map[string]func(i int) string {
	var words []string // of at least eight letters
	n := 0
	_ = c.eachFile(func(f share.File) error {
		if n++; n%max(1, c.Files/20_000) != 0 {
			return nil
		}
		_, name := part.SplitPath(f.Path)
		for w := range strings.FieldsFuncSeq(name, func(r rune) bool { return r < 'a' || r > 'z' }) {
			if len(w) >= 8 {
				words = append(words, w)
			}
		}
		return nil
	})
	if len(words) == 0 {
		words = []string{"nothing-"}
	}
	word := func(i int) string { return words[i*7919%len(words)] }
	piece := func(size int) func(i int) string {
		return func(i int) string { return word(i)[1 : 1+size] }
	}
	kinds := map[string]func(i int) string{
		"3 letters": piece(3), "5 letters": piece(5), "7 letters": piece(7),
		"two pieces":   func(i int) string { return word(i)[1:4] + " " + word(i)[4:7] },
		"whole word":   word,
		"prefix":       func(i int) string { return word(i)[:4] + "*" },
		"no such name": func(i int) string { return word(i)[:3] + "qqq" + word(i)[3:5] },
	}
	if c.Paths == "" {
		kinds["common piece"] = func(i int) string { return syntheticWords[i%8][:3] }
		kinds["two common words"] = func(i int) string {
			return syntheticWords[i%len(syntheticWords)] + " " + syntheticWords[i*7%len(syntheticWords)]
		}
		kinds["artist"] = func(i int) string { return fmt.Sprintf("artist:%d", i%5000) }
		kinds["filters"] = func(i int) string {
			return fmt.Sprintf("%s ext:mp3 year:%d", syntheticWords[i%len(syntheticWords)], 1960+i%60)
		}
	}
	return kinds
}

// percentiles describes times in ms.
func percentiles(ms []float64) map[string]float64 {
	slices.Sort(ms)
	return map[string]float64{"p50": ms[len(ms)/2], "p99": ms[len(ms)*99/100]}
}

func (c *benchSearchCmd) measureQueries(ctx context.Context, x *files.Index, makeQuery func(int) string) (any, error) {
	var ms []float64
	found := 0
	used := usage.CPUSeconds()
	for i := range c.Queries {
		q := query.Parse(makeQuery(i), time.Now())
		begin := time.Now()
		r, err := x.Search(ctx, q, files.Options{})
		if err != nil {
			return nil, err
		}
		ms = append(ms, float64(time.Since(begin).Microseconds())/1000)
		found += r.Files
	}
	out := percentiles(ms)
	out["cpu"] = (usage.CPUSeconds() - used) * 1000 / float64(c.Queries)
	out["found"] = float64(found) / float64(c.Queries)
	return out, nil
}

// measureUpdates changes 100 files at a time, as scans of changed parts do.
func (c *benchSearchCmd) measureUpdates(ctx context.Context, x *files.Index) (any, error) {
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
	return percentiles(ms), nil
}

// plocate asks plocate for pieces of the same names: a process for each query, as
// people use it.
func (c *benchSearchCmd) plocate(ctx context.Context, dir string, kinds map[string]func(int) string) (any, error) {
	list, db := filepath.Join(dir, "paths"), filepath.Join(dir, "plocate.db")
	if err := c.writePaths(dir, list); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "plocate-build", "-p", list, db)
	if b, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("plocate-build: %w: %s", err, b)
	}
	st, err := os.Stat(db)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"db_bytes": st.Size(), "build_cpu_us": float64(cpuOf(build).Microseconds()) / float64(c.Files)}
	for _, kind := range []string{"3 letters", "5 letters", "7 letters", "two pieces", "common piece", "no such name"} {
		if kinds[kind] == nil {
			continue
		}
		for name, limit := range map[string]string{kind: "0", kind + ", first 1000": "1000"} {
			var ms []float64
			var used time.Duration
			found := countLines(0)
			for i := range c.Queries {
				args := append([]string{"-d", db, "-b", "-i"}, strings.Fields(kinds[kind](i))...)
				if limit != "0" {
					args = append(args, "-l", limit)
				}
				cmd := exec.CommandContext(ctx, "plocate", args...)
				cmd.Stdout, cmd.Stderr = &found, io.Discard
				begin := time.Now()
				_ = cmd.Run() // exit code 1 means nothing found
				ms = append(ms, float64(time.Since(begin).Microseconds())/1000)
				used += cpuOf(cmd)
			}
			t := percentiles(ms)
			t["found"], t["cpu"] = float64(found)/float64(c.Queries), float64(used.Microseconds())/1000/float64(c.Queries)
			out[name] = t
		}
	}
	return out, nil
}

func cpuOf(c *exec.Cmd) time.Duration {
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return 0
}

// writePaths writes the paths of all files below dir, sorted, and makes their folders.
func (c *benchSearchCmd) writePaths(dir, list string) error {
	var paths []string
	last := ""
	err := c.eachFile(func(f share.File) error {
		folder, _ := part.SplitPath(f.Path)
		paths = append(paths, filepath.Join(dir, "tree", f.Path))
		if folder == last {
			return nil
		}
		last = folder
		return os.MkdirAll(filepath.Join(dir, "tree", folder), 0o750)
	})
	if err != nil {
		return err
	}
	slices.Sort(paths)
	out, err := os.Create(list)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	for _, p := range paths {
		fmt.Fprintln(w, p)
	}
	return errors.Join(w.Flush(), out.Close())
}
