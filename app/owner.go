package app

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ownerFile holds the token by which commands of the data directory's owner are
// operators of the serve on it. A token is valid for one process: one that a crash
// left behind opens nothing.
const ownerFile = "operator.token"

// OwnerToken returns the token of the process that serves a data directory, "" if
// there is none.
func OwnerToken(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, ownerFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%w: only the owner of the data directory and root may control the serve on it (or give --token)", err)
	}
	return strings.TrimSpace(string(b)), err
}

// newOwnerToken makes a token and writes it for the owner alone.
func newOwnerToken(dir string) (token string, err error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	token = hex.EncodeToString(random)
	return token, writePrivate(filepath.Join(dir, ownerFile), token)
}

// writePrivate writes a file that its owner alone may read, whatever the mode of
// one that is there already.
func writePrivate(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// makeDataDir makes the data directory, and takes the rights of others from one
// that is there: it holds the operator's token, copies of pages and passwords of
// sources that were added to a running serve. A folder that others own, or that is
// shared by design (/tmp), is left as it is.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if info.Mode().Perm()&0o077 == 0 || info.Mode()&os.ModeSticky != 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}
