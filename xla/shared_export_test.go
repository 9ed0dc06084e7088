package xla

// SharedPrograms is how many programs a runtime took from those that were there, how many it has, and how many of these
// nobody uses.
func SharedPrograms(r *Runtime) (hits, all, idle int) {
	s := &r.Backend.(*client).shared
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.hits.Load()), len(s.of), len(s.idle)
}
