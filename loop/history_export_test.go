package loop

// Commit lets tests make histories with any elapsed time.

// Restricted is an empty history with the bounds that the option sets.
func Restricted(o Option) *History {
	h := &History{}
	h.restrict(newSettings([]Option{o}, nil).rows)
	return h
}
