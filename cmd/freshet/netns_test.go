package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/internal/pgtest"
)

// worldMarker tells a test that it runs in a network of its own.
const worldMarker = "FRESHET_TEST_NETNS"

// The two ends of the cable (RFC 5737: addresses for documentation).
const (
	hereAddress  = "192.0.2.1"
	thereAddress = "192.0.2.2"
)

// TestLinkDown cuts a node off as a network does: it runs in a network namespace
// of its own, whose only way out is one end of a veth pair, and the other end
// is set down. All is within a further namespace that the test makes for itself,
// so that the machine's network is not touched.
func TestLinkDown(t *testing.T) {
	if os.Getenv(worldMarker) != "" {
		linkDown(t)
		return
	}
	t.Parallel()
	if _, err := exec.LookPath("ip"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no ip program (Debian: apt install iproute2): no network can be made")
	}
	if os.Geteuid() != 0 {
		t.Skip("network namespaces with links take root: the cut by a relay (TestClusterSurvives) stands in for this one")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^TestLinkDown$", "-test.v")
	cmd.Env = append(os.Environ(), worldMarker+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if os.IsPermission(err) {
		t.Skipf("network namespaces are not permitted here: %v", err)
	}
	text := string(out)
	if i := strings.Index(text, "cannot make a link:"); i >= 0 {
		t.Skip(text[i:])
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	t.Log(text)
}

// ip runs the program of that name.
func ip(t *testing.T, args ...string) error {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func mustIP(t *testing.T, args ...string) {
	t.Helper()
	if err := ip(t, args...); err != nil {
		t.Fatal(err)
	}
}

// startBehind starts a node at the other end of the cable.
func (f *fleet) startBehind(name, database, proxy string, agents int) {
	f.t.Helper()
	args := append([]string{
		"-c", `read go && ip link set lo up && ip address add ` + thereAddress + `/24 dev there && ip link set there up && exec "$@"`, "sh",
		f.bin, "--data", filepath.Join(f.dir, name), "--json", "crawl", "--database", database, "--node", name, "--agent-name", name, "--lease", f.lease.String(),
		"--allow-private", "--scope", "any", "--agents", fmt.Sprint(agents), "--delay", "10ms", "--timeout", "2s", "--proxy", proxy,
	}, f.web.Seeds(int(f.web.Hosts()))...)
	p := &process{cmd: exec.Command("sh", args...), ended: make(chan error, 1)}
	p.cmd.Stderr, p.cmd.Stdout = &p.stderr, &p.stdout
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	f.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	mustIP(f.t, "link", "set", "there", "netns", fmt.Sprint(p.cmd.Process.Pid))
	if _, err := io.WriteString(in, "go\n"); err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	f.nodes[name] = p
	f.mu.Unlock()
}

// linkDown is the test within its own network.
func linkDown(t *testing.T) {
	mustIP(t, "link", "set", "lo", "up")
	if err := ip(t, "link", "add", "here", "type", "veth", "peer", "name", "there"); err != nil {
		t.Fatalf("cannot make a link: %v", err)
	}
	mustIP(t, "address", "add", hereAddress+"/24", "dev", "here")
	mustIP(t, "link", "set", "here", "up")

	const lease = 3 * time.Second
	cluster := pgtest.New(t)
	f := newFleet(t, cluster.Database(t), 480, 40, 40*time.Millisecond, lease)
	f.delayed = 14 // what each agent sent last lies in the sockets while the link is down
	// Database and web listen on loopback; what comes from the cable is passed on.
	database := newRelayAt(t, hereAddress, fmt.Sprintf("127.0.0.1:%d", cluster.Port()))
	web := newRelayAt(t, hereAddress, f.web.ProxyAddr())
	behind := strings.Replace(database.address(f.database, cluster.Port()), "127.0.0.1:", hereAddress+":", 1)
	f.start("anna", f.database, 14)
	f.startBehind("boris", behind, "http://"+net.JoinHostPort(hereAddress, fmt.Sprint(web.port())), 14)
	f.wait(100)
	f.asked("boris", f.begun, 1)

	mustIP(t, "link", "set", "here", "down")
	cut := time.Now()
	hosts, took := f.orphans("boris")
	t.Logf("the %d hosts of the node that was cut off were taken over within %v, lease %v", hosts, took, lease)
	if took > 20*lease { // an agent looks for orphans as often as for work
		t.Errorf("taken over after %v", took)
	}
	time.Sleep(time.Until(cut.Add(lease + time.Second)))
	whole := time.Now()
	mustIP(t, "link", "set", "here", "up")
	f.finish("anna", "boris")
	f.check(3 * 14)
	if n := f.indexed(); n != 480 {
		t.Errorf("the index finds %d of 480 pages", n)
	}
	before, after, late := 0, 0, 0
	for _, r := range f.requests() {
		switch {
		case r.node != "boris":
		case r.from.Before(cut):
			before++
		case r.from.Before(whole): // it was on the way
			late++
		default:
			after++
		}
	}
	if late > f.delayed {
		t.Errorf("%d requests came through a link that was down", late)
	}
	if before == 0 {
		t.Error("the node had asked nothing before the cut")
	}
	// What it had fetched and not written by then is refused by the token.
	told := f.nodes["boris"].stderr.String()
	if hosts > 0 && !strings.Contains(told, "lease") {
		t.Errorf("nothing of %d lost hosts was refused: %q", hosts, told)
	}
	t.Logf("%d requests before the cut, %d after it; refused: %d", before, after, strings.Count(told, "lease on the host is lost"))
}
