package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/index/feed"
	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Cached implements console.Cacher from the archive.
func (n *Node) Cached(ctx context.Context, address string) (*console.Copied, error) {
	u, err := weburl.Parse(address)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	p, err := n.parts.Store.Page(ctx, u)
	if errors.Is(err, store.ErrNotFound) || (err == nil && (p.Body.IsZero() || !p.Held() || p.NoIndex || p.NoCopy || !p.Expires.IsZero() && time.Now().After(p.Expires))) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	if err := n.parts.Archive.Flush(); err != nil {
		return nil, err
	}
	x, err := n.parts.Body(p.Body)
	if errors.Is(err, feed.ErrElsewhere) {
		return nil, fmt.Errorf("the copy is in the archive of another node: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return &console.Copied{URL: p.URL, ContentType: x.Header.Get("Content-Type"), Body: x.Body, Fetched: x.Time}, nil
}

func hostOf(address string) string {
	u, err := weburl.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host()
}
