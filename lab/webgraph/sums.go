package webgraph

import (
	"fmt"

	"github.com/zeebo/xxh3"
)

// chunkBytes is the size of the pieces of a file that have checksums of their own,
// so that damage is reported with its place.
const chunkBytes = 16 << 20

// sums makes the checksums of a file that is written from the beginning to the end.
type sums struct {
	whole, chunk *xxh3.Hasher
	n            int64
	chunks       []string
}

func newSums() *sums { return &sums{whole: xxh3.New(), chunk: xxh3.New()} }

// Write never fails.
func (s *sums) Write(b []byte) (int, error) {
	all := len(b)
	for len(b) > 0 {
		k := min(int64(len(b)), chunkBytes-s.n%chunkBytes)
		_, _ = s.whole.Write(b[:k])
		_, _ = s.chunk.Write(b[:k])
		s.n += k
		b = b[k:]
		if s.n%chunkBytes == 0 {
			s.endChunk()
		}
	}
	return all, nil
}

func (s *sums) endChunk() {
	s.chunks = append(s.chunks, sumString(s.chunk.Sum64()))
	s.chunk.Reset()
}

// sumsInfo returns the graph.json entry of a file that holds all that was written. A
// file of one chunk has the checksum of the whole only.
func (s *sums) sumsInfo(name string) FileInfo {
	f := FileInfo{Name: name, Bytes: s.n, XXH3: sumString(s.whole.Sum64())}
	if s.n > chunkBytes {
		if s.n%chunkBytes > 0 {
			s.endChunk()
		}
		f.Chunks = s.chunks
	}
	return f
}

// pieceCount returns the number of pieces of a file that can be checked one by one.
func (f *FileInfo) pieceCount() int { return max(len(f.Chunks), 1) }

// checkPiece compares a piece of a file with its checksum and says what is wrong, "" if
// nothing.
func (f *FileInfo) checkPiece(data []byte, piece int) string {
	if len(f.Chunks) == 0 {
		if sumString(xxh3.Hash(data)) != f.XXH3 {
			return "its checksum is wrong"
		}
		return ""
	}
	a := int64(piece) * chunkBytes
	b := min(a+chunkBytes, int64(len(data)))
	if sumString(xxh3.Hash(data[a:b])) != f.Chunks[piece] {
		return fmt.Sprintf("the checksum of bytes %d to %d is wrong", a, b)
	}
	return ""
}

// chunksFit reports whether there are as many checksums as the file has chunks.
func (f *FileInfo) chunksFit() bool {
	return len(f.Chunks) == 0 || int64(len(f.Chunks)) == (f.Bytes+chunkBytes-1)/chunkBytes
}
