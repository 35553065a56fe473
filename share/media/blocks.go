package media

import (
	"context"
	"errors"
	"io"
)

// BlockSize is what is read of a remote file at once. Tags sit in the first or
// last few of these; smaller reads cost a round trip each.
const BlockSize = 32 << 10

// MaxBlocks bounds what may be read of one file: 2 MB. Parsers that want more,
// as a damaged file may make them, get ErrTooMuch.
const MaxBlocks = 64

// ErrTooMuch is the error of reads beyond MaxBlocks.
var ErrTooMuch = errors.New("more of the file would have to be read than is worth it")

// Blocks reads a file in blocks and keeps the ones read. It is used by one
// goroutine.
type Blocks struct {
	ctx   context.Context
	r     io.ReaderAt
	size  int64
	have  map[int64][]byte
	bytes int64
	err   error
}

// NewBlocks wraps r, a file of size bytes.
func NewBlocks(ctx context.Context, r io.ReaderAt, size int64) *Blocks {
	return &Blocks{ctx: ctx, r: r, size: size, have: map[int64][]byte{}}
}

// BytesRead returns how many bytes were read of the file itself.
func (b *Blocks) BytesRead() int64 { return b.bytes }

// Err returns the first error of the file itself, not the end of it.
func (b *Blocks) Err() error { return b.err }

// ReadAt implements io.ReaderAt.
func (b *Blocks) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("read before the file's beginning")
	}
	if err := b.ctx.Err(); err != nil { // also of a parser that reads the same blocks again and again
		b.err = err
		return 0, err
	}
	n := 0
	for n < len(p) {
		if off >= b.size {
			return n, io.EOF
		}
		block, err := b.readBlockAt(off / BlockSize)
		if err != nil {
			return n, err
		}
		at := int(off % BlockSize)
		if at >= len(block) {
			return n, io.EOF
		}
		m := copy(p[n:], block[at:])
		n += m
		off += int64(m)
	}
	return n, nil
}

func (b *Blocks) readBlockAt(i int64) ([]byte, error) {
	if block, ok := b.have[i]; ok {
		return block, nil
	}
	if len(b.have) >= MaxBlocks {
		return nil, ErrTooMuch
	}
	block := make([]byte, min(BlockSize, b.size-i*BlockSize))
	n, err := b.r.ReadAt(block, i*BlockSize)
	b.bytes += int64(n)
	if n < len(block) && err != nil && !errors.Is(err, io.EOF) {
		b.err = err
		return nil, err
	}
	b.have[i] = block[:n]
	return block[:n], nil
}
