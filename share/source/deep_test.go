package source_test

import (
	"golang.org/x/sys/unix"
)

// mkdirDeep makes a chain of folders below root.
func mkdirDeep(root string, depth int) error {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	for range depth {
		if err := unix.Mkdirat(fd, "dd", 0o755); err != nil {
			return err
		}
		next, err := unix.Openat(fd, "dd", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		if err != nil {
			return err
		}
		fd = next
	}
	return unix.Close(fd)
}
