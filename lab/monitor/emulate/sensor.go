package emulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/freshet/freshet/lab/monitor"
	"github.com/freshet/freshet/lab/testweb"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/truth"
	"github.com/freshet/freshet/signal"
	"github.com/freshet/freshet/signal/sensor"
)

// front is the sensor in a reverse proxy before the web, and the robot that
// gets what it tells of.
type front struct {
	*run
	server *http.Server
	addr   string
	ended  chan struct{}

	ctx    context.Context // of the watching; before and after it there are no alerts
	mu     sync.Mutex
	alerts sync.WaitGroup
}

func (r *run) newSensor() (*front, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &front{run: r, addr: l.Addr().String(), ended: make(chan struct{})}
	host := r.server.HostName(0)
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // visitors leave at the end
	tr := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	proxy := &httputil.ReverseProxy{Transport: tr, ErrorLog: quiet, Rewrite: func(q *httputil.ProxyRequest) {
		q.SetURL(&url.URL{Scheme: "http", Host: r.server.HTTPAddr()})
		q.Out.Host = host
	}}
	s := sensor.New("http://"+host, r.Field.Pages()+1, f.deliverAlert)
	s.TellErrors() // they are changes in the model
	f.server = &http.Server{Handler: s.Wrap(proxy), ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
	go func() {
		defer close(f.ended)
		_ = f.server.Serve(l) // until close
		tr.CloseIdleConnections()
	}()
	return f, nil
}

func (f *front) closeFront() {
	_ = f.server.Close()
	<-f.ended
	f.mu.Lock()
	f.ctx = nil
	f.mu.Unlock()
	f.alerts.Wait()
}

// primeSensor lets the sensor see every page as it is at the start.
func (f *front) primeSensor(ctx context.Context) error {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", f.addr)
	}}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr}
	for _, u := range f.urls {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return err
		}
		req.Header.Set("User-Agent", truth.Visitor)
		resp, err := c.Do(req)
		if err != nil {
			return fmt.Errorf("before the start: %w", err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
	}
	return nil
}

// playVisitors plays the field's visitors, and fetches the pages that the sensor reports.
func (f *front) playVisitors(ctx context.Context) error {
	f.mu.Lock()
	f.ctx = ctx
	f.mu.Unlock()
	done, err := f.run.server.Visit(ctx, testweb.Visitors{Requests: f.Field.Requests(), To: f.addr})
	f.visits, f.visitsLate = done.Visits, float64(done.Late)/float64(f.Unit)
	<-ctx.Done() // changes go on when visitors have stopped
	return err
}

// deliverAlert takes an event of the sensor: an alert is under way for a time, then the
// page is got.
func (f *front) deliverAlert(e signal.Event) {
	path := e.URL[strings.LastIndexByte(e.URL, '/'):]
	page, ok := name.ParseDocument(path)
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx := f.ctx
	if ctx == nil || ctx.Err() != nil || !ok || page >= uint64(len(f.urls)) {
		return
	}
	delay := f.pace.drawUniform(monitor.ProbeTime)
	f.alerts.Go(func() {
		t := time.NewTimer(time.Duration(delay * float64(f.Unit)))
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
			f.visitOnce(ctx, f.clients[0], uint32(page))
		}
	})
}
