package cli

import (
	"bufio"
	"context"
	"io"
	"strconv"

	"github.com/freshet/freshet/internal/command"

	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/webgraph/gen"
)

// computedWeb says which computed web to print the links of.
type computedWeb struct {
	Virtual uint64 `help:"Links of a computed web of so many pages, up to 2^42, as web serve --virtual shows it." placeholder:"N"`
	virtualWeb
	Seed  uint64 `help:"Seed of the computed web." default:"1"`
	Sites uint64 `help:"Number of its sites (default: one for 64 pages)." placeholder:"N"`
}

// catComputed prints links of a computed web.
func (c *webCatCmd) catComputed(ctx context.Context, g *command.Globals) error {
	switch {
	case c.Names:
		return command.Usagef("web cat --names: a computed web has no names")
	case c.Virtual < 2 || c.Virtual > maxVirtual:
		return command.Usagef("web cat --virtual %d: want 2 to 2^42 pages", c.Virtual)
	case c.Model == treeModel:
		return command.Usagef("web cat --virtual: the links of the model tree are those that web serve shows; print host-local or matched")
	}
	web, err := c.computedGraph(&testweb.Config{Pages: c.Virtual, Sites: c.computedWeb.Sites, Seed: c.Seed})
	if err != nil {
		return err
	}
	from, to, err := nodeRange(c.Nodes, int(c.Virtual))
	if err != nil {
		return err
	}
	list := web.Successors
	if c.To {
		m, ok := web.(*gen.Matched)
		if !ok {
			return command.Usagef("web cat --predecessors: the links to a page of a %s web are known only when all links are; store it with web gen, or take --model matched", c.Model)
		}
		list = m.Predecessors
	}
	return writeLinks(ctx, g.Stdout, uint64(from), uint64(to), list, c.To)
}

// maxVirtual is the greatest number of pages of a computed web.
const maxVirtual = 1 << 42

// writeLinks writes the lists of pages from to to-1 as lines of two page numbers;
// turned, what is listed comes first.
func writeLinks(ctx context.Context, w io.Writer, from, to uint64, list func(u uint64, buf []uint64) []uint64, turned bool) error {
	out := bufio.NewWriter(w)
	var links []uint64
	var line []byte
	for u := from; u < to; u++ {
		if u&(1<<10-1) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		links = list(u, links[:0])
		for _, v := range links {
			a, b := u, v
			if turned {
				a, b = v, u
			}
			line = strconv.AppendUint(line[:0], a, 10)
			line = append(line, '\t')
			line = strconv.AppendUint(line, b, 10)
			line = append(line, '\n')
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}
