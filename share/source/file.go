package source

import (
	"context"
	"fmt"
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

func (l *local) List(_ context.Context, path string) ([]Entry, error) {
	out, err := l.list(path)
	return out, fail("list", path, err)
}

func (l *local) list(path string) ([]Entry, error) {
	d, err := l.open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(names))
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.ENOENT {
			continue // removed since
		}
		if err != nil {
			return nil, &os.PathError{Op: "stat", Path: name, Err: err}
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
	return out, nil
}

func (l *local) Open(_ context.Context, path string) (File, error) {
	// Not blocking, should a pipe have taken the file's place.
	f, err := l.open(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, fail("open", path, err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%w: no regular file any more", errGone)
	}
	if err != nil {
		f.Close()
		return nil, fail("open", path, err)
	}
	return localFile{f, st.Size()}, nil
}

func (l *local) Close() error {
	l.deep.close()
	return nil
}

// open opens what is at path, following no link below the root.
func (l *local) open(path string, flags int) (*os.File, error) {
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	full := l.root
	if path == "" {
		flags &^= unix.O_NOFOLLOW // the root itself may be a link
	} else {
		full = filepath.Join(l.root, path)
	}
	if len(full) > maxPath {
		return l.deep.open(l.root, path, flags)
	}
	for {
		fd, err := unix.Open(full, flags, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: full, Err: err}
		}
		return os.NewFile(uintptr(fd), full), nil
	}
}

// deep opens paths beyond the system's limit from a folder that it keeps open:
// the last one opened, as a walk goes on below or beside it.
type deep struct {
	path string // "" none; always a proper prefix of what is asked for
	fd   int
}

func (d *deep) close() {
	if d.path != "" {
		unix.Close(d.fd)
		d.path = ""
	}
}

func (d *deep) open(root, path string, flags int) (*os.File, error) {
	if d.path == "" || !strings.HasPrefix(path, d.path+"/") {
		d.close()
		cut := strings.LastIndexByte(path[:maxPath-min(len(root)+1, maxPath/2)], '/')
		if cut <= 0 {
			return nil, &os.PathError{Op: "open", Path: path[:100] + "…", Err: unix.ENAMETOOLONG}
		}
		fd, err := unix.Open(filepath.Join(root, path[:cut]), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path[:cut], Err: err}
		}
		d.path, d.fd = path[:cut], fd
	}
	names := strings.Split(path[len(d.path)+1:], "/")
	for i, name := range names {
		how := flags
		if i < len(names)-1 {
			how = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW
		}
		fd, err := unix.Openat(d.fd, name, how, 0)
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
}

func (f localFile) Size() int64 { return f.size }
