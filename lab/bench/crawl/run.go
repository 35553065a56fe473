package crawl

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Result is what one robot did and cost.
type Result struct {
	Robot       string  `json:"robot"`
	Pages       int64   `json:"pages"`      // distinct pages fetched
	Duplicates  int64   `json:"duplicates"` // requests beyond the first of a page
	Seconds     float64 `json:"seconds"`
	PagesSecond float64 `json:"pages_per_second"`
	CPU         float64 `json:"cpu_us_per_page"` // user and system time of the robot's process
	Memory      int64   `json:"peak_memory"`     // bytes
	Error       string  `json:"error,omitempty"`
}

// Track is a site that is served while robots run.
type Track struct {
	Site *Site

	server *http.Server
	done   chan struct{}
}

// Open serves the site on a free port of all loopback addresses. If certFile is not
// empty, it serves HTTPS (HTTP/2 and HTTP/1.1) and writes the certificate that robots
// have to trust to that file.
func Open(s *Site, certFile string) (*Track, error) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	server := &http.Server{Handler: onlyLoopback(s), ReadHeaderTimeout: 10 * time.Second}
	serve := server.Serve
	if certFile != "" {
		cert, err := newCertificate(s.Hosts, certFile)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("bench: certificate of the site: %w", err)
		}
		s.HTTPS = true
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	t := &Track{Site: s, server: server, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		_ = serve(l)
	}()
	return t, nil
}

// onlyLoopback refuses everybody else: the site listens on all addresses, since
// its hosts are many of 127.0.0.0/8.
func onlyLoopback(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			http.Error(w, "loopback only", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Close stops serving.
func (t *Track) Close() error {
	err := t.server.Close()
	<-t.done
	return err
}

// Address returns where /stats and /reset are.
func (t *Track) Address() string {
	return fmt.Sprintf("%s://127.0.0.1:%d", t.Site.scheme(), t.Site.Port)
}

// Run starts a robot as a process, waits for its end and tells what it cost.
// The site must be served by another process than this one if its CPU time is
// not to disturb; address is where it is.
func Run(ctx context.Context, robot, address string, argv []string, stderr io.Writer) Result {
	res := Result{Robot: robot}
	fail := func(err error) Result {
		res.Error = err.Error()
		return res
	}
	if _, err := postTo(ctx, address+"/reset"); err != nil {
		return fail(err)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var tail strings.Builder
	cmd.Stderr = io.MultiWriter(stderr, &limited{w: &tail, n: 2000})
	cmd.WaitDelay = 5 * time.Second
	start := time.Now()
	err := cmd.Run()
	res.Seconds = time.Since(start).Seconds()
	if err != nil {
		return fail(fmt.Errorf("%s: %w: %s", robot, err, strings.TrimSpace(tail.String())))
	}
	b, err := postTo(ctx, address+"/stats")
	if err != nil {
		return fail(err)
	}
	var st Served
	if err := json.Unmarshal(b, &st); err != nil {
		return fail(err)
	}
	res.Pages, res.Duplicates = st.Distinct, st.Requests-st.Distinct
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if st.Distinct > 0 {
		res.CPU = float64(cpu.Microseconds()) / float64(st.Distinct)
		res.PagesSecond = float64(st.Distinct) / res.Seconds
	}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		res.Memory = ru.Maxrss * 1024
	}
	return res
}

func postTo(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// limited keeps the first n bytes.
type limited struct {
	w io.Writer
	n int
}

func (l *limited) Write(p []byte) (int, error) {
	if k := min(l.n, len(p)); k > 0 {
		l.n -= k
		if _, err := l.w.Write(p[:k]); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Look finds a program by name in dirs and the path; "" if there is none.
func Look(name string, dirs ...string) string {
	for _, d := range dirs {
		if st, err := os.Stat(d + "/" + name); err == nil && st.Mode()&0o111 != 0 && !st.IsDir() {
			return d + "/" + name
		}
	}
	p, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return p
}
