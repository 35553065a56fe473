package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/console"
	"github.com/freshet/freshet/weburl"
)

// addressFile tells other commands where the console listens.
const addressFile = "serve.addr"

// Address returns the URL of the console that serves a data directory, or an error
// that says that none does.
func Address(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no freshet serve runs on %s (no %s there): start one, or give --address", dir, addressFile)
	}
	if errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%w: the data directory belongs to another user; give --address, and --token to change something", err)
	}
	return string(b), err
}

// Serve keeps the sources fresh and answers on the console until ctx ends or an
// operator ends it; then it drains. ready is called with the console's address once
// the console answers.
func (n *Node) Serve(ctx context.Context, ready func(address string)) error {
	if err := n.prepareServe(ctx); err != nil {
		return errors.Join(err, n.close())
	}
	return n.runServices(ctx, ready)
}

// prepareServe opens what a server needs and composes its services.
func (n *Node) prepareServe(ctx context.Context) error {
	if err := n.openParts(ctx, true); err != nil {
		return err
	}
	if err := n.clicks.Load(ctx, n.parts.Store, time.Now()); err != nil {
		return err
	}
	var err error
	if n.websub, err = n.newWebSub(n.config); err != nil {
		return err
	}
	n.newThrottle(n.config)
	if err := n.join(ctx, n.config, n.followOtherNodes); err != nil {
		return err
	}
	plan, err := n.newPlanner(n.config.Crawl)
	if err != nil {
		return err
	}
	rc := n.robotConfig(plan)
	rc.Limit = n.agentLimit
	if n.parts.Cluster.IsShared() { // sources may be added at other nodes
		rc.Sources = n.readSources
	}
	n.startRobot(rc)
	n.estimator.Evidence = n.robot
	if err := n.readSources(ctx); err != nil {
		return fmt.Errorf("sources added while running: %w", err)
	}
	if _, err := n.parts.Store.Add(ctx, n.seeds); err != nil {
		return err
	}
	return n.addShares(ctx)
}

// addShares opens the shares and gives them to their robot.
func (n *Node) addShares(ctx context.Context) (err error) {
	wanted := slices.ContainsFunc(n.config.Sources, func(s config.Source) bool { return s.Share() })
	if n.shares, err = OpenShares(ctx, n.options.Dir, wanted, n.log); err != nil || n.shares == nil {
		return err
	}
	if n.files, err = newShareRobot(ctx, n.config, n.shares, n.parts.PDF, n.log); err != nil {
		return err
	}
	if _, err := n.addConfiguredShares(ctx); err != nil {
		return err
	}
	for _, s := range n.config.Sources {
		if s.HasLogin() && !s.Open && !n.config.Console.Private {
			n.log.Info("searching needs a login, because a source has one; open: true on the source lifts this", "source", weburl.Redact(s.URL))
		}
	}
	return nil
}

// runServices runs robot, indexer, console and all other services until one fails, ctx
// ends or an operator ends them.
func (n *Node) runServices(ctx context.Context, ready func(address string)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	n.endRun = func(drain bool) { n.endServices(drain, stop) }
	l, err := net.Listen("tcp", n.config.Console.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("console: %w (console.listen chooses another address)", err), n.close())
	}
	address := l.Addr().String()
	n.address.Store(&address)
	if err := n.listen(ctx, l); err != nil {
		return errors.Join(err, l.Close(), n.close())
	}
	path := filepath.Join(n.parts.Dir, addressFile)
	if err := writePrivate(path, n.URL()); err != nil {
		return errors.Join(err, l.Close(), n.close())
	}
	defer os.Remove(path)
	defer os.Remove(filepath.Join(n.parts.Dir, ownerFile))
	var parts sync.WaitGroup
	var failing sync.Mutex
	var failed []error
	start := func(name string, f func(context.Context) error) {
		parts.Go(func() {
			err := f(ctx)
			switch {
			case err == nil:
			case ctx.Err() == nil:
				failing.Lock()
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
				failing.Unlock()
				stop()
			case !errors.Is(err, ctx.Err()):
				n.log.Error(name+": at the end", "err", err)
			}
		})
	}
	start("robot", n.robot.Run)
	start("indexer", n.indexer.Run)
	start("bodies", n.parts.sendBodies)
	start("registry", n.member.Run)
	start("throttle", n.watchLag)
	start("freshness", n.estimator.Run)
	start("sources", n.sweepSources)
	if n.scheduler != nil {
		start("schedule", func(ctx context.Context) error { return n.scheduler.Run(ctx, n.robot.Wake) })
	}
	start("clicks", func(ctx context.Context) error { return n.clicks.Run(ctx, n.parts.Cluster, n.log) })
	if n.indexNow != nil {
		start("indexnow", n.indexNow.Run)
	}
	if n.websub != nil {
		start("websub", n.websub.Run)
	}
	if n.files != nil {
		start("share robot", n.files.Run)
	}
	start("console", func(context.Context) error { return n.serveConsole(l) })
	if n.challenges != nil && n.config.Console.ACME.HTTP != "" {
		start("acme", n.serveChallenges)
	}
	if ready != nil {
		ready(address)
	}
	<-ctx.Done()
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := n.server.Shutdown(down); err != nil { // event streams do not end by themselves
		_ = n.server.Close()
	}
	parts.Wait()
	return errors.Join(append(failed, n.close())...)
}

// endServices ends the services of Serve. Draining ends when the pages under way are
// committed; without it they are given up.
func (n *Node) endServices(drain bool, stop func()) {
	if !drain {
		stop()
		return
	}
	n.robot.Drain()
	go func() { // ends with the process: Serve waits for the robot
		for len(n.robot.Status().Agents) > 0 {
			time.Sleep(50 * time.Millisecond)
		}
		stop()
	}()
}

// listen makes the console's server.
func (n *Node) listen(ctx context.Context, l net.Listener) error {
	c := n.config.Console
	owner, err := newOwnerToken(n.parts.Dir)
	if err != nil {
		return fmt.Errorf("operator's token: %w", err)
	}
	finder := &Finder{Engine: n.parts.Engine, Ranking: RankingOf(n.config), HideOffline: n.config.Share.Offline == "hide", Play: c.Media}
	if n.shares != nil {
		finder.Files = n.shares.Index
	}
	extra := map[string]http.Handler{"GET /metrics": promhttp.HandlerFor(n.metrics(), promhttp.HandlerOpts{})}
	maps.Copy(extra, n.receivers())
	var media http.HandlerFunc
	if c.Media && n.shares != nil {
		media = n.play
	}
	s, err := console.New(console.Config{
		Title: c.Title, Listen: l.Addr().String(), Password: c.Password, Tokens: c.Tokens, OwnerToken: owner, Header: c.Header, Operators: c.Operators, Proxies: c.Proxies, Hosts: append(slices.Clone(c.Hosts), c.ACME.Hosts...),
		Addresses: []string{c.PublicURL, n.config.Signals.Callback}, PublicURL: c.PublicURL,
		Private: n.config.SearchNeedsLogin(), Rate: c.Rate, Media: media, Clicked: n.Clicked, Lab: n.options.Lab,
	}, finder, n, n, n.log, extra)
	if err != nil {
		return err
	}
	n.console = s
	if n.proxies, err = console.ParseNetworks(c.Proxies); err != nil {
		return err
	}
	n.server = consoleServer(s.Handler(), consoleTimeouts)
	if n.server.TLSConfig, n.challenges, err = consoleTLS(c, n.parts.Dir, n.log); err != nil {
		return err
	}
	n.secure = n.server.TLSConfig != nil
	n.server.BaseContext = func(net.Listener) context.Context { return ctx }
	n.server.ErrorLog = slog.NewLogLogger(n.log.Handler(), slog.LevelWarn)
	return nil
}
