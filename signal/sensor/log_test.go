package sensor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/testport"
	"github.com/freshet/freshet/signal"
)

func TestParseLine(t *testing.T) {
	t.Parallel()
	const at = `127.0.0.1 - - [21/Nov/2026:07:00:00 +0000] `
	want := Line{Method: "GET", URI: "/ą?q=1", Status: 200, ETag: `"6e-1"`, LastModified: "Sat, 21 Nov 2026 07:00:00 GMT"}
	for name, line := range map[string]string{
		"combined":      at + `"GET /ą?q=1 HTTP/1.1" 200 512 "-" "agent/1 (x)" "\"6e-1\"" "Sat, 21 Nov 2026 07:00:00 GMT"`,
		"nginx escapes": at + `"GET /ą?q=1 HTTP/1.1" 200 512 "-" "a \x22b\x22" "\x226e-1\x22" "Sat, 21 Nov 2026 07:00:00 GMT"`,
		"JSON":          `{"method":"GET","uri":"/ą?q=1","status":200,"etag":"\"6e-1\"","last_modified":"Sat, 21 Nov 2026 07:00:00 GMT"}`,
		"JSON, quoted":  `{"method":"GET","uri":"/ą?q=1","status":"200","etag":"\"6e-1\"","last_modified":"Sat, 21 Nov 2026 07:00:00 GMT"}`,
		"Caddy":         `{"level":"info","request":{"method":"GET","uri":"/ą?q=1"},"status":200,"resp_headers":{"Etag":["\"6e-1\""],"Last-Modified":["Sat, 21 Nov 2026 07:00:00 GMT"]}}`,
	} {
		if got, err := ParseLine([]byte(line + "\n")); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, bad := range []string{"", "{", `{"uri":"/"}`, at + `"GET / HTTP/1.1" 200 1 "-" "agent"`, at + `"GET" 200 1 "-" "-" "-" "-"`, `"unclosed`, `{"uri":"x","status":200}`} {
		if l, err := ParseLine([]byte(bad)); !errors.Is(err, ErrLine) {
			t.Errorf("%q: %+v, %v", bad, l, err)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`x "GET /a HTTP/1.1" 200 5 "-" "a" "e" "-"`))
	f.Add([]byte(`{"uri":"/a","method":"GET","status":200}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := ParseLine(b); err == nil && !strings.HasPrefix(l.URI, "/") {
			t.Errorf("%q gives %+v", b, l)
		}
	})
}

// The log is followed through rotation, truncation and restarts; nothing is
// read twice, nothing passed over.
func TestLogRotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, state := filepath.Join(dir, "access.log"), filepath.Join(dir, "state", "log.json")
	var got collector
	s := New("http://h.example", 0, got.add)
	version := 0
	line := func(uri string) string {
		version++
		return fmt.Sprintf("{\"method\":\"GET\",\"uri\":%q,\"status\":200,\"etag\":\"v%d\"}\n", uri, version)
	}
	put := func(text string) { appendFile(t, path, text) }
	events := 0
	expect := func(what string, n int) {
		t.Helper()
		events += n
		have := 0
		eventually(t, what, func() bool {
			got.mu.Lock()
			defer got.mu.Unlock()
			have = len(got.events)
			return have >= events
		})
		if have > events {
			t.Fatalf("%s: %d events, want %d", what, have, events)
		}
	}
	run := func(f func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		l := &Log{Path: path, Sensor: s, State: state, Poll: 2 * time.Millisecond}
		go func() { done <- l.Run(ctx) }()
		eventually(t, "the end of the log is known", func() bool { _, err := os.Stat(state); return err == nil })
		f()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	put(line("/old")) // before the first start: not looked at
	run(func() {
		put(line("/a") + line("/b"))
		put(line("/a"))
		expect("a changed", 1)
		half := line("/b")
		put(half[:20])
		time.Sleep(20 * time.Millisecond)
		put(half[20:] + "nonsense\n")
		expect("a line in two pieces", 1)
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		put(line("/a"))
		expect("after rotation", 1)
	})
	put(line("/b")) // while nobody looked
	run(func() {
		expect("written while away", 1)
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		put(line("/a"))
		expect("after copytruncate", 1)
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put(line("/a") + line("/b") + line("/a")) // rotated while nobody looked
	run(func() { expect("rotated while away", 3) })
}

func appendFile(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A real nginx writes the log; a file of its root changes.
func TestLogOfNginx(t *testing.T) {
	t.Parallel()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("nginx is not installed")
		}
		t.Skip("nginx is not installed")
	}
	dir := t.TempDir()
	n, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", n)
	root := filepath.Join(dir, "root")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(root, "a.html"), []byte("one"), 0o644)); err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log %[1]s/error.log; worker_processes 1; events {}
http {
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  log_format freshet escape=json '{"method":"$request_method","uri":"$request_uri","status":$status,"etag":"$sent_http_etag","last_modified":"$sent_http_last_modified"}';
  access_log %[1]s/access.log freshet;
  server { listen %[2]s; root %[1]s/root; }
}`, dir, address)
	if os.Geteuid() == 0 {
		conf = "user root;\n" + conf // the worker must read the test's folder
	}
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nginx, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", filepath.Join(dir, "nginx.conf"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	get := func() error {
		res, err := http.Get("http://" + address + "/a.html")
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return errors.Join(err, res.Body.Close())
	}
	eventually(t, "nginx answers", func() bool { return get() == nil })
	var got collector
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	state := filepath.Join(dir, "state.json")
	go func() {
		done <- (&Log{Path: filepath.Join(dir, "access.log"), Sensor: New("http://"+address, 0, got.add), State: state, Poll: 5 * time.Millisecond}).Run(ctx)
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the end of the log is known", func() bool { _, err := os.Stat(state); return err == nil })
	for range 3 {
		if err := get(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(root, "a.html"), []byte("two, longer"), 0o644), get()); err != nil {
		t.Fatal(err)
	}
	var e []signal.Event
	eventually(t, "an event", func() bool { e = got.take(); return len(e) > 0 })
	if len(e) != 1 || e[0].URL != "http://"+address+"/a.html" || e[0].Event != "updated" {
		t.Errorf("events %+v", e)
	}
}
