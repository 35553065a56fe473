package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/bv"
	"github.com/freshet/freshet/lab/webgraph/format"
)

// webExportCmd writes a stored graph for other programs.
type webExportCmd struct {
	Dir    string `arg:"" help:"Stored graph."`
	Out    string `help:"Name of the files to write, without extension, or of the folder (coded)." short:"o" required:"" placeholder:"BASE"`
	Format string `help:"tsv (two page numbers a line), ascii (WebGraph's .graph-txt), bv (WebGraph's .graph, .offsets and .properties), records (.nodes and .links of fixed records) or coded (a folder, a sixth of the size, which all commands open as any stored graph)." enum:"tsv,ascii,bv,records,coded" default:"bv"`
	Chain  int    `help:"Greatest number of lists that one is copied from in turn (bv): more makes smaller files that are slower to look into." default:"3" placeholder:"N"`
}

// exportAnswer is the JSON of web export.
type exportAnswer struct {
	Files []string `json:"files"`
	Bytes int64    `json:"bytes"`
	// BitsPerLink is the size of the lists of links (bv, coded), without their offsets.
	BitsPerLink float64 `json:"bits_per_link,omitempty"`
}

// Run exports.
func (c *webExportCmd) Run(ctx context.Context, g *command.Globals) error {
	graph, err := openGraph(g, ctx, c.Dir)
	if err != nil {
		return err
	}
	defer graph.Close()
	var a exportAnswer
	c.Out = baseName(c.Out, c.Format)
	if c.Format == "coded" {
		a.Files = []string{c.Out}
		a.BitsPerLink, err = c.exportCoded(ctx, g, graph)
	} else {
		a.Files, a.BitsPerLink, err = c.exportFiles(ctx, g, graph)
	}
	if err != nil {
		return fmt.Errorf("web export: %w", err)
	}
	for _, f := range a.Files {
		size, err := sizeOf(f)
		if err != nil {
			return err
		}
		a.Bytes += size
	}
	if g.JSON {
		return g.PrintJSON(a)
	}
	fmt.Fprintf(g.Stdout, "%s: %d bytes", strings.Join(a.Files, ", "), a.Bytes)
	if a.BitsPerLink > 0 {
		fmt.Fprintf(g.Stdout, ", %.2f bits a link", a.BitsPerLink)
	}
	_, err = fmt.Fprintln(g.Stdout)
	return err
}

// baseName is the name of the files to write without the extension that they get: who
// asks for links.tsv gets that and not links.tsv.tsv.
func baseName(name, format string) string {
	extensions := map[string][]string{
		"tsv": {".tsv"}, "ascii": {".graph-txt"}, "records": {".nodes", ".links"}, "bv": {".graph", ".offsets", ".properties"},
	}
	for _, e := range extensions[format] {
		if base, ok := strings.CutSuffix(name, e); ok && filepath.Base(name) != e {
			return base
		}
	}
	return name
}

// exportFiles writes the files of a format and returns their names and, of coded lists,
// the bits a link.
func (c *webExportCmd) exportFiles(ctx context.Context, g *command.Globals, graph *webgraph.Graph) (names []string, bitsPerLink float64, err error) {
	view := graph.View()
	nodes, links := int64(graph.Nodes()), graph.Links()
	digits := int64(len(strconv.FormatInt(nodes-1, 10)))
	show, end := graphProgress(g)
	defer end()
	var need int64 // about so many bytes
	var write func(w []io.Writer) error
	switch c.Format {
	case "tsv":
		names, need = []string{c.Out + ".tsv"}, links*(2*digits+2)
		write = func(w []io.Writer) error { return format.WriteEdges(w[0], view, 0, int(nodes)) }
	case "ascii":
		names, need = []string{c.Out + ".graph-txt"}, nodes+links*(digits+1)
		write = func(w []io.Writer) error { return format.WriteASCII(w[0], view) }
	case "records":
		names, need = []string{c.Out + ".nodes", c.Out + ".links"}, 32*nodes+16*links
		write = func(w []io.Writer) error { return format.WriteFixed(w[0], w[1], view) }
	case "bv":
		p := bv.Default()
		if p.MaxRef = c.Chain; c.Chain < 0 || c.Chain > 1<<20 {
			return nil, 0, command.Usagef("--chain %d: 0 to %d", c.Chain, 1<<20)
		}
		if !graph.Meta().Sorted {
			return nil, 0, command.Usagef("%s: the links of its pages do not ascend, each once, as this format needs; import it with --simple", c.Dir)
		}
		names, need = []string{c.Out + ".graph", c.Out + ".offsets", c.Out + ".properties"}, 2*nodes+10*links/8
		write = func(w []io.Writer) error {
			bits, err := bv.Write(w[0], w[1], w[2], p, view, func(done int64) error { return ctx.Err() })
			bitsPerLink = float64(bits) / float64(max(links, 1))
			return err
		}
	}
	if err := webgraph.Room(c.Out, uint64(need)); err != nil {
		return nil, 0, err
	}
	var written int64
	told := func(n int) error {
		written += int64(n)
		show("written", min(written, need), need)
		return ctx.Err()
	}
	err = writeWhole(names, told, write)
	return names, bitsPerLink, err
}

// exportCoded writes a folder of coded lists.
func (c *webExportCmd) exportCoded(ctx context.Context, g *command.Globals, graph *webgraph.Graph) (float64, error) {
	show, end := graphProgress(g)
	defer end()
	switch err := webgraph.Code(ctx, graph, c.Out, webgraph.Options{Progress: show}); {
	case errors.Is(err, webgraph.ErrUnsorted), errors.Is(err, webgraph.ErrExists):
		return 0, command.UsageError{Err: err}
	case err != nil:
		return 0, err
	}
	st, err := os.Stat(filepath.Join(c.Out, "out.bits"))
	if err != nil {
		return 0, err
	}
	return float64(8*st.Size()) / float64(max(graph.Links(), 1)), nil
}

// sizeOf returns the size of a file, or of the files of a folder.
func sizeOf(path string) (size int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// writeWhole writes files under other names and gives them theirs when all are
// whole: until then there is no file of the last name, so that what is there never
// looks whole when it is not. told is told of every piece that is written, and may
// end the work.
func writeWhole(names []string, told func(n int) error, write func([]io.Writer) error) (err error) {
	files := make([]*os.File, 0, len(names))
	defer func() {
		for _, f := range files {
			_ = f.Close() // again, unless something failed
			if err != nil {
				_ = os.Remove(f.Name())
			}
		}
	}()
	var to []io.Writer
	for _, name := range names {
		f, err := os.Create(name + ".partial")
		if err != nil {
			return err
		}
		files, to = append(files, f), append(to, watched{f, told})
	}
	if err := write(to); err != nil {
		return err
	}
	for _, f := range files {
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	if err := os.Remove(names[len(names)-1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i, f := range files {
		if err := os.Rename(f.Name(), names[i]); err != nil {
			return err
		}
	}
	return nil
}

// watched tells what is written.
type watched struct {
	w    io.Writer
	told func(n int) error
}

func (w watched) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	return n, errors.Join(err, w.told(n))
}

// webCatCmd prints the links of a stored graph.
type webCatCmd struct {
	Dir   string `arg:"" optional:"" help:"Stored graph, or BASE of the coded one in BASE.graph, .offsets and .properties; else --virtual."`
	Nodes string `help:"Only the links of pages A to B, B not included; either may be left out." placeholder:"A:B"`
	Names bool   `help:"Print the names of pages (URLs) instead of their numbers, where the graph has them."`
	To    bool   `name:"predecessors" help:"The links to these pages instead of those from them."`
	computedWeb
}

// Run prints.
func (c *webCatCmd) Run(ctx context.Context, g *command.Globals) error {
	switch {
	case c.Virtual > 0 && c.Dir != "":
		return command.Usagef("web cat: a stored graph or --virtual, not both")
	case c.Virtual > 0:
		return c.catComputed(ctx, g)
	case c.Dir == "":
		return command.Usagef("web cat: which graph? give its folder or --virtual N")
	}
	if _, err := os.Stat(c.Dir); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(c.Dir + ".offsets"); err == nil && !c.Names {
			if c.To {
				return command.Usagef("web cat --predecessors: %s.graph has the links from pages only; import it first (web import), or code the transpose", c.Dir)
			}
			return c.catCoded(g)
		}
	}
	graph, err := openGraph(g, ctx, c.Dir)
	if err != nil {
		return err
	}
	defer graph.Close()
	from, to, err := nodeRange(c.Nodes, graph.Nodes())
	if err != nil {
		return err
	}
	if c.Names && !graph.Named() {
		return command.Usagef("web cat --names: %s has no names; a graph imported from URLs has", c.Dir)
	}
	if !c.Names && !c.To {
		return format.WriteEdges(watched{g.Stdout, func(int) error { return ctx.Err() }}, graph.View(), from, to)
	}
	return c.printLinks(ctx, g.Stdout, graph, from, to)
}

// printLinks writes the links from or to pages by their numbers or names.
func (c *webCatCmd) printLinks(ctx context.Context, w io.Writer, graph *webgraph.Graph, from, to int) error {
	out := bufio.NewWriter(w)
	view := graph.View()
	list, show := view.Out, func(u uint32) string { return strconv.FormatUint(uint64(u), 10) }
	if c.To {
		list = view.In
	}
	if c.Names {
		show = graph.Name
	}
	for u := from; u < to; u++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		page := show(uint32(u))
		for _, v := range list(uint32(u)) {
			a, b := page, show(v)
			if c.To {
				a, b = b, a
			}
			if _, err := fmt.Fprintf(out, "%s\t%s\n", a, b); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// catCoded prints links of a coded graph, decoding only what is asked for.
func (c *webCatCmd) catCoded(g *command.Globals) (err error) {
	x, err := bv.OpenIndex(c.Dir)
	if err != nil {
		return command.UsageError{Err: err}
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	from, to, err := nodeRange(c.Nodes, int(x.Nodes()))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(g.Stdout)
	r := x.NewReader()
	for u := from; u < to; u++ {
		list, err := r.Out(uint32(u))
		if err != nil {
			return fmt.Errorf("%s.graph: %w", c.Dir, err)
		}
		for _, v := range list {
			if _, err := fmt.Fprintf(out, "%d\t%d\n", u, v); err != nil {
				return err
			}
		}
	}
	return out.Flush()
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
		return 0, 0, command.Usagef("--nodes %s: want two page numbers, as in 0:100", s)
	}
	if from < 0 || to > nodes || from > to {
		return 0, 0, command.Usagef("--nodes %s: the graph has pages 0 to %d", s, nodes-1)
	}
	return from, to, nil
}
