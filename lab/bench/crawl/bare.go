package crawl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/net/html"
)

// Bare is the robot to be measured against: a loop of net/http and the
// Tokenizer with a map of known URLs, that stores nothing. It fetches what can
// be reached from the seeds with n connections and returns how many pages.
func Bare(ctx context.Context, seeds []string, n int) (int, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, MaxIdleConns: 0}}
	var mu sync.Mutex
	more := sync.NewCond(&mu)
	seen := map[string]bool{}
	var queue []string
	busy, pages := 0, 0
	var failed error
	add := func(u string) {
		if !seen[u] {
			seen[u] = true
			queue = append(queue, u)
			more.Signal()
		}
	}
	for _, s := range seeds {
		add(s)
	}
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for {
				for len(queue) == 0 && busy > 0 && failed == nil {
					more.Wait()
				}
				if len(queue) == 0 || failed != nil {
					more.Broadcast()
					return
				}
				u := queue[0]
				queue = queue[1:]
				busy++
				mu.Unlock()
				links, err := bareLinks(ctx, client, u)
				mu.Lock()
				busy--
				pages++
				if err != nil && failed == nil {
					failed = fmt.Errorf("%s: %w", u, err)
				}
				for _, l := range links {
					add(l)
				}
				if busy == 0 {
					more.Broadcast()
				}
			}
		})
	}
	workers.Wait()
	return pages, failed
}

func bareLinks(ctx context.Context, client *http.Client, page string) ([]string, error) {
	base, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = io.Copy(io.Discard, res.Body); res.Body.Close() }()
	var out []string
	z := html.NewTokenizer(res.Body)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out, nil
		case html.StartTagToken:
			name, more := z.TagName()
			if string(name) != "a" {
				continue
			}
			for more {
				var key, val []byte
				key, val, more = z.TagAttr()
				if string(key) != "href" {
					continue
				}
				if u, err := base.Parse(string(val)); err == nil {
					u.Fragment = ""
					out = append(out, u.String())
				}
			}
		}
	}
}
