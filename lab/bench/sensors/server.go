package sensors

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/freshet/freshet/signal"
	"github.com/freshet/freshet/signal/sensor"
)

// ServerConfig describes a server for the bench, in a process of its own.
type ServerConfig struct {
	Kind   string // copy, files, template
	Listen string
	Root   string // of files
	// To, if not empty, has the sensor in front that sends its events there; Mute
	// has one that sends nothing, to see what it costs.
	To    string
	Spool string
	Mute  bool
	Log   *slog.Logger
}

// Kinds are the servers: one that writes the same bytes, one of files, one that
// executes a template of forty rows.
func Kinds() []string { return []string{"copy", "files", "template"} }

func sensorHandler(c ServerConfig) (http.Handler, error) {
	switch c.Kind {
	case "copy":
		page := []byte("<!DOCTYPE html><title>Copy</title>" + strings.Repeat("<p>some text that is always the same\n", 330))
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }), nil
	case "files":
		return http.FileServer(http.Dir(c.Root)), nil
	case "template":
		return listHandler(), nil
	}
	return nil, fmt.Errorf("no server %q; there are %s", c.Kind, strings.Join(Kinds(), ", "))
}

// listHandler is a page of forty rows, about 12 KB.
func listHandler() http.Handler {
	type row struct {
		Name, Text string
		Price      float64
		Tags       []string
	}
	var rows []row
	for i := range 40 {
		rows = append(rows, row{fmt.Sprintf("Article %d", i), strings.Repeat("A sentence of the description. ", 5), float64(i) * 1.25, []string{"new", "blue & green", "for you"}})
	}
	t := template.Must(template.New("list").Parse(`<!DOCTYPE html><title>{{.Path}}</title><h1>{{len .Rows}} articles</h1>
{{range .Rows}}<article><h2>{{.Name}}</h2><p>{{.Text}}</p><b>{{printf "%.2f" .Price}}</b>{{range .Tags}} <a href="/tag/{{.}}">{{.}}</a>{{end}}</article>
{{end}}`))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = t.Execute(w, map[string]any{"Path": r.URL.Path, "Rows": rows})
	})
}

// Serve runs the server until the context ends or nobody holds the other end of
// hold any more. told is called with its address.
func Serve(ctx context.Context, c ServerConfig, hold io.Reader, told func(address string)) error {
	h, err := sensorHandler(c)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp4", c.Listen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if hold != nil {
		go func() { // ends with the process at the latest
			_, _ = io.Copy(io.Discard, hold)
			cancel()
		}()
	}
	sent := make(chan error, 1)
	switch {
	case c.Mute:
		h = sensor.New("http://"+l.Addr().String(), 0, func(signal.Event) {}).Wrap(h)
		sent <- nil
	case c.To != "":
		spool, err := sensor.OpenSpool(c.Spool, 1<<28)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		h = sensor.New("http://"+l.Addr().String(), 0, spool.Add).Wrap(h)
		go func() {
			err := (&sensor.Sender{Spool: spool, To: c.To, Name: "www", Secret: secret, Every: 200 * time.Millisecond, Log: c.Log}).Run(ctx)
			sent <- errors.Join(err, spool.Close())
		}()
	default:
		sent <- nil
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	told(l.Addr().String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-sent
}
