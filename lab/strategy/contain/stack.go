package contain

// Stack is last in, first out. Up to two blocks at the top are in memory; those
// below are files.
type Stack[T Word] struct {
	blocks[T]
	top   []T
	files []block
	n     int
}

// NewStack returns an empty stack.
func NewStack[T Word](env *Env) *Stack[T] { return &Stack[T]{blocks: newBlocks[T](env)} }

// Len implements Sequence.
func (s *Stack[T]) Len() int { return s.n }

// Push implements Sequence.
func (s *Stack[T]) Push(v int64) error {
	if len(s.top) == cap(s.top) {
		if err := s.ensureStackRoom(); err != nil {
			return err
		}
	}
	s.top = append(s.top, T(v))
	s.n++
	return nil
}

// ensureStackRoom makes room: a full buffer's lower half becomes a file.
func (s *Stack[T]) ensureStackRoom() (err error) {
	if cap(s.top) < 2*s.size {
		s.top, err = s.growBuffer(s.top, 2*s.size)
		return err
	}
	b, err := s.writeBlock(s.top[:s.size])
	if err != nil {
		return err
	}
	s.files = append(s.files, b)
	s.top = s.top[:copy(s.top, s.top[s.size:])]
	return nil
}

// readTopFile reads the topmost file.
func (s *Stack[T]) readTopFile() (err error) {
	last := len(s.files) - 1
	if s.top, err = s.readBlock(s.files[last], s.top); err != nil {
		return err
	}
	s.files = s.files[:last]
	return nil
}

// Pop implements Sequence.
func (s *Stack[T]) Pop() (int64, error) {
	v, err := s.Top()
	if err != nil {
		return 0, err
	}
	s.top = s.top[:len(s.top)-1]
	s.n--
	return v, nil
}

// Top implements Sequence.
func (s *Stack[T]) Top() (int64, error) {
	if len(s.top) == 0 {
		if err := s.readTopFile(); err != nil {
			return 0, err
		}
	}
	return int64(s.top[len(s.top)-1]), nil
}

// Clear implements Sequence.
func (s *Stack[T]) Clear() error {
	for _, b := range s.files {
		if err := s.dropBlock(b); err != nil {
			return err
		}
	}
	s.files, s.top, s.n = nil, s.top[:0], 0
	return nil
}

// Free gives back what the stack holds; it is empty then.
func (s *Stack[T]) Free() error {
	err := s.Clear()
	s.releaseBuffer(s.top)
	s.top = nil
	return err
}

// Each calls f with every element from the bottom up, without removing any:
// pushed in this order they make the same stack.
func (s *Stack[T]) Each(f func(int64) error) error {
	for _, b := range s.files {
		if err := s.forEachWord(b, f); err != nil {
			return err
		}
	}
	for _, v := range s.top {
		if err := f(int64(v)); err != nil {
			return err
		}
	}
	return nil
}
