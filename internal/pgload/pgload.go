// Package pgload measures what work costs a PostgreSQL server: CPU time,
// transactions, statements and bytes of its log, from the server's own
// statistics and the kernel's.
//
// Statements are counted where the server was started with
// shared_preload_libraries=pg_stat_statements, CPU time where it runs on this
// machine.
package pgload

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

// Load is what a server has done since it was started, or between two moments.
// CPU and Log are the whole server's, the others one database's.
type Load struct {
	CPU        float64 // seconds; 0: it is on another machine
	Commits    int64   // transactions, those that only read as well
	Log        int64   // bytes of write-ahead log
	Statements int64   // 0: not counted
}

// Since is the load after an earlier one.
func (l Load) Since(before Load) Load {
	return Load{l.CPU - before.CPU, l.Commits - before.Commits, l.Log - before.Log, l.Statements - before.Statements}
}

// settle is how long after the end of work its counters are complete: sessions
// report them at most once a second when they rest.
const settle = 1100 * time.Millisecond

// Read asks the server of a database.
func Read(ctx context.Context, address string) (l Load, err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return l, fmt.Errorf("database load: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	select {
	case <-ctx.Done():
		return l, ctx.Err()
	case <-time.After(settle):
	}
	var pid int
	const sql = "select xact_commit, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, pg_backend_pid() from pg_stat_database where datname = current_database()"
	if err = conn.QueryRow(ctx, sql).Scan(&l.Commits, &l.Log, &pid); err != nil {
		return l, fmt.Errorf("database load: %w", err)
	}
	l.CPU = serverTime(pid)
	if countsStatements(ctx, conn) {
		const calls = "select coalesce(sum(calls), 0)::bigint from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())"
		err = conn.QueryRow(ctx, calls).Scan(&l.Statements)
	}
	return l, err
}

// countsStatements reports whether the server counts statements, and makes the view that
// shows them.
func countsStatements(ctx context.Context, conn *pgx.Conn) bool {
	var loaded string
	if err := conn.QueryRow(ctx, "show shared_preload_libraries").Scan(&loaded); err != nil || !strings.Contains(loaded, "pg_stat_statements") {
		return false
	}
	_, err := conn.Exec(ctx, "create extension if not exists pg_stat_statements")
	return err == nil
}

// Profile prints the statements of a database in which most time went, with
// their calls, rows and log, for each of n pages. Nothing is printed where
// statements are not counted.
func Profile(ctx context.Context, w io.Writer, address string, n float64) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("database profile: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if !countsStatements(ctx, conn) {
		return nil
	}
	rows, err := conn.Query(ctx, `
select calls, total_exec_time, rows, wal_bytes::bigint, left(regexp_replace(query, '\s+', ' ', 'g'), 90) from pg_stat_statements
where dbid = (select oid from pg_database where datname = current_database()) order by total_exec_time desc limit 20`)
	if err != nil {
		return fmt.Errorf("database profile: %w", err)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "calls/page\tµs/page\trows/page\tlog bytes/page\tstatement")
	var calls, touched, log int64
	var ms float64
	var query string
	_, err = pgx.ForEachRow(rows, []any{&calls, &ms, &touched, &log, &query}, func() error {
		_, err := fmt.Fprintf(t, "%.3f\t%.1f\t%.2f\t%.0f\t%s\n", float64(calls)/n, 1000*ms/n, float64(touched)/n, float64(log)/n, strings.TrimSpace(query))
		return err
	})
	if err != nil {
		return fmt.Errorf("database profile: %w", err)
	}
	return t.Flush()
}

// Own is the CPU time that this process has used, in seconds.
func Own() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// tick is the unit of CPU time in /proc (USER_HZ, 100 on all of Linux's
// platforms that Go has).
const tick = 0.01

// serverTime is the CPU time of a database server on this machine, in seconds:
// of the process that started the backend, all it has started, and those that
// have ended. It is 0 where there is no such process.
func serverTime(backend int) float64 {
	parent, _, ok := processTime(backend)
	if !ok {
		return 0
	}
	// Another machine's number may be anybody's here.
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(backend), "comm"))
	if err != nil || !strings.HasPrefix(string(name), "postgres") {
		return 0
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	var sum float64
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			continue
		}
		if p, t, ok := processTime(pid); ok && (pid == parent || p == parent) {
			sum += t
		}
	}
	return sum
}

// processTime reads a process's parent and CPU time with that of its children
// that have ended.
func processTime(pid int) (parent int, seconds float64, ok bool) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, found := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if err != nil || !found || len(f) < 15 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(f[1])
	for _, v := range f[11:15] { // utime stime cutime cstime
		n, e := strconv.ParseFloat(v, 64)
		if e != nil {
			return 0, 0, false
		}
		seconds += n * tick
	}
	return parent, seconds, err == nil
}
