package contain

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Mapped is a file of the environment that is mapped into memory for reading
// and writing. The system writes it out and drops it from memory as it needs.
type Mapped struct {
	env  *Env
	f    *os.File
	data []byte
}

// NewMapped makes a new mapped file of n zero bytes.
func NewMapped(env *Env, kind string, n int64) (*Mapped, error) {
	f, err := env.createTempFile(kind)
	if err != nil {
		return nil, err
	}
	m := &Mapped{env: env, f: f}
	if err := m.Grow(n); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Data returns the mapped bytes; Grow and Close make them invalid.
func (m *Mapped) Data() []byte { return m.data }

// Grow makes the file n bytes long. The new bytes are written, not only
// promised: a mapped page for which the disk has no room would kill the process.
func (m *Mapped) Grow(n int64) error {
	old := int64(len(m.data))
	if n <= old {
		return nil
	}
	if err := m.env.Disk(n - old); err != nil {
		return err
	}
	zeros := make([]byte, min(n-old, 1<<20))
	for at := old; at < n; at += int64(len(zeros)) {
		if _, err := m.f.WriteAt(zeros[:min(int64(len(zeros)), n-at)], at); err != nil {
			return fmt.Errorf("make room on disk: %w", err)
		}
	}
	if m.data != nil {
		if err := unix.Munmap(m.data); err != nil {
			return err
		}
		m.data = nil
	}
	data, err := unix.Mmap(int(m.f.Fd()), 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %s into memory: %w", m.f.Name(), err)
	}
	m.data = data
	return nil
}

// Close removes the file.
func (m *Mapped) Close() error {
	n := int64(len(m.data))
	var err error
	if m.data != nil {
		err = unix.Munmap(m.data)
		m.data = nil
	}
	return errors.Join(err, m.f.Close(), m.env.removeTempFile(m.f.Name(), n))
}
