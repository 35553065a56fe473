package deploy

import (
	"bytes"
	"context"
	"encoding/json"
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
)

// lacking skips a test for want of a program; in CI none may be wanting.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// builder runs buildah with an image store of its own.
type builder struct {
	t   *testing.T
	dir string
}

func (b *builder) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "buildah", append([]string{"--root", filepath.Join(b.dir, "root"), "--runroot", filepath.Join(b.dir, "run"), "--storage-driver", "vfs"}, args...)...)
}

func (b *builder) run(args ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := b.command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("buildah %v: %v: %s", args, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// The image of the Dockerfile is built and run. What its first stage makes is
// made here, since it needs an image from a registry: the last stage, which is
// all that is shipped, is that of the file.
func TestImage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("buildah"); err != nil {
		lacking(t, "no buildah on this machine (Debian: apt install buildah): the image is not built")
	}
	if os.Geteuid() != 0 {
		t.Skip("building without being root needs subordinate users (newuidmap): the image is not built")
	}
	b := &builder{t, t.TempDir()}
	stage := filepath.Join(b.dir, "stage")
	out := filepath.Join(stage, "out")
	if err := os.MkdirAll(filepath.Join(out, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-ldflags", "-s -w -X github.com/freshet/freshet/internal/version.linked=image-test", "-o", filepath.Join(out, "freshet"), "../cmd/freshet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for name, text := range map[string]string{"ca-certificates.crt": "# none\n", "passwd": "nonroot:x:65532:65532:nonroot:/data:/none\n"} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.run("build", "--isolation", "chroot", "--network", "host", "--build-context", "build="+stage, "--tag", "freshet:test", "--file", "Dockerfile", stage)
	var image struct {
		OCIv1 struct {
			Config struct {
				User       string
				Entrypoint []string
				Cmd        []string
			}
		}
	}
	if err := json.Unmarshal([]byte(b.run("inspect", "--type", "image", "localhost/freshet:test")), &image); err != nil {
		t.Fatal(err)
	}
	if c := image.OCIv1.Config; c.User != "65532:65532" || len(c.Entrypoint) != 1 || len(c.Cmd) == 0 {
		t.Errorf("the image's configuration: %+v", c)
	}
	container := b.run("from", "--pull-never", "localhost/freshet:test")
	t.Cleanup(func() { b.run("rm", container); b.run("rmi", "--all", "--force") })
	if v := b.run("run", "--isolation", "chroot", container, "--", "/usr/local/bin/freshet", "version"); !strings.Contains(v, "image-test") {
		t.Errorf("version %q", v)
	}
	b.serve(container)
}

// serve runs the image's command on its demonstration web and asks it.
func (b *builder) serve(container string) {
	t := b.t
	n, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", n)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := b.command(ctx, "run", "--isolation", "chroot", "--network", "host", container, "--", "/usr/local/bin/freshet", "serve", "--demo", "--data", "/data", "--listen", address, "--set", "console.tokens="+operatorToken)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &log, &log, 10*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ask := func(method, path string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
		if err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bearer "+operatorToken)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode >= 300 {
			err = fmt.Errorf("%s: %s", res.Status, text)
		}
		return string(text), err
	}
	for {
		text, err := ask(http.MethodGet, "/api/search?q=")
		var found struct{ Total int }
		if err == nil && json.Unmarshal([]byte(text), &found) == nil && found.Total > 0 {
			break
		}
		select {
		case e := <-ended:
			t.Fatalf("the container ended: %v: %s", e, log.String())
		case <-ctx.Done():
			t.Fatalf("no page is found in the container: %v: %s", err, log.String())
		case <-time.After(200 * time.Millisecond):
		}
	}
	if _, err := ask(http.MethodGet, "/readyz"); err != nil {
		t.Error(err)
	}
	if _, err := ask(http.MethodPost, "/api/stop"); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end of the container: %v: %s", err, log.String())
	}
}

// The unit is accepted by systemd itself.
func TestUnitVerified(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		lacking(t, "no systemd-analyze on this machine (Debian: apt install systemd)")
	}
	// The program is looked for; here it is another.
	dir := t.TempDir()
	unit := filepath.Join(dir, "freshet.service")
	text := strings.ReplaceAll(read(t, "freshet.service"), "/usr/local/bin/freshet", "/bin/true")
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("freshet.service")) {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
}

// operatorToken is that of the operator of the image under test.
const operatorToken = "token-of-the-image-test"
