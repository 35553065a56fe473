package source

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// local reads a folder of this machine. Paths may be longer than the system's
// limit: those are opened name by name.
type local struct {
	root string
	deep deep
}

// maxPath is below PATH_MAX (4096) with room for one name.
const maxPath = 3800

func dialFile(_ context.Context, u *url.URL, _ Options) (Source, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("%w: file://%s/: a local folder is written file:///path", errProtocol, u.Host)
	}
	root := filepath.Clean("/" + u.Path)
	st, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("%w: %s is no folder", errProtocol, root)
	}
	return &local{root: root}, nil
}

func (l *local) List(ctx context.Context, path string) ([]Entry, error) {
	var out []Entry
	err := l.ListEach(ctx, path, func(entries []Entry) error {
		out = append(out, entries...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// listingPiece is how many names are read at once.
const listingPiece = 1024

// ListEach implements Streamer.
func (l *local) ListEach(ctx context.Context, path string, f func([]Entry) error) error {
	var d *os.File
	err := l.callWithContext(ctx, func() (err error) {
		d, err = l.openBelowRoot(path, unix.O_RDONLY|unix.O_DIRECTORY)
		return err
	})
	if err != nil {
		return wrapSourceError("list", path, err)
	}
	for {
		var piece []Entry
		end := false
		err := l.callWithContext(ctx, func() (err error) {
			piece, end, err = readPiece(d)
			return err
		})
		if err != nil {
			if ctx.Err() == nil { // else the call may still be under way
				d.Close()
			}
			return wrapSourceError("list", path, err)
		}
		err = f(piece)
		if err != nil || end {
			d.Close()
			return err
		}
	}
}

// callWithContext runs a call of the operating system that may never return: the server of
// a network file system that is mounted here may be silent. After ctx ended what
// the call used belongs to the call.
func (l *local) callWithContext(ctx context.Context, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- call() }() // ends with the call
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readPiece reads the next entries of a folder.
func readPiece(d *os.File) (out []Entry, end bool, err error) {
	names, err := d.Readdirnames(listingPiece)
	if err == io.EOF {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	out = make([]Entry, 0, len(names))
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.ENOENT {
			continue // removed since
		}
		if err != nil {
			return nil, false, &os.PathError{Op: "stat", Path: name, Err: err}
		}
		e := Entry{Name: name, Size: st.Size, Modified: st.Mtim.Sec}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			e.Dir, e.Size = true, 0
		case unix.S_IFLNK:
			e.Link = true
		case unix.S_IFREG:
		default:
			continue // device, pipe, socket
		}
		out = append(out, e)
	}
	return out, false, nil
}

func (l *local) Open(_ context.Context, path string) (File, error) {
	// Not blocking, should a pipe have taken the file's place.
	f, err := l.openBelowRoot(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, wrapSourceError("open", path, err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%w: no regular file any more", errGone)
	}
	if err != nil {
		f.Close()
		return nil, wrapSourceError("open", path, err)
	}
	return localFile{f, st.Size(), path}, nil
}

// Identity tells the root from what another mount puts in its place.
func (l *local) Identity(context.Context) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(l.root, &st); err != nil {
		return "", wrapSourceError("stat", "", err)
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}

func (l *local) Close() error {
	l.deep.closeDeep()
	return nil
}

// openBelowRoot opens what is at path, following no link below the root, wherever in the path
// it is: whoever may write to the share could lead us out of it.
func (l *local) openBelowRoot(path string, flags int) (*os.File, error) {
	flags |= unix.O_CLOEXEC
	root, err := openAt(unix.AT_FDCWD, l.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC) // may be a link itself
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: l.root, Err: err}
	}
	defer unix.Close(root)
	if len(path) > maxPath {
		return l.deep.openDeep(root, path, flags)
	}
	if path == "" {
		path = "."
	}
	fd, err := openBeneath(root, path, flags)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(l.root, path), Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(l.root, path)), nil
}

// openAt is openat(2) that goes on after a signal.
func openAt(dir int, path string, flags int) (fd int, err error) {
	for {
		if fd, err = unix.Openat(dir, path, flags, 0); err != unix.EINTR {
			return fd, err
		}
	}
}

// maxRaces bounds how often a path is resolved again because a name in it moved.
const maxRaces = 100

// openBeneath opens path below a folder without a link in any place of it.
func openBeneath(dir int, path string, flags int) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_NOFOLLOW), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	for range maxRaces {
		fd, err = unix.Openat2(dir, path, &how)
		switch err {
		case unix.EAGAIN, unix.EINTR:
			continue
		case unix.ENOSYS, unix.EPERM, unix.EINVAL: // an old kernel, or a filter of system calls that does not know it
			return openByName(dir, path, flags)
		}
		return fd, err
	}
	return fd, err
}

// openByName does what openBeneath does, name by name.
func openByName(dir int, path string, flags int) (int, error) {
	at := dir
	defer func() {
		if at != dir {
			unix.Close(at)
		}
	}()
	for {
		name, rest, more := strings.Cut(path, "/")
		if name == ".." {
			return -1, unix.ENOENT
		}
		if !more {
			return openAt(at, name, flags|unix.O_NOFOLLOW)
		}
		fd, err := openAt(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW)
		if err != nil {
			return -1, err
		}
		if at != dir {
			unix.Close(at)
		}
		at, path = fd, rest
	}
}

// deep opens paths beyond the system's limit from a folder that it keeps open:
// the last one opened, as a walk goes on below or beside it.
type deep struct {
	path string // "" none; always a proper prefix of what is asked for
	fd   int
}

func (d *deep) closeDeep() {
	if d.path != "" {
		unix.Close(d.fd)
		d.path = ""
	}
}

func (d *deep) openDeep(root int, path string, flags int) (*os.File, error) {
	if d.path == "" || !strings.HasPrefix(path, d.path+"/") {
		d.closeDeep()
		cut := strings.LastIndexByte(path[:maxPath], '/')
		if cut <= 0 {
			return nil, &os.PathError{Op: "open", Path: path[:100] + "…", Err: unix.ENAMETOOLONG}
		}
		fd, err := openBeneath(root, path[:cut], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path[:cut], Err: err}
		}
		d.path, d.fd = path[:cut], fd
	}
	names := strings.Split(path[len(d.path)+1:], "/")
	for i, name := range names {
		how := flags
		if i < len(names)-1 {
			how = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
		}
		fd, err := openBeneath(d.fd, name, how)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: "…/" + name, Err: err}
		}
		if i == len(names)-1 {
			return os.NewFile(uintptr(fd), name), nil
		}
		unix.Close(d.fd)
		d.path, d.fd = d.path+"/"+name, fd
	}
	panic("unreachable: a path has a last name")
}

type localFile struct {
	*os.File
	size int64
	path string
}

func (f localFile) Size() int64 { return f.size }

func (f localFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if err != nil && err != io.EOF {
		return n, wrapSourceError("read", f.path, err)
	}
	return n, err
}
