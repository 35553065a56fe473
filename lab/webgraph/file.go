package webgraph

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// numberFile is a file of numbers that is being written.
type numberFile[T Number] struct {
	f    *os.File
	name string
	sums *sums
	buf  []T
	n    int64 // numbers written, those in buf included
}

// bufferBytes is the size of the buffer of a numberFile.
const bufferBytes = 1 << 20

func createNumbers[T Number](dir, name string) (*numberFile[T], error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	var t T
	return &numberFile[T]{f: f, name: name, sums: newSums(), buf: make([]T, 0, bufferBytes/numberSize(t))}, nil
}

// appendNumber writes one number.
func (w *numberFile[T]) appendNumber(v T) error {
	if len(w.buf) == cap(w.buf) {
		if err := w.flushNumbers(); err != nil {
			return err
		}
	}
	w.buf = append(w.buf, v)
	w.n++
	return nil
}

// writeNumbers writes numbers.
func (w *numberFile[T]) writeNumbers(v []T) error {
	w.n += int64(len(v))
	if len(v) <= cap(w.buf)-len(w.buf) {
		w.buf = append(w.buf, v...)
		return nil
	}
	if err := w.flushNumbers(); err != nil {
		return err
	}
	if len(v) < cap(w.buf) {
		w.buf = append(w.buf, v...)
		return nil
	}
	for len(v) > 0 { // in pieces, so that what is hashed is still in the cache when it is written
		k := min(len(v), cap(w.buf))
		if err := w.writeUnbuffered(v[:k]); err != nil {
			return err
		}
		v = v[k:]
	}
	return nil
}

func (w *numberFile[T]) flushNumbers() error {
	err := w.writeUnbuffered(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *numberFile[T]) writeUnbuffered(v []T) error {
	b := numbersAsBytes(v)
	_, _ = w.sums.Write(b) // never fails
	_, err := w.f.Write(b)
	return err
}

// numberFileInfo returns the entry of the file in graph.json; call it after flushNumbers.
func (w *numberFile[T]) numberFileInfo() FileInfo { return w.sums.sumsInfo(w.name) }

// finishNumbers flushes, syncs and closes the file.
func (w *numberFile[T]) finishNumbers() (FileInfo, error) {
	err := w.flushNumbers()
	return w.numberFileInfo(), errors.Join(err, w.f.Sync(), w.f.Close())
}

// writeNumbers writes a whole file.
func writeNumbers[T Number](dir, name string, v []T) (FileInfo, error) {
	w, err := createNumbers[T](dir, name)
	if err != nil {
		return FileInfo{}, err
	}
	if err := w.writeNumbers(v); err != nil {
		return FileInfo{}, errors.Join(err, w.f.Close())
	}
	return w.finishNumbers()
}

// mapped is a file of numbers that is written in any order, mapped into memory:
// the system writes it out when memory is short.
type mapped[T Number] struct {
	v    []T
	f    *os.File
	name string
	data []byte
}

// newMapped makes a file of n zeros.
func newMapped[T Number](dir, name string, n int64) (_ *mapped[T], err error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	var t T
	m := &mapped[T]{f: f, name: name}
	if n > 0 {
		size := n * int64(numberSize(t))
		// Fallocate and not Truncate: a write to a mapped hole that the disk has no
		// room for kills the program.
		if err = unix.Fallocate(int(f.Fd()), 0, 0, size); err == nil {
			m.data, err = unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), err), f.Close())
		}
	}
	m.v = bytesAsNumbers[T](m.data)
	return m, nil
}

// hashMapped hashes and syncs the file.
func (m *mapped[T]) hashMapped() (FileInfo, error) {
	s := newSums()
	_, _ = s.Write(m.data) // never fails
	return s.sumsInfo(m.name), m.f.Sync()
}

func (m *mapped[T]) closeMapped() error {
	return errors.Join(mapping{m.data}.unmap(), m.f.Close())
}
