//go:build unix

package pdftext

import (
	"os"

	"golang.org/x/sys/unix"
)

// reserve maps n bytes of zeros; the machine gives a page when it is touched.
func reserve(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unreserve(b []byte) { _ = unix.Munmap(b) } // fails only for what is not mapped

// ownDirectory reports whether dir belongs to this process's user and nobody else
// may write it.
func ownDirectory(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&0o022 == 0 && int(st.Uid) == os.Geteuid()
}
