package xla

// KeepPrograms sets how many programs are kept.
func (e *Eager) KeepPrograms(n int) { e.keep = n }
