package crawl

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/freshet/freshet/fetch"
	"github.com/freshet/freshet/lab/jsweb"
	"github.com/freshet/freshet/render"
	"github.com/freshet/freshet/weburl"
)

// Rendering is how fast pages are rendered, and how much of them is seen.
type Rendering struct {
	Name      string  `json:"name"`
	Tabs      int     `json:"tabs"`
	Pages     int     `json:"pages"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"pages_per_second"`
	Links     int64   `json:"links"`                   // found
	CPU       float64 `json:"browser_cpu_ms_per_page"` // tells more than the clock on a busy machine
}

// RenderPool fetches and renders the pages with a render.Pool, as the robot
// does.
func RenderPool(ctx context.Context, web *jsweb.Web, pages []string, tabs int, chromium string) (*Rendering, error) {
	address, stop, err := serveWeb(web)
	if err != nil {
		return nil, err
	}
	defer stop()
	client, err := fetch.New(fetch.Config{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	pool := render.NewPool(render.Config{Client: client, Path: chromium, Tabs: tabs, NoSandbox: os.Geteuid() == 0})
	defer pool.Close()
	if err := warmBrowser(ctx, pool); err != nil {
		return nil, err
	}
	var links atomic.Int64
	usage := func() time.Duration { return pool.Stats().CPU }
	return timeRendering("pool", usage, pages, tabs, &links, func(page string) error {
		u, err := weburl.Parse(page)
		if err != nil {
			return err
		}
		res, err := client.Get(ctx, fetch.Request{URL: u})
		if err != nil {
			return err
		}
		doc, err := pool.Render(ctx, &render.Page{URL: u, Header: res.Header, Body: res.Body})
		if err == nil {
			links.Add(int64(len(doc.Links)))
		}
		return err
	})
}

// naiveWait is how long the naive loop waits after the load event, since it
// does not know when a page is done.
const naiveWait = 500 * time.Millisecond

// RenderNaive renders the pages as the usual loop does: a new tab for each,
// which fetches it, waits for the load event and some more, and is closed.
func RenderNaive(ctx context.Context, web *jsweb.Web, pages []string, tabs int, chromium string) (*Rendering, error) {
	address, stop, err := serveWeb(web)
	if err != nil {
		return nil, err
	}
	defer stop()
	path, err := render.Find(chromium)
	if err != nil {
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.Flag("host-resolver-rules", "MAP * "+address))
	opts = append(opts, chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	}))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(ctx, opts...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		return nil, err
	}
	pid := chromedp.FromContext(ctx).Browser.Process().Pid
	var links atomic.Int64
	usage := func() time.Duration { _, cpu := render.Usage(pid); return cpu }
	return timeRendering("naive", usage, pages, tabs, &links, func(page string) error {
		tab, cancel := chromedp.NewContext(ctx)
		defer cancel()
		if err := chromedp.Do(tab, chromedp.Navigate(page), chromedp.Sleep(naiveWait)); err != nil {
			return err
		}
		n, err := chromedp.Run(tab, chromedp.Evaluate[int](`document.querySelectorAll('a[href]').length`))
		links.Add(int64(n))
		return err
	})
}

// timeRendering does the pages in so many goroutines.
func timeRendering(name string, usage func() time.Duration, pages []string, tabs int, links *atomic.Int64, do func(string) error) (*Rendering, error) {
	start, before := time.Now(), usage()
	todo := make(chan string)
	errs := make(chan error, tabs)
	var wg sync.WaitGroup
	for range tabs {
		wg.Go(func() {
			var first error
			for p := range todo {
				if err := do(p); err != nil && first == nil {
					first = err
				}
			}
			errs <- first
		})
	}
	for _, p := range pages {
		todo <- p
	}
	close(todo)
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return nil, err
		}
	}
	s := time.Since(start).Seconds()
	return &Rendering{Name: name, Tabs: tabs, Pages: len(pages), Seconds: s, PerSecond: float64(len(pages)) / s, Links: links.Load(), CPU: (usage() - before).Seconds() * 1000 / float64(len(pages))}, nil
}

// warmBrowser starts the browser before the clock starts.
func warmBrowser(ctx context.Context, p *render.Pool) error {
	u, err := weburl.Parse("http://warm.test/")
	if err != nil {
		return err
	}
	_, err = p.Render(ctx, &render.Page{URL: u, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<p>")})
	return err
}
