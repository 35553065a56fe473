package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/format"
	"github.com/freshet/freshet/lab/webgraph/gen"
	"github.com/freshet/freshet/progress"
)

// graphAnswer is the JSON of commands that make a stored graph.
type graphAnswer struct {
	Dir    string  `json:"dir"`
	Nodes  int64   `json:"nodes"`
	Links  int64   `json:"links"`
	Sites  int64   `json:"sites"`
	Degree float64 `json:"mean_out_degree"`
	Bytes  int64   `json:"bytes"`
	Made   any     `json:"made"`
	// Measured is what came out of a generation.
	Measured *gen.Measured `json:"measured,omitempty"`
}

// tellGraph prints what has been made; m may be nil.
func tellGraph(g *globals, dir string, m *gen.Measured) error {
	graph, err := webgraph.OpenUnchecked(dir)
	if err != nil {
		return err
	}
	meta := graph.Meta()
	a := graphAnswer{Dir: dir, Nodes: meta.Nodes, Links: meta.Links, Sites: meta.Sites, Degree: float64(meta.Links) / float64(meta.Nodes), Made: meta.Made, Measured: m}
	for _, f := range meta.Files {
		a.Bytes += f.Bytes
	}
	if err := graph.Close(); err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(a)
	}
	fmt.Fprintf(g.stdout, "%s: %d pages, %d links (%.2f a page), %d sites, %d bytes\n", a.Dir, a.Nodes, a.Links, a.Degree, a.Sites, a.Bytes)
	if m != nil {
		printMeasured(g, m)
	}
	return nil
}

// graphProgress returns a function that shows the stages of the making of a
// graph, and one that ends the last.
func (g *globals) graphProgress() (func(what string, done, total int64), func()) {
	if g.Quiet {
		return func(string, int64, int64) {}, func() {}
	}
	var line *progress.Line
	var stage string
	var began time.Time
	end := func() {
		if line != nil {
			line.Done(progress.Clock(time.Since(began)) + "  " + stage)
		}
	}
	show := func(what string, done, total int64) {
		if what != stage {
			end()
			line, stage, began = progress.New(g.stderr), what, time.Now()
		}
		line.Update(done, total, what)
	}
	return show, end
}

// graphError marks errors of a graph's making that are the user's.
func graphError(err error) error {
	var line *format.LineError
	if errors.Is(err, webgraph.ErrExists) || errors.As(err, &line) {
		return usageError{err}
	}
	return err
}

// webImportCmd makes a stored graph of one that others made.
type webImportCmd struct {
	Edges  string `arg:"" help:"Links: two page numbers a line, also gzipped; - is standard input."`
	Out    string `help:"Folder to make." short:"o" required:"" placeholder:"DIR"`
	Simple bool   `help:"Leave out links of a page to itself and all but one to the same page; sort the links of each page."`
	Nodes  int64  `help:"Number of pages, if more than the links tell." placeholder:"N"`
}

// Run imports.
func (c *webImportCmd) Run(ctx context.Context, g *globals) error {
	in, size, err := openInput(g, c.Edges)
	if err != nil {
		return err
	}
	defer in.Close()
	if c.Nodes < 0 || c.Nodes > webgraph.MaxNodes {
		return usagef("--nodes %d: 0 to %d", c.Nodes, uint64(webgraph.MaxNodes))
	}
	show, end := g.graphProgress()
	defer end()
	counted := &counter{r: in}
	text := bufio.NewReaderSize(counted, 1<<20)
	opt := webgraph.BuilderOptions{Simple: c.Simple, MinNodes: c.Nodes}
	opt.Nodes, opt.Links = c.Nodes, guessLinks(text, size)
	opt.Progress = show
	opt.Made = map[string]any{"import": filepath.Base(c.Edges), "simple": c.Simple}
	b, err := webgraph.NewBuilder(c.Out, opt)
	if err != nil {
		return graphError(err)
	}
	defer b.Abort()
	links, err := unzipped(text)
	if err != nil {
		return usagef("%s: %w", c.Edges, err)
	}
	n := 0
	err = format.ReadEdges(links, func(u, v uint32) error {
		if n++; n&(1<<16-1) == 0 {
			show("links read", counted.n, size)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return b.Add(u, v)
	})
	if err != nil {
		return graphError(fmt.Errorf("%s: %w", c.Edges, err))
	}
	if n == 0 && c.Nodes == 0 {
		return usagef("%s: no link in it: want lines of two page numbers", c.Edges)
	}
	if err := b.Finish(ctx); err != nil {
		return graphError(err)
	}
	end()
	return tellGraph(g, c.Out, nil)
}

// openInput opens a file, or standard input for -, and tells its size if it has
// one.
func openInput(g *globals, path string) (io.ReadCloser, int64, error) {
	if path == "-" {
		return io.NopCloser(g.stdin), 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, usageError{err}
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = usagef("%s is a folder", path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}

// guessLinks tells from the first lines about how many there will be.
func guessLinks(r *bufio.Reader, size int64) int64 {
	head, _ := r.Peek(1 << 16) // an error is told when the links are read
	lines := int64(bytes.Count(head, []byte{'\n'}))
	if lines == 0 || gzipped(head) {
		return 0
	}
	return size * lines / int64(len(head))
}

func gzipped(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

// unzipped returns what is in r if it is gzipped, else r.
func unzipped(r *bufio.Reader) (io.Reader, error) {
	if head, _ := r.Peek(2); !gzipped(head) {
		return r, nil
	}
	return gzip.NewReader(r)
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// webCatCmd prints the links of a stored graph.
type webCatCmd struct {
	Dir   string `arg:"" help:"Stored graph."`
	Nodes string `help:"Only the links of pages A to B, B not included; either may be left out." placeholder:"A:B"`
}

// Run prints.
func (c *webCatCmd) Run(g *globals) error {
	graph, err := openGraph(c.Dir)
	if err != nil {
		return err
	}
	defer graph.Close()
	from, to, err := nodeRange(c.Nodes, graph.Nodes())
	if err != nil {
		return err
	}
	return format.WriteEdges(g.stdout, graph, from, to)
}

// nodeRange parses A:B.
func nodeRange(s string, nodes int) (from, to int, err error) {
	if s == "" {
		return 0, nodes, nil
	}
	a, b, ok := strings.Cut(s, ":")
	to = nodes
	if a != "" {
		from, err = strconv.Atoi(a)
	}
	if b != "" && err == nil {
		to, err = strconv.Atoi(b)
	}
	if !ok || err != nil {
		return 0, 0, usagef("--nodes %s: want two page numbers, as in 0:100", s)
	}
	if from < 0 || to > nodes || from > to {
		return 0, 0, usagef("--nodes %s: the graph has pages 0 to %d", s, nodes-1)
	}
	return from, to, nil
}
