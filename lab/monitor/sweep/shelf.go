package sweep

import (
	"path/filepath"
	"sync"

	"github.com/freshet/freshet/lab/field"
)

// shelf keeps field files in memory while jobs need them: each is read once.
type shelf struct {
	base  string
	mu    sync.Mutex
	files map[string]*volume
}

type volume struct {
	jobs int // that are still to come
	once sync.Once
	h    *field.History
	err  error
}

func newShelf(base string, todo []Job) *shelf {
	s := &shelf{base: base, files: map[string]*volume{}}
	for _, j := range todo {
		if name := j.Factors.File; name != "" {
			if s.files[name] == nil {
				s.files[name] = &volume{}
			}
			s.files[name].jobs++
		}
	}
	return s
}

// getHistory reads a file, or waits for another worker that does.
func (s *shelf) getHistory(name string) (*field.History, error) {
	s.mu.Lock()
	v := s.files[name]
	s.mu.Unlock()
	v.once.Do(func() {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.base, path)
		}
		v.h, v.err = field.ReadFile(path)
	})
	return v.h, v.err
}

// releaseHistory gives a file back; after its last job it is forgotten.
func (s *shelf) releaseHistory(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.files[name]; v != nil {
		if v.jobs--; v.jobs == 0 {
			delete(s.files, name)
		}
	}
}
