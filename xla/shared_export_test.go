package xla

import "github.com/lazo-ml/lazo/internal/pjrt"

// SharedPrograms returns how often a runtime shared a program, how many it has, and how many of these are idle.
func SharedPrograms(r *Runtime) (hits, all, idle int) {
	s := &r.Backend.(*pjrtClient).shared
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.hits.Load()), len(s.of), len(s.idle)
}

// ShareAtOnce has n goroutines ask for one text.
func ShareAtOnce(n int, compile func() error) (results <-chan error) {
	s, ended := &sharedPrograms{keep: n}, make(chan error, n)
	for range n {
		go func() {
			_, err := s.program("module", pjrt.CompileOptions{}, func() (*pjrt.Executable, error) { return new(pjrt.Executable), compile() })
			ended <- err
		}()
	}
	return ended
}
