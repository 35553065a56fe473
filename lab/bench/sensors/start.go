package sensors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// process is a program that runs beside.
type process struct {
	cmd  *exec.Cmd
	name string
	once sync.Once
}

// launchProcess starts a program; what it says goes to a file.
func (c *chain) launchProcess(name, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(filepath.Join(c.Work, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the program has its own
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "FRESHET_SENSOR_SECRET="+secret)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &process{cmd: cmd, name: name}, nil
}

// terminateProcess asks a program to end, and waits.
func (p *process) terminateProcess() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
	})
}

// killProcess ends it at once.
func (p *process) killProcess() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
}

// startChain launches the server, the sensor and serve.
func (c *chain) startChain(ctx context.Context) (stop func(), err error) {
	var running []*process
	stop = func() {
		for i := range running {
			running[len(running)-1-i].terminateProcess()
		}
		if c.serve != nil {
			c.serve.terminateProcess()
		}
	}
	console, err := freeAddress()
	if err != nil {
		return stop, err
	}
	c.console = "http://" + console
	server, err := freeAddress()
	if err != nil {
		return stop, err
	}
	c.site = "http://" + server
	run := func(name, program string, args ...string) error {
		p, err := c.launchProcess(name, program, args...)
		if err == nil {
			running = append(running, p)
		}
		return err
	}
	sensor := func(kind string, args ...string) error {
		all := []string{"sensor", kind, "--to", c.console + "/api/signals", "--name", "www", "--base", c.site, "--spool", filepath.Join(c.Work, "spool"), "--every", "200ms"}
		return run("sensor", c.Self, append(all, args...)...)
	}
	if c.Sensor == "middleware" {
		err = run("server", c.Self, "lab", "bench", "sensor", "--server", "files", "--listen", server, "--root", c.root, "--to", c.console+"/api/signals", "--spool", filepath.Join(c.Work, "spool"))
	} else {
		err = c.startNginx(server, run)
	}
	if err == nil {
		err = c.awaitAnswer(ctx, c.site+"/0.html")
	}
	if err != nil {
		return stop, err
	}
	switch c.Sensor {
	case "proxy":
		front, ferr := freeAddress()
		if ferr != nil {
			return stop, ferr
		}
		back := c.site
		c.site = "http://" + front
		err = sensor("proxy", "--backend", back, "--listen", front)
	case "log":
		err = sensor("log", filepath.Join(c.Work, "access.log"))
	case "watch":
		err = sensor("watch", c.root)
	}
	if err == nil {
		err = c.awaitAnswer(ctx, c.site+"/0.html")
	}
	if err == nil {
		err = c.beginServe(ctx)
	}
	return stop, err
}

// beginServe starts serve and waits for its console. Pages are visited again for
// signals alone: half-change would come after days.
func (c *chain) beginServe(ctx context.Context) error {
	settings := filepath.Join(c.Work, "serve.yaml")
	text := fmt.Sprintf("data: %s\nsources:\n  - url: %s/0.html\n    allow_private: true\nsignals:\n  secrets: {www: %q}\nconsole:\n  listen: %s\ncrawl:\n  min_revisit: 24h\n", filepath.Join(c.Work, "data"), c.site, secret, c.console[len("http://"):])
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	if c.serve, err = c.launchProcess("serve", c.Self, "serve", "--config", settings); err != nil {
		return err
	}
	return c.awaitAnswer(ctx, c.console+"/healthz")
}

func (c *chain) awaitAnswer(ctx context.Context, address string) error {
	return c.pollUntil(ctx, address+" answers", func() bool {
		res, err := http.Get(address)
		if err != nil {
			return false
		}
		return errors.Join(res.Body.Close()) == nil && res.StatusCode == http.StatusOK
	})
}

// ErrNginx is the error of a machine without nginx.
var ErrNginx = errors.New("nginx is not installed")

// startNginx starts one that serves the documents and writes the log that a sensor
// follows.
func (c *chain) startNginx(address string, run func(name, program string, args ...string) error) error {
	program, err := exec.LookPath("nginx")
	if err != nil {
		return ErrNginx
	}
	var b bytes.Buffer
	if os.Geteuid() == 0 {
		b.WriteString("user root;\n") // the worker must read the folder
	}
	fmt.Fprintf(&b, `daemon off; pid %[1]s/pid; error_log %[1]s/error.log; worker_processes 1; events {}
http {
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  types { text/html html; }
  log_format freshet escape=json '{"method":"$request_method","uri":"$request_uri","status":$status,"etag":"$sent_http_etag","last_modified":"$sent_http_last_modified"}';
  access_log %[1]s/access.log freshet; sendfile on; keepalive_requests 100000;
  server { listen %[2]s; root %[3]s; }
}`, c.Work, address, c.root)
	conf := filepath.Join(c.Work, "nginx.conf")
	if err := os.WriteFile(conf, b.Bytes(), 0o600); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(c.Work, 0o755), os.Chmod(c.root, 0o755)); err != nil {
		return err
	}
	return run("nginx", program, "-p", c.Work, "-e", filepath.Join(c.Work, "error.log"), "-c", conf)
}

// wait is how long a server that should end is waited for.
const wait = 10 * time.Second
