//go:build !unix

package fetch

// reusable says that no connection is used again: whether an idle one is good
// cannot be seen here.
const reusable = false

// exchange sends the request and reads the first bytes of the answer.
func (l *line) exchange(p []byte) (int, error) { return l.writeRead(p) }

// advance is not called.
func (l *line) advance(uintptr) bool { return true }
