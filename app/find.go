package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/index"
	"github.com/freshet/freshet/index/files"
	"github.com/freshet/freshet/index/query"
)

// Finder answers searches from the text index of pages and the index of files.
type Finder struct {
	Engine      index.Engine
	Ranking     index.Ranking
	Files       *files.Index // nil without shares
	HideOffline bool
	Play        bool // results may be played
}

// Find implements console.Finder. Pages and files are ranked each by their own
// engine; a search for everything merges both lists by scores relative to the
// best of each, down to the hundredth.
func (f *Finder) Find(ctx context.Context, r console.Request) (*console.Results, error) {
	now := time.Now()
	q, err := query.ParseBounded(r.Query, now)
	if err != nil {
		return nil, err
	}
	kind := cmp.Or(r.Kind, query.Value(q, "kind"))
	switch {
	case f.Files == nil || kind == "web":
		return f.pages(ctx, q, r, now)
	case kind != "":
		return f.files(ctx, q, r, now)
	}
	both := r
	both.Offset, both.Limit = 0, min(r.Offset+r.Limit, index.MaxLimit)
	found, err := f.files(ctx, q, both, now)
	if err != nil {
		return nil, err
	}
	if found.Total == 0 {
		return f.pages(ctx, q, r, now)
	}
	pages, err := f.pages(ctx, q, both, now)
	if err != nil {
		return nil, err
	}
	return merge(pages, found, r), nil
}

// merge interleaves two lists.
func merge(pages, found *console.Results, r console.Request) *console.Results {
	out := &console.Results{Total: pages.Total + found.Total, Estimated: pages.Estimated || found.Estimated, Facets: pages.Facets, Elapsed: pages.Elapsed + found.Elapsed}
	if out.Facets == nil {
		out.Facets = found.Facets
	} else {
		for k, v := range found.Facets {
			out.Facets[k] = append(out.Facets[k], v...)
		}
	}
	for _, list := range []*console.Results{pages, found} {
		for i := range list.Results {
			if best := list.Results[0].Score; i > 0 && best > 0 {
				list.Results[i].Score /= best
			}
		}
		if len(list.Results) > 0 {
			list.Results[0].Score = 1
		}
		out.Results = append(out.Results, list.Results...)
	}
	slices.SortStableFunc(out.Results, func(a, b console.Result) int {
		if r.ByDate {
			return b.Date.Compare(a.Date)
		}
		return cmp.Compare(b.Score, a.Score)
	})
	from := min(r.Offset, len(out.Results))
	out.Results = out.Results[from:min(from+r.Limit, len(out.Results))]
	return out
}

func (f *Finder) pages(ctx context.Context, q query.Node, r console.Request, now time.Time) (*console.Results, error) {
	res, err := f.Engine.Search(ctx, index.Request{
		Query: q, Kind: r.Kind, Limit: r.Limit, Offset: r.Offset, Now: now, Ranking: f.Ranking, Facets: r.Facets, ByDate: r.ByDate,
	})
	if err != nil {
		return nil, err
	}
	out := &console.Results{Total: res.Total, Estimated: res.Estimated, Facets: res.Facets, Elapsed: res.Elapsed}
	for i := range res.Hits {
		h := &res.Hits[i]
		one := console.Result{
			Title: h.Title, URL: h.ID, Kind: h.Kind, Type: h.Type, Host: h.Host, Lang: h.Lang, Snippet: h.Snippet,
			Score: h.Score, Date: h.Date, Size: h.Size, Online: true, Cached: true,
		}
		for _, c := range h.Copies {
			one.Copies = append(one.Copies, console.Copy{URL: c, Host: hostOf(c), Online: true})
		}
		out.Results = append(out.Results, one)
	}
	return out, nil
}

func (f *Finder) files(ctx context.Context, q query.Node, r console.Request, now time.Time) (*console.Results, error) {
	kind := r.Kind
	if kind == "file" {
		kind = ""
	}
	res, err := f.Files.Search(ctx, q, files.Options{Limit: max(1, r.Limit), Offset: r.Offset, HideOffline: f.HideOffline, Newest: r.ByDate, Facets: r.Facets, Kind: kind, Now: now})
	if err != nil {
		return nil, err
	}
	out := &console.Results{Total: res.Total, Elapsed: res.Elapsed}
	for name, counts := range res.Facets {
		if out.Facets == nil {
			out.Facets = map[string][]index.Count{}
		}
		for _, c := range counts {
			out.Facets[name] = append(out.Facets[name], index.Count{Value: c.Value, Count: c.Count})
		}
	}
	for i := range res.Hits {
		if len(out.Results) < r.Limit && len(res.Hits[i].Copies) > 0 {
			out.Results = append(out.Results, fileResult(&res.Hits[i], f.Play))
		}
	}
	return out, nil
}
