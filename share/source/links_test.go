package source

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// No link is followed in any place of a path, with and without the system call that
// refuses them by itself; the root may be one.
func TestLocalLinks(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, dir := range []string{"share/real/deep", "outside/deep"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, dir, "file"), []byte(dir), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"root": "share", "share/out": "../outside", "share/absolute": filepath.Join(top, "outside"), "share/in": "real", "share/real/file": "deep/file", "share/self": "self",
		"share/proc": "/proc/self/root",
	} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		path string
		want Class // "" is none
	}{
		{"real/deep/file", ""},
		{"out/deep/file", Gone},
		{"absolute/deep/file", Gone},
		{"in/deep/file", Gone},
		{"real/file", Gone},
		{"self/file", Gone},
		{"proc/etc/passwd", Gone},
		{"real/deep/file/x", Gone},
		{"none/file", Gone},
	}
	for _, root := range []string{"share", "root"} {
		src, err := Dial(t.Context(), &url.URL{Scheme: "file", Path: filepath.Join(top, root)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		for _, tt := range tests {
			f, err := src.Open(t.Context(), tt.path)
			if err == nil {
				f.Close()
			}
			if got := classOrNone(err); got != tt.want {
				t.Errorf("Open(%q) below %s: %v, want class %q", tt.path, root, err, tt.want)
			}
			if _, err := src.List(t.Context(), filepath.Dir(tt.path)); tt.path != "real/file" && tt.path != "real/deep/file/x" && classOrNone(err) != tt.want {
				t.Errorf("List(%q) below %s: %v, want class %q", filepath.Dir(tt.path), root, err, tt.want)
			}
		}
		for _, path := range []string{"../outside/deep/file", "real/../../outside/deep/file", "/etc/passwd"} {
			if f, err := src.Open(t.Context(), path); err == nil {
				f.Close()
				t.Errorf("Open(%q) below %s leads out of the share", path, root)
			}
		}
	}
	dir, err := openAt(unix.AT_FDCWD, filepath.Join(top, "share"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	for _, tt := range append(tests, struct {
		path string
		want Class
	}{"../outside/deep/file", Gone}, struct {
		path string
		want Class
	}{"real/../../outside/deep/file", Gone}) {
		fd, err := openByName(dir, tt.path, unix.O_RDONLY|unix.O_CLOEXEC)
		if err == nil {
			unix.Close(fd)
		}
		if got := classOrNone(err); got != tt.want {
			t.Errorf("openByName(%q): %v, want class %q", tt.path, err, tt.want)
		}
	}
}

func classOrNone(err error) Class {
	if err == nil {
		return ""
	}
	return ClassOf(err)
}
