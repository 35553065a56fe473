// Package netns runs a command in a small world of its own, in which every
// address of the internet is this machine: a user, a network and a mount
// namespace of Linux (user_namespaces(7)), made without privileges.
//
// In it the route "local 0.0.0.0/0 dev lo" (and ::/0) delivers connections to
// any address to sockets that listen on 0.0.0.0, where the local address of a
// connection is the address that the robot wanted. There is no firewall rule, no
// proxy setting and no way out: an unmodified robot sees a whole web, and the
// real one is out of its reach.
package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// marker is the environment variable that tells a process that it is the one
// inside.
const marker = "FRESHET_NETNS"

// Inside reports whether this process was started by Run.
func Inside() bool { return os.Getenv(marker) == "inside" }

// Run starts this program again with args in namespaces of its own and waits for
// it. The exit code is the inner program's. Ending ctx asks it to end.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	if runtime.GOOS != "linux" {
		return 0, fmt.Errorf("--netns needs Linux; %s", remaining)
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.Env = append(os.Environ(), marker+"=inside")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		GidMappingsEnableSetgroups: false,
		Pdeathsig:                  syscall.SIGTERM,
	}
	// The death signal is tied to the thread that starts the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, explainNamespaceError(proc, "make a user, network and mount namespace", err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() < 0 {
			return 0, fmt.Errorf("the program in the namespace was ended: %w", err)
		}
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("the program in the namespace: %w", err)
	}
	return 0, nil
}

// remaining names the ways to serve a robot that need no namespace.
const remaining = "the ways that remain: --proxy ADDR (a forward proxy with CONNECT), or --dns ADDR --answer 127.0.0.1 with --http 127.0.0.1:PORT"

// settings are the kernel's that restrict namespaces: the value that does, and
// what lifts it.
var settings = []struct{ file, value, advice string }{
	{"kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"},
	{"kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
	{"user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=1000"},
	{"user/max_net_namespaces", "0", "sysctl user.max_net_namespaces=1000"},
	{"user/max_mnt_namespaces", "0", "sysctl user.max_mnt_namespaces=1000"},
}

// proc is where the kernel shows its settings.
const proc = "/proc/sys"

// explainNamespaceError turns the error of making namespaces, or of the first privileged act
// in them, into advice. Some systems let anybody make a user namespace and then
// deny what it is for.
func explainNamespaceError(proc, what string, err error) error {
	var why []string
	for _, s := range settings {
		b, readErr := os.ReadFile(filepath.Join(proc, s.file))
		if v := strings.TrimSpace(string(b)); readErr == nil && v == s.value {
			why = append(why, fmt.Sprintf("%s/%s is %s; the administrator may allow it by `%s`", proc, s.file, v, s.advice))
		}
	}
	if len(why) == 0 {
		why = append(why, "the kernel or the container that this runs in restricts user namespaces")
	}
	return fmt.Errorf("%s: %w: %s; %s", what, err, strings.Join(why, "; "), remaining)
}

// explainDenied explains an error that says that a right is missing.
func explainDenied(what string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return explainNamespaceError(proc, what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Files are the contents that the command finds in place of the machine's.
type Files struct {
	Dir      string // where the contents are kept while the namespace lives
	Resolver string // address of the name server
	CA       []byte // certificate to be trusted besides the system's, in PEM
}

// Prepare makes the network of the namespace from inside: lo up, all addresses
// local; and keeps what is mounted later from spreading to the machine.
func Prepare() error {
	if err := os.Unsetenv(marker); err != nil { // the command may be this program again
		return fmt.Errorf("prepare the namespace: %w", err)
	}
	if err := enableLoopback(); err != nil {
		return explainDenied("switch lo on in the namespace", err)
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		err := localDefault(family)
		if family == unix.AF_INET6 && err != nil {
			continue // a kernel without IPv6 serves IPv4
		}
		if err != nil {
			return explainDenied("route all addresses to lo", err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return explainDenied("make the mounts private", err)
	}
	return nil
}

// bundles are the places of the system's trusted certificates (as crypto/x509
// looks for them).
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// Mount replaces the files of name resolution and trust by bind mounts.
func (f Files) Mount() error {
	if err := f.mountOver("/etc/resolv.conf", []byte("nameserver "+f.Resolver+"\noptions timeout:5 attempts:2 edns0\n")); err != nil {
		return err
	}
	// A resolver daemon of the machine, reached through a socket, would answer
	// from the real internet.
	if err := f.mountOver("/etc/nsswitch.conf", []byte("passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n")); err != nil {
		return err
	}
	if st, err := os.Stat("/var/run/nscd"); err == nil && st.IsDir() {
		if err := unix.Mount("none", "/var/run/nscd", "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("hide /var/run/nscd: %w", err)
		}
	}
	for _, bundle := range bundles {
		old, err := os.ReadFile(bundle)
		if err != nil || len(f.CA) == 0 {
			continue
		}
		if err := f.mountOver(bundle, append(append(old, '\n'), f.CA...)); err != nil {
			return err
		}
	}
	return nil
}

// mountOver mounts a file with other contents over path, where path exists.
func (f Files) mountOver(path string, contents []byte) error {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	src := filepath.Join(f.Dir, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-"))
	if err := os.WriteFile(src, contents, 0o644); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := unix.Mount(src, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("replace %s: bind mount: %w", path, err)
	}
	return nil
}
