// Package postgres is the store that many processes share: PostgreSQL, or an
// engine that speaks its protocol.
//
// There is no coordinator. A process claims a host by updating its row (FOR
// UPDATE SKIP LOCKED, so that claims do not wait for each other), which raises
// the host's fencing token; every write of a host's pages first locks that row
// and compares the token, so that whoever lost the lease writes nothing. A
// process that dies keeps its hosts until their leases run out; then they are
// claimed like any other.
//
// Commits of different hosts share no row that they write: URLs found on a
// foreign host are inserted without a lock of its row, which is looked at afterwards
// (wake.go); counters and the feed of changes are tables that commits append to and
// readers fold together. Links are mostly
// to pages known already; each process remembers the keys it has seen stored
// and sends only the others.
//
// Every method tries again when the connection breaks, the server restarts, or
// the engine asks for it (serialisation failure, deadlock), for as long as
// Config.Patience. A batch has a number under its lease, so that one whose
// answer was lost is not written twice.
//
// Statements use no advisory locks, LISTEN, extensions or server functions.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/weburl"
)

// Config are the options of a store. The zero value is usable.
type Config struct {
	// Node names this process in leases, the registry and its lane of the feed.
	// Two live processes must not share a name. Default: host name and process
	// number.
	Node string
	// Known is how many keys of stored URLs are remembered, 16 bytes each.
	// Default 1 million.
	Known int
	// Connections bounds the connections of this process. Default 16.
	Connections int
	// Gather is for how long what agents finish and claim is gathered into
	// one statement: it spares the database most of the work of many agents on
	// hosts that rest after each page. 0 does each at once.
	Gather time.Duration
	// Idle is after what time in the middle of a transaction the server ends it: the
	// rows that a node had locked when it was cut off are nobody's until then.
	// Default 10 s; less than a lease is sensible.
	Idle time.Duration
	// Patience is for how long an operation is tried again while the server
	// cannot be reached. Default 2 minutes.
	Patience time.Duration
}

// Store implements store.Store. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	config Config
	known  *known

	commits *together[*part]
	ahead   ahead

	offset atomic.Int64 // milliseconds by which the database's clock is ahead

	mu       sync.Mutex
	id       string
	settled  []int64 // rows of wakes that are done with
	held     map[held]*work
	adopting map[string][2]int64 // how far the lanes of dead nodes were looked through
	clock    time.Time           // the latest that a host was asked for at
	close    sync.Once
}

// held names a lease of this process.
type held struct {
	host  int64
	token uint64
}

// work is what is remembered of a lease while it is held.
type work struct {
	taken map[weburl.Key]place // pages out
	batch int64                // number of the last batch
	ready *ready               // pages read with the claim; nil when they were taken
}

// place is where a page stood when it was taken.
type place struct {
	slot  store.Slot
	state store.State
	asked int64 // by the column
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Finisher = (*Store)(nil)
	_ store.Adopter  = (*Store)(nil)
)

// maxSkew is how far the clock of a node may be from the database's. Leases and
// politeness go by the database's.
const maxSkew = 5 * time.Second

// startPatience is for how long a server that does not answer is waited for when
// a process starts: a wrong address shall be told soon.
const startPatience = 10 * time.Second

// Bounds of what is gathered.
const (
	groupParts   = 64
	groupWriters = 4
)

// Open connects to a database (postgres://user:password@host/name), brings its
// schema up to date and checks the clock. The error is store.ErrVersion when a
// newer program has been there.
func Open(ctx context.Context, address string, c Config) (*Store, error) {
	pool, err := Connect(ctx, address, c.Connections, c.Idle)
	if err != nil {
		return nil, err
	}
	s, err := newStore(ctx, pool, c)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// Connect makes the pool of connections that Open and index/postgres work on.
// Sessions that rest in a transaction for longer than idle (0: 10 s) are ended.
func Connect(ctx context.Context, address string, connections int, idle time.Duration) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	if connections <= 0 {
		connections = 16
	}
	pc.MaxConns = int32(min(connections, 1000))
	pc.HealthCheckPeriod = 15 * time.Second
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	// A node that is cut off in the middle of a transaction must not keep others
	// from the rows that it has locked.
	if idle <= 0 {
		idle = 10 * time.Second
	}
	for name, value := range map[string]string{"application_name": "freshet", "idle_in_transaction_session_timeout": strconv.FormatInt(idle.Milliseconds(), 10), "lock_timeout": "20s"} {
		if pc.ConnConfig.RuntimeParams[name] == "" {
			pc.ConnConfig.RuntimeParams[name] = value
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return pool, nil
}

// newStore is Open on connections that others may use as well; Close ends them.
func newStore(ctx context.Context, pool *pgxpool.Pool, c Config) (*Store, error) {
	if c.Node == "" {
		c.Node = defaultNodeName()
	}
	if c.Known <= 0 {
		c.Known = 1 << 20
	}
	if c.Patience <= 0 {
		c.Patience = 2 * time.Minute
	}
	s := &Store{pool: pool, config: c, known: newKnown(c.Known), held: map[held]*work{}, adopting: map[string][2]int64{}}
	s.commits = newTogether(c.Gather, groupParts, groupWriters, s.writeAll)
	// A server that starts or restarts at this moment is waited for.
	err := Retry(ctx, min(c.Patience, startPatience), func() error {
		if err := pool.Ping(ctx); err != nil {
			return err
		}
		if err := migrateSchema(ctx, pool); err != nil {
			return err
		}
		if err := s.CheckClock(ctx); err != nil {
			return err
		}
		if err := s.checkWhole(ctx); err != nil {
			return err
		}
		if err := s.checkPages(ctx); err != nil {
			return err
		}
		if err := s.loadOrReadID(ctx); err != nil {
			return err
		}
		// Rows of the queue of renders that earlier programs emptied instead of deleting.
		if _, err := s.pool.Exec(ctx, "delete from settings where name like 'render-wait/%' and length(value) = 0"); err != nil {
			return err
		}
		if err := s.settleOld(ctx, time.Now().Add(-wakesAfter)); err != nil {
			return err
		}
		return s.mendAhead(ctx, time.Now())
	})
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", addressOf(pool), oneLine{err})
	}
	return s, nil
}

// defaultNodeName is the default name of a process: host name and process number.
func defaultNodeName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "node"
	}
	return fmt.Sprintf("%s-%d", name, os.Getpid())
}

// addressOf is the address without the password.
func addressOf(pool *pgxpool.Pool) string {
	c := pool.Config().ConnConfig
	return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)
}

// ErrClock is the error of a clock that nobody should have.
var ErrClock = errors.New("this machine's clock and the database's are apart: set both by NTP, leases depend on it")

// CheckClock measures how far this machine's clock is from the database's, for the
// times that are written from now on. The error is ErrClock if they are too far apart.
func (s *Store) CheckClock(ctx context.Context) error {
	skew, took, err := s.measureClock(ctx)
	if err == nil && skew.Abs() > maxSkew+took {
		err = fmt.Errorf("%w (by %v)", ErrClock, skew.Abs().Round(time.Millisecond))
	}
	return err
}

// clockNoise is what clocks that are set by NTP, and a query, may differ by.
const clockNoise = 50 * time.Millisecond

// measureClock keeps how far the database's clock is ahead of this machine's, for
// the times that are written.
func (s *Store) measureClock(ctx context.Context) (skew, took time.Duration, err error) {
	var theirs time.Time
	asked := time.Now()
	if err := s.pool.QueryRow(ctx, "select now()").Scan(&theirs); err != nil {
		return 0, 0, err
	}
	took = time.Since(asked)
	if skew = theirs.Sub(asked.Add(took / 2)); skew.Abs() <= clockNoise+took {
		s.offset.Store(0)
	} else {
		s.offset.Store(skew.Milliseconds())
	}
	return skew, took, nil
}

// databaseMillis is a time of this machine as the database's clock shows it.
func (s *Store) databaseMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(1, t.UnixMilli()+s.offset.Load())
}

// idName is the setting with the store's ID.
const idName = "store-id"

// loadOrReadID reads the store's ID, which whoever comes first has made.
func (s *Store) loadOrReadID(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, "insert into settings (name, value) values ($1, $2) on conflict (name) do nothing", idName, []byte(store.NewID())); err != nil {
		return err
	}
	var id []byte
	if err := s.pool.QueryRow(ctx, "select value from settings where name = $1", idName).Scan(&id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = string(id)
	return nil
}

// ID implements store.Store.
func (s *Store) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Pool returns the connections, for parts that live in the same database.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Node is the name of this process.
func (s *Store) Node() string { return s.config.Node }

// Close implements store.Store: it gives back the leases and disconnects.
func (s *Store) Close() error {
	s.close.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.mu.Lock()
		var leases []held
		for h := range s.held {
			leases = append(leases, h)
		}
		s.mu.Unlock()
		s.ahead.stopAhead()
		_ = s.releaseLeases(ctx, leases) // best effort: leases end by themselves
		s.ahead.work.Wait()
		s.commits.done.Wait()
		if ids := s.takeSettled(); len(ids) > 0 { // who finds them does no harm
			_, _ = s.pool.Exec(ctx, deleteWake, ids)
		}
		s.pool.Close()
	})
	return nil
}

// retryStore runs f until it succeeds, fails for good, or patience ends.
func (s *Store) retryStore(ctx context.Context, f func() error) error {
	return Retry(ctx, s.config.Patience, f)
}

// Retry runs f again and again while its error is one that passes: a broken
// connection, a server that restarts, a conflict of transactions.
func Retry(ctx context.Context, patience time.Duration, f func() error) error {
	end := time.Now().Add(patience)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := f()
		if err == nil || !isTransient(err) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		t := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-ctx.Done():
			t.Stop()
			return err
		case <-t.C:
		}
	}
}

// errAgain is the error of a transaction that found the world changed between
// its statements.
var errAgain = errors.New("the database changed meanwhile")

// isTransient reports whether an error may be gone at the next attempt.
func isTransient(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40001", "40P01", "40003": // serialisation failure, deadlock, outcome unknown
			return true
		case "55P03", "25P03": // a lock or the client was waited for too long
			return true
		case "57P01", "57P02", "57P03", "53300": // shutting down, crashed, starting, too many connections
			return true
		}
		return strings.HasPrefix(pg.Code, "08") // connection exceptions
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.Is(err, errAgain) || errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}

// errInput marks errors of what the caller gave, and of records that cannot be
// decoded.
var errInput = errors.New("bad record")

// inTransaction runs f in a transaction, again while that may help.
func (s *Store) inTransaction(ctx context.Context, f func(pgx.Tx) error) error {
	return s.retryStore(ctx, func() error { return pgx.BeginFunc(ctx, s.pool, f) })
}

// oneLine writes an error that names each address that was tried on a line of
// its own as one line, without what is said twice.
type oneLine struct{ error }

func (e oneLine) Error() string {
	var out []string
	for line := range strings.SplitSeq(e.error.Error(), "\n") {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, " ")
}

func (e oneLine) Unwrap() error { return e.error }
