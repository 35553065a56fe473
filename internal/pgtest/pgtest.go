// Package pgtest gives tests a PostgreSQL of their own: one cluster a test
// binary, in a temporary folder, reached through a Unix socket and a loopback
// port, and one empty database a test.
//
// The server's programs are looked for in $FRESHET_PG_BIN, in PATH and where
// Debian puts them. Without them a test is skipped, but fails where CI is set.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/freshet/freshet/internal/testport"
)

// Cluster is one PostgreSQL server.
type Cluster struct {
	root      string
	dir       string // data directory
	logs      string
	bin       string // folder of the programs
	sys       *syscall.SysProcAttr
	port      int
	up        bool
	databases atomic.Int64
}

// ErrMissing is the error of a machine without PostgreSQL's programs.
var ErrMissing = errors.New("no PostgreSQL server on this machine (Debian: apt install postgresql)")

// Run runs the tests of a binary with one cluster between them, started by the
// first that asks. For TestMain.
func Run(m *testing.M, c *Lazy) int {
	defer c.Close()
	return m.Run()
}

// Start makes a cluster in a temporary folder and starts it; Close ends it. The
// server does not wait for the disk, which only a crash of the machine would
// tell, unless $FRESHET_PG_FSYNC is set, for measuring. $FRESHET_PG_OPTIONS are
// further options of the server, such as -c shared_preload_libraries=pg_stat_statements.
func Start() (c *Cluster, err error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "freshet-pg")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	c = &Cluster{root: dir, dir: filepath.Join(dir, "data"), logs: filepath.Join(dir, "log"), bin: bin}
	if err := c.chooseUser(dir); err != nil {
		return nil, err
	}
	if out, err := c.runProgramAs("initdb", "-D", c.dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	for range 3 { // another may take the free port before the server does
		if c.port, err = testport.Free(); err != nil {
			return nil, err
		}
		if err = c.Up(); err == nil {
			break
		}
	}
	return c, err
}

// findPrograms finds the folder of initdb.
func findPrograms() (string, error) {
	places := []string{os.Getenv("FRESHET_PG_BIN")}
	if p, err := exec.LookPath("initdb"); err == nil {
		places = append(places, filepath.Dir(p))
	}
	debian, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	for _, p := range append(places, debian...) {
		if _, err := os.Stat(filepath.Join(p, "initdb")); p != "" && err == nil {
			return p, nil
		}
	}
	return "", ErrMissing
}

// chooseUser decides whom the server runs as: it refuses to be root.
func (c *Cluster) chooseUser(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		c.sys = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		return os.Chown(dir, uid, gid)
	}
	return errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

func (c *Cluster) runProgramAs(program string, args ...string) ([]byte, error) {
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.SysProcAttr, cmd.Dir = c.sys, "/"
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}

// patience is for how many seconds the server may start or end: on a machine
// with much else to do.
const patience = "300"

// Up starts the server and waits until it answers.
func (c *Cluster) Up() error {
	options := fmt.Sprintf("-c port=%d -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=200 -c timezone=UTC", c.port)
	if os.Getenv("FRESHET_PG_FSYNC") == "" {
		options += " -c fsync=off"
	}
	options += " " + os.Getenv("FRESHET_PG_OPTIONS")
	// The log goes to a file: a server that kept our pipe would keep run from returning.
	if out, err := c.runProgramAs("pg_ctl", "-D", c.dir, "-l", c.logs, "-w", "-t", patience, "-o", options, "start"); err != nil {
		log, _ := os.ReadFile(c.logs)
		return fmt.Errorf("start PostgreSQL: %w: %s%s", err, out, log)
	}
	c.up = true
	return nil
}

// Down stops the server: at once and without a word to anybody when crash is
// true, as if the machine had lost power but for its memory.
func (c *Cluster) Down(crash bool) error {
	mode := "fast"
	if crash {
		mode = "immediate"
	}
	if out, err := c.runProgramAs("pg_ctl", "-D", c.dir, "-w", "-t", patience, "-m", mode, "stop"); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w: %s", err, out)
	}
	c.up = false
	return nil
}

// Close stops the server and removes its files.
func (c *Cluster) Close() {
	if c.up {
		if err := c.Down(true); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
		}
	}
	_ = os.RemoveAll(c.root)
}

// New starts a cluster for one test, which may stop and start it.
func New(t testing.TB) *Cluster {
	t.Helper()
	c, err := Start()
	skipUnlessCI(t, err)
	t.Cleanup(c.Close)
	return c
}

// skipUnlessCI skips a test where PostgreSQL is missing, unless in CI.
func skipUnlessCI(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// URL is the address of a database of the cluster.
func (c *Cluster) URL(database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Host: fmt.Sprintf("127.0.0.1:%d", c.port), Path: "/" + database, RawQuery: "sslmode=disable"}).String()
}

// Port is the loopback port of the server.
func (c *Cluster) Port() int { return c.port }

// Create makes an empty database and returns its address.
func (c *Cluster) Create(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	name := fmt.Sprintf("test%d", c.databases.Add(1))
	if _, err := conn.Exec(ctx, "create database "+name); err != nil {
		return "", err
	}
	return c.URL(name), nil
}

// Database makes an empty database for a test.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	address, err := c.Create(ctx)
	if err != nil {
		t.Fatal("a database for the test:", err)
	}
	return address
}
