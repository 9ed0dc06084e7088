package loop

// Commit lets tests make histories with any elapsed time.
func (h *History) Commit(elapsed Elapsed, logs Logs, samples int64) { h.commit(elapsed, logs, samples) }

// Restricted is an empty history with the bounds that the option sets.
func Restricted(o Option) *History {
	h := &History{}
	h.restrict(newSettings([]Option{o}).bounds)
	return h
}
