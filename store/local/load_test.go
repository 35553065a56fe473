package local

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet/freshet/store"
)

// A store into which a copy was begun is opened by nobody before the copy was finished.
func TestPartialCopy(t *testing.T) {
	t.Parallel()
	for _, finish := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "store")
		s, err := Open(dir, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context(), &store.Part{Hosts: []store.Host{{Name: "a"}}}); err != nil {
			t.Fatal(err)
		}
		if finish {
			if err := s.Loaded(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, err = Open(dir, Config{})
		if errors.Is(err, store.ErrPartial) == finish || err != nil && !strings.Contains(err.Error(), "remove the folder") {
			t.Errorf("finished: %v: opening fails with %v", finish, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
}
