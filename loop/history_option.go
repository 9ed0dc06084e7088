package loop

import "fmt"

// Thin keeps at most so many rows of the history, spread over the whole run: every k-th row and the newest. Its memory
// is bounded then, on the device too. When there are too many rows, k is doubled and every second row dropped. Dropped
// values are not read. Rows with a value that a callback follows ([Callback].Monitor) are kept as well, because a
// resumed run reads them again. [History.Mean] is the mean of the rows that are left. rows must be positive.
func Thin(rows int) Option {
	return setting(func(s *settings) {
		if rows <= 0 {
			s.errs = append(s.errs, fmt.Errorf("thin: rows must be positive, got %d", rows))
			return
		}
		s.rows = rows
	})
}

// restrict sets the bound, if there is one, and drops surplus rows.
func (h *History) restrict(rows int) {
	if rows > 0 {
		h.most = rows
		h.bound()
	}
}

// dropProvisional drops the newest row of a thinned history if it was kept only because it is the newest.
func (h *History) dropProvisional() {
	if h.most == 0 || h.rows.Len() == 0 {
		return
	}
	newest := h.rows.At(h.rows.Len() - 1)
	if h.stays(newest) {
		return
	}
	for _, c := range h.columns {
		c.pop(newest.number)
	}
	h.rows.Pop()
}

// bound drops rows until there are no more than the bound, and those that callbacks follow. How far apart the others
// are is a function of how many rows were committed, so a resumed run keeps the rows that the uninterrupted one keeps.
func (h *History) bound() {
	if h.most == 0 {
		return
	}
	every := max(h.every, 1)
	for (h.number+every-1)/every > int64(h.most) {
		every *= 2
	}
	if every != h.every {
		h.every = every
		h.keepRows(func(r *row) bool { return h.stays(r) || r.number == h.number })
	}
}

func (h *History) keepRows(stay func(*row) bool) {
	stays := func(number int64) bool {
		return stay(h.rows.At(h.rows.Search(func(r *row) bool { return r.number >= number })))
	}
	for _, c := range h.columns {
		c.keep(stays)
	}
	h.rows.Keep(func(i int) bool { return stay(h.rows.At(i)) })
}

func (h *History) stays(r *row) bool { return r.fixed || r.number%max(h.every, 1) == 0 }
