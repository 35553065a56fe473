// Command colly crawls the closed site of freshet lab bench crawl with colly, as
// its documentation shows it (-seen=false), or with a set of known URLs of its
// own in front of it (-seen), and prints how many pages came.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
)

func main() {
	seen := flag.Bool("seen", false, "keep the known URLs here instead of in colly")
	n := flag.Int("n", 16, "connections")
	flag.Parse()
	opts := []colly.CollectorOption{colly.Async(true)}
	if *seen {
		opts = append(opts, colly.AllowURLRevisit())
	}
	c := colly.NewCollector(opts...)
	c.WithTransport(&http.Transport{MaxIdleConnsPerHost: *n})
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: *n}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var known sync.Map
	var pages atomic.Int64
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		u := e.Request.AbsoluteURL(e.Attr("href"))
		if *seen {
			if _, old := known.LoadOrStore(u, true); old {
				return
			}
		}
		_ = e.Request.Visit(u)
	})
	c.OnResponse(func(*colly.Response) { pages.Add(1) })
	for _, u := range flag.Args() {
		known.Store(u, true)
		_ = c.Visit(u)
	}
	c.Wait()
	fmt.Println(pages.Load())
}
