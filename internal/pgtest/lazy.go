package pgtest

import (
	"sync"
	"testing"
)

// Lazy is the cluster of a test binary: the first test that asks starts it,
// Close ends it.
type Lazy struct {
	once sync.Once
	c    *Cluster
	err  error
}

// Get returns the cluster, skips the test where PostgreSQL is missing, and
// fails it where CI is set or the server does not start.
func (l *Lazy) Get(t testing.TB) *Cluster {
	t.Helper()
	l.once.Do(func() { l.c, l.err = Start() })
	skipUnlessCI(t, l.err)
	return l.c
}

// Database makes an empty database in the cluster for a test.
func (l *Lazy) Database(t testing.TB) string {
	t.Helper()
	return l.Get(t).Database(t)
}

// Close stops the server and removes its files.
func (l *Lazy) Close() {
	if l.c != nil {
		l.c.Close()
	}
}
