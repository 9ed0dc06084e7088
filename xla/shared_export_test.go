package xla

// SharedPrograms returns how often a runtime shared a program, how many it has, and how many of these are idle.
func SharedPrograms(r *Runtime) (hits, all, idle int) {
	s := &r.Backend.(*pjrtClient).shared
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.hits.Load()), len(s.of), len(s.idle)
}
