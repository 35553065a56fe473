package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/freshet/freshet/internal/command"

	"github.com/klauspost/compress/gzip"

	"github.com/freshet/freshet/lab/webgraph"
	"github.com/freshet/freshet/lab/webgraph/bv"
	"github.com/freshet/freshet/lab/webgraph/format"
)

// webImportCmd makes a stored graph of one that others made.
type webImportCmd struct {
	From   string `arg:"" help:"Graph to read; - is standard input (tsv, ascii, urls)."`
	Out    string `help:"Folder to make." short:"o" required:"" placeholder:"DIR"`
	Format string `help:"auto (by the name), tsv (two page numbers a line), ascii (WebGraph's .graph-txt), bv (.graph and .properties of LAW and Common Crawl), urls (links as export links writes them), records (.nodes and .links of fixed records). Text may be gzipped." enum:"auto,tsv,ascii,bv,urls,records" default:"auto"`
	Simple bool   `help:"Leave out links of a page to itself and all but one to the same page; sort the links of each page."`
	Nodes  int64  `help:"Number of pages, if more than the links tell (tsv)." placeholder:"N"`
}

// Run imports.
func (c *webImportCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.Nodes < 0 || c.Nodes > webgraph.MaxNodes {
		return command.Usagef("--nodes %d: 0 to %d", c.Nodes, uint64(webgraph.MaxNodes))
	}
	show, end := graphProgress(g)
	defer end()
	kind := c.Format
	if kind == "auto" {
		kind = formatOf(c.From)
	}
	opt := webgraph.Options{Progress: show, Made: map[string]any{"import": filepath.Base(c.From), "format": kind, "simple": c.Simple}}
	read := map[string]func(context.Context, *command.Globals, webgraph.Options) error{
		"tsv": c.importEdges, "ascii": c.importASCII, "bv": c.importBV, "urls": c.importURLs, "records": c.importRecords,
	}
	if err := read[kind](ctx, g, opt); err != nil {
		return graphError(err)
	}
	end()
	return tellGraph(g, c.Out, nil)
}

// formatOf returns the format of a graph by its name and the files next to it.
func formatOf(path string) string {
	bare := strings.TrimSuffix(path, ".gz")
	for suffix, kind := range map[string]string{
		".graph-txt": "ascii", ".graph": "bv", ".properties": "bv", ".jsonl": "urls", ".csv": "urls", ".nodes": "records",
	} {
		if strings.HasSuffix(bare, suffix) {
			return kind
		}
	}
	if _, err := os.Stat(path); err != nil {
		if _, err := os.Stat(path + ".properties"); err == nil {
			return "bv"
		}
	}
	return "tsv"
}

// graphError marks errors of a graph's making that are the user's: what is wrong
// in the input, and a folder that exists.
func graphError(err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted: nothing is left of the graph (%w)", err)
	}
	var line *format.LineError
	var bits *bv.FormatError
	if errors.Is(err, webgraph.ErrExists) || errors.As(err, &line) || errors.As(err, &bits) {
		return command.UsageError{Err: err}
	}
	return err
}

// input is a text that is being read.
type input struct {
	*bufio.Reader
	io.Closer
	counted *counter
	size    int64 // of the file, 0 if not known
	links   int64 // about, told from the first lines; 0 if not known
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

// openInput opens the text to import, unzipped if it is zipped.
func (c *webImportCmd) openInput(g *command.Globals) (*input, error) {
	in := &input{Closer: io.NopCloser(g.Stdin), counted: &counter{r: g.Stdin}}
	if c.From != "-" {
		f, err := os.Open(c.From)
		if err != nil {
			return nil, command.UsageError{Err: err}
		}
		st, err := f.Stat()
		if err == nil && st.IsDir() {
			err = command.Usagef("%s is a folder", c.From)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		in.Closer, in.counted.r, in.size = f, f, st.Size()
	}
	in.Reader = bufio.NewReaderSize(in.counted, 1<<20)
	head, _ := in.Peek(1 << 16) // an error is told when the links are read
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in.Reader)
		if err != nil {
			return nil, errors.Join(command.Usagef("%s: %w", c.From, err), in.Close())
		}
		in.Reader = bufio.NewReaderSize(z, 1<<20)
		return in, nil
	}
	if lines := int64(bytes.Count(head, []byte{'\n'})); lines > 0 {
		in.links = in.size * lines / int64(len(head))
	}
	return in, nil
}

// importEdges imports lines of two page numbers.
func (c *webImportCmd) importEdges(ctx context.Context, g *command.Globals, opt webgraph.Options) error {
	in, err := c.openInput(g)
	if err != nil {
		return err
	}
	defer in.Close()
	opt.Nodes, opt.Links = c.Nodes, in.links
	b, err := webgraph.NewBuilder(c.Out, webgraph.BuilderOptions{Options: opt, Simple: c.Simple, MinNodes: c.Nodes})
	if err != nil {
		return err
	}
	defer b.Abort()
	n := 0
	err = format.ReadEdges(in, func(u, v uint32) error {
		if n++; n&(1<<16-1) == 0 {
			opt.Progress("links read", in.counted.n, in.size)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return b.Add(u, v)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	if n == 0 && c.Nodes == 0 {
		return command.Usagef("%s: no link in it: want lines of two page numbers", c.From)
	}
	return b.Finish(ctx)
}

// importASCII imports WebGraph's ASCII format.
func (c *webImportCmd) importASCII(ctx context.Context, g *command.Globals, opt webgraph.Options) error {
	in, err := c.openInput(g)
	if err != nil {
		return err
	}
	defer in.Close()
	nodes, lists, err := format.ReadASCII(in)
	if err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	opt.Nodes = nodes
	return c.storeLists(ctx, opt, lists)
}

// importBV imports the files of the WebGraph framework.
func (c *webImportCmd) importBV(ctx context.Context, _ *command.Globals, opt webgraph.Options) (err error) {
	base := strings.TrimSuffix(strings.TrimSuffix(c.From, ".graph"), ".properties")
	f, err := bv.Open(base)
	if err != nil {
		return command.UsageError{Err: err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	opt.Nodes, opt.Links = f.Properties.Nodes, f.Properties.Links
	return c.storeLists(ctx, opt, f.Lists())
}

// importRecords imports files of fixed records.
func (c *webImportCmd) importRecords(ctx context.Context, _ *command.Globals, opt webgraph.Options) error {
	base := strings.TrimSuffix(c.From, ".nodes")
	nodes, err := os.Open(base + ".nodes")
	if err != nil {
		return command.UsageError{Err: err}
	}
	defer nodes.Close()
	links, err := os.Open(base + ".links")
	if err != nil {
		return command.UsageError{Err: err}
	}
	defer links.Close()
	var size [2]int64
	for i, f := range []*os.File{nodes, links} {
		st, err := f.Stat()
		if err != nil {
			return err
		}
		size[i] = st.Size()
	}
	n, lists, err := format.ReadFixed(nodes, size[0], links, size[1])
	if err != nil {
		return command.Usagef("%s.nodes: %w", base, err)
	}
	opt.Nodes, opt.Links = n, size[1]/16
	return c.storeLists(ctx, opt, lists)
}

// storeLists writes lists of links, page by page.
func (c *webImportCmd) storeLists(ctx context.Context, opt webgraph.Options, lists iter.Seq2[[]uint32, error]) error {
	w, err := webgraph.Create(c.Out, opt)
	if err != nil {
		return err
	}
	defer w.Abort()
	for list, err := range lists {
		if err != nil {
			return command.Usagef("%s: %w", c.From, err)
		}
		u := w.Nodes()
		if u&(1<<14-1) == 0 {
			opt.Progress("links read", u, opt.Nodes)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if c.Simple {
			slices.Sort(list)
			list = slices.DeleteFunc(slices.Compact(list), func(v uint32) bool { return int64(v) == u })
		}
		if err := w.Append(list); err != nil {
			return err
		}
	}
	if w.Nodes() == 0 {
		return command.Usagef("%s: a graph of no pages", c.From)
	}
	return w.Finish(ctx)
}

// importURLs imports links between URLs; hosts become sites.
func (c *webImportCmd) importURLs(ctx context.Context, g *command.Globals, opt webgraph.Options) error {
	in, err := c.openInput(g)
	if err != nil {
		return err
	}
	defer in.Close()
	set, n := format.NewURLs(), 0
	err = format.ReadLinks(in, func(from, to string) error {
		if n++; n&(1<<14-1) == 0 {
			opt.Progress("links read", in.counted.n, in.size)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return set.Add(from, to)
	})
	if err != nil {
		return command.Usagef("%s: %w", c.From, err)
	}
	if n == 0 {
		return command.Usagef("%s: no link in it", c.From)
	}
	pages := set.Number()
	opt.Nodes, opt.Links = int64(len(pages.Names)), int64(len(pages.Links))
	b, err := webgraph.NewBuilder(c.Out, webgraph.BuilderOptions{Options: opt, Simple: c.Simple, MinNodes: opt.Nodes})
	if err != nil {
		return err
	}
	defer b.Abort()
	for _, l := range pages.Links {
		if err := b.Add(l[0], l[1]); err != nil {
			return err
		}
	}
	b.SetSites(pages.Sites)
	b.SetNames(pages.Names)
	return b.Finish(ctx)
}
