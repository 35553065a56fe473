package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/freshet/freshet/crawl"
	"github.com/freshet/freshet/store"
)

// CrawlOptions are what a single crawl may be told beside the configuration.
type CrawlOptions struct {
	MaxPages int64               // fetched pages after which it ends; 0 is no limit
	NoIndex  bool                // pages are not indexed
	OnPage   func(*crawl.Result) // called for each fetched page, from many goroutines; nil is not
	// Progress, if not nil, is called several times a second while pages are fetched.
	Progress func(robot crawl.Status, st store.Stats)
	// Abort, when closed, gives up the pages under way and the indexing of what is
	// left; the next crawl goes on with both. nil is never.
	Abort <-chan struct{}
}

// CrawlReport is what came of a single crawl.
type CrawlReport struct {
	Robot   crawl.Status
	Store   store.Stats
	Indexed int64 // documents in the index
	Elapsed time.Duration
	Browser BrowserUse
}

// BrowserUse is what rendering took.
type BrowserUse struct {
	Memory   int64 // bytes, at the end
	CPU      time.Duration
	Scripts  int64 // scripts fetched to decide whether a page is rendered
	Examined int64 // scripts looked into for that
}

// progressInterval is how often CrawlOptions.Progress is called.
const progressInterval = 200 * time.Millisecond

// handoverWait is how long a single crawl waits for its indexer rather than letting it
// read pages back from the archive.
const handoverWait = 250 * time.Millisecond

// Crawl visits every page of the sources that are web sites once and indexes what it
// found. When ctx ends it finishes the pages under way; the next crawl goes on with
// the others.
func (n *Node) Crawl(ctx context.Context, o CrawlOptions) (*CrawlReport, error) {
	report, err := n.crawl(ctx, o)
	if err := errors.Join(err, n.close()); err != nil {
		return nil, err
	}
	return report, nil
}

func (n *Node) crawl(ctx context.Context, o CrawlOptions) (*CrawlReport, error) {
	n.handover.Wait = handoverWait
	if err := n.openParts(ctx, !o.NoIndex); err != nil {
		return nil, err
	}
	n.warnOfRendering()
	plan, err := newOncePlanner(n.config)
	if err != nil {
		return nil, err
	}
	if err := n.queueRound(ctx); err != nil {
		return nil, err
	}
	if err := n.join(ctx, n.config, nil); err != nil {
		return nil, err
	}
	rc := n.robotConfig(n.withSourcePolicies(plan))
	rc.Limit = n.member.AllowedAgents
	rc.Once, rc.MaxPages, rc.OnPage = true, o.MaxPages, o.OnPage
	n.startRobot(rc)
	// ctx ends at the first interrupt; the work goes on until it is drained.
	work, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	n.endRun = func(drain bool) {
		n.robot.Drain()
		if !drain {
			abort()
		}
	}
	defer context.AfterFunc(ctx, n.robot.Drain)()
	defer n.keepMembership(ctx)()
	start := time.Now()
	if err := n.runCrawl(work, abort, o); err != nil {
		return nil, err
	}
	return n.crawlReport(time.Since(start))
}

// warnOfRendering says why pages that are to be rendered will not be.
func (n *Node) warnOfRendering() {
	if err := renderOff(&n.config.Render); n.config.Render.Mode != "off" && err != nil {
		n.log.Error("render.mode: "+n.config.Render.Mode, "err", err)
	}
	if n.render == nil {
		return
	}
	if err := n.render.Ready(); err != nil {
		n.log.Error("pages are taken as they are fetched, and wait for a browser", "err", err)
	}
}

// keepMembership keeps the process in the registry of its cluster until the returned
// function is called. A process that may not be there stops working.
func (n *Node) keepMembership(ctx context.Context) (leave func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // draining takes its time
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := n.member.Run(ctx); err != nil {
			n.log.Error("registry", "err", err)
			n.robot.Drain()
		}
	}()
	return func() { cancel(); <-ended }
}

// runCrawl runs robot and indexer until the robot is done, then indexes what is left.
func (n *Node) runCrawl(work context.Context, abort func(), o CrawlOptions) error {
	services, stop := context.WithCancel(work)
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	over, end := context.WithCancel(work)
	defer end()
	running.Go(func() {
		select {
		case <-o.Abort:
			abort()
		case <-over.Done():
		}
	})
	var aside sync.WaitGroup
	aside.Go(func() { _ = n.parts.sendBodies(services) }) // the last files are sent when the parts are closed
	if n.indexer != nil {
		aside.Go(func() { _ = n.indexer.Run(services) }) // its errors come again from Finish
	}
	if o.Progress != nil {
		aside.Go(func() {
			reportProgress(services, func() {
				if st, err := n.parts.Store.Stats(services); err == nil {
					o.Progress(n.robot.Status(), st)
				}
			})
		})
	}
	err := n.robot.Run(work)
	stop()
	aside.Wait()
	if err == nil && n.indexer != nil && work.Err() == nil {
		if err = n.indexer.Finish(work); work.Err() != nil && errors.Is(err, work.Err()) {
			err = nil // aborted: the next crawl goes on with it
		}
	}
	if err == nil && n.robot.Finished() && work.Err() == nil {
		err = n.endRound(work)
	}
	return err
}

// reportProgress calls report every progressInterval until ctx ends.
func reportProgress(ctx context.Context, report func()) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			report()
		}
	}
}

func (n *Node) crawlReport(elapsed time.Duration) (*CrawlReport, error) {
	ctx := context.Background() // an interrupted crawl has a report, too
	st, err := n.parts.Store.Stats(ctx)
	if err != nil {
		return nil, err
	}
	report := &CrawlReport{Robot: n.robot.Status(), Store: st, Elapsed: elapsed}
	if n.render != nil {
		use := n.render.Pool.Stats()
		report.Browser.Memory, report.Browser.CPU = use.Memory, use.CPU
		report.Browser.Scripts, report.Browser.Examined = n.render.Scripts()
	}
	if n.parts.Engine != nil {
		ix, err := n.parts.Engine.Stats(ctx)
		if err != nil {
			return nil, err
		}
		report.Indexed = int64(ix.Documents)
	}
	return report, nil
}
