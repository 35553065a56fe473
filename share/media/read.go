package media

import (
	"context"
	"io"
)

// reader reads what a file of some type says of itself. It must bound what it
// reads and takes every input.
type reader func(r io.ReaderAt, size int64, in *Info) error

// Read reads tags or text of the file named name. What a damaged file says is
// kept as far as it was read; the error tells the rest.
func Read(ctx context.Context, name string, r io.ReaderAt, size int64) (Info, error) {
	var in Info
	read, ok := readers[Ext(name)]
	if !ok {
		return in, nil
	}
	err := read(r, size, &in)
	in.clean()
	return in, err
}

var readers = map[string]reader{}

func (in *Info) clean() {}
