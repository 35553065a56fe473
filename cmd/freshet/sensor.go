package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/signal/sensor"
)

type sensorCmd struct {
	Proxy sensorProxyCmd `cmd:"" help:"Reverse proxy that tells of pages that are not what they were."`
	Log   sensorLogCmd   `cmd:"" help:"Follow an access log that has ETag or Last-Modified."`
	Watch sensorWatchCmd `cmd:"" help:"Watch the files of a document root."`
}

// sensorFlags are where events go.
type sensorFlags struct {
	To     string        `help:"Where events go: the address of /api/signals of a serve." required:""`
	Name   string        `help:"Name of this sensor in signals.secrets of the serve." required:""`
	Secret string        `help:"Its secret." env:"FRESHET_SENSOR_SECRET" required:""`
	Base   string        `help:"Address of the site, such as https://www.example.org." required:""`
	Spool  string        `help:"Folder for events that wait (default: below the data directory)." placeholder:"DIR"`
	Limit  int64         `help:"Most bytes of the spool." default:"268435456"`
	Every  time.Duration `help:"How long events are gathered before they are sent." default:"1s"`
}

// spoolFolder is where events wait.
func (f *sensorFlags) spoolFolder(g *command.Globals) (string, error) {
	if f.Spool != "" {
		return f.Spool, nil
	}
	if f.Name != filepath.Base(f.Name) || f.Name == "." || f.Name == ".." {
		return "", command.Usagef("sensor: --name %q cannot be a folder's name: give --spool", f.Name)
	}
	data, err := g.DataDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(data, "sensor", f.Name), nil
}

// runSensor sends events while a source of them works; either's end ends both.
func (f *sensorFlags) runSensor(ctx context.Context, g *command.Globals, source func(context.Context, *sensor.Spool, *slog.Logger) error) error {
	for name, address := range map[string]string{"to": f.To, "base": f.Base} {
		if _, err := siteOf(name, address); err != nil {
			return err
		}
	}
	dir, err := f.spoolFolder(g)
	if err != nil {
		return err
	}
	spool, err := sensor.OpenSpool(dir, f.Limit)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(g.Stderr, nil))
	sendCtx, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	sent := make(chan error, 1)
	go func() {
		sent <- (&sensor.Sender{Spool: spool, To: f.To, Name: f.Name, Secret: f.Secret, Every: f.Every, Log: log}).Run(sendCtx)
	}()
	err = source(ctx, spool, log)
	stopSending() // only now: what the last requests added goes to disk
	return errors.Join(err, <-sent, spool.Close())
}

func siteOf(name, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, command.Usagef("sensor: --%s %q is no http or https address", name, address)
	}
	return u, nil
}

type sensorProxyCmd struct {
	sensorFlags
	Listen  string `help:"Address to listen at." default:"127.0.0.1:8088"`
	Backend string `help:"Address of the server behind." required:""`
	Pages   int    `help:"Most pages that are remembered." default:"100000"`
}

// Run proxies until interrupted.
func (c *sensorProxyCmd) Run(ctx context.Context, g *command.Globals) error {
	backend, err := siteOf("backend", c.Backend)
	if err != nil {
		return err
	}
	return c.runSensor(ctx, g, func(ctx context.Context, spool *sensor.Spool, log *slog.Logger) error {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 256
		transport.DisableCompression = true // bodies pass as they are
		proxy := &httputil.ReverseProxy{
			Transport: transport,
			ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelWarn),
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(backend)
				r.Out.Host = r.In.Host
				r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
				r.SetXForwarded()
			},
		}
		server := &http.Server{
			Addr: c.Listen, Handler: sensor.New(c.Base, c.Pages, spool.Add).Wrap(proxy),
			ReadHeaderTimeout: 30 * time.Second, ErrorLog: proxy.ErrorLog,
		}
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done()
			end, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer stop()
			return server.Shutdown(end)
		})
		return group.Wait()
	})
}

type sensorLogCmd struct {
	sensorFlags
	File  string `arg:"" help:"The access log."`
	Pages int    `help:"Most pages that are remembered." default:"100000"`
}

// Help tells of the forms.
func (sensorLogCmd) Help() string {
	return "Lines are JSON (method, uri, status, etag, last_modified; or Caddy's), or the combined format with \"%{ETag}o\" \"%{Last-Modified}o\" behind it. docs/freshness.md has the settings of nginx, Apache and Caddy."
}

// Run follows until interrupted.
func (c *sensorLogCmd) Run(ctx context.Context, g *command.Globals) error {
	dir, err := c.spoolFolder(g)
	if err != nil {
		return err
	}
	return c.runSensor(ctx, g, func(ctx context.Context, spool *sensor.Spool, log *slog.Logger) error {
		return (&sensor.Log{Path: c.File, Sensor: sensor.New(c.Base, c.Pages, spool.Add), State: filepath.Join(dir, "log.json"), Log: log}).Run(ctx)
	})
}

type sensorWatchCmd struct {
	sensorFlags
	Root   string        `arg:"" help:"The document root."`
	Index  string        `help:"File that a folder's address serves." default:"index.html"`
	Rescan time.Duration `help:"How often all files are looked at." default:"10m"`
}

// Run watches until interrupted.
func (c *sensorWatchCmd) Run(ctx context.Context, g *command.Globals) error {
	if info, err := os.Stat(c.Root); err != nil {
		return command.UsageError{Err: err}
	} else if !info.IsDir() {
		return command.Usagef("sensor watch: %s is no folder", c.Root)
	}
	root := filepath.Clean(c.Root)
	return c.runSensor(ctx, g, func(ctx context.Context, spool *sensor.Spool, log *slog.Logger) error {
		return (&sensor.Watch{Root: root, Base: c.Base, Index: c.Index, Rescan: c.Rescan, To: spool.Add, Log: log}).Run(ctx)
	})
}
