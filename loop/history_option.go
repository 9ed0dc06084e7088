package loop

import "fmt"

// Thin limits the history, and its memory on the device, to this many rows (at least 1): every k-th and the newest.
// Above the limit it doubles k and drops every second row unread. It also keeps rows that a callback follows
// ([Callback].Monitor). [History.Mean] uses the remaining rows.
func Thin(rows int) Option {
	return setting(func(s *settings) {
		if rows <= 0 {
			s.errs = append(s.errs, fmt.Errorf("thin: rows must be positive, got %d", rows))
			return
		}
		s.rows = rows
	})
}

func (h *History) restrict(rows int) {
	if rows > 0 {
		h.most = rows
		h.bound()
	}
}

func (h *History) dropProvisional() {
	if h.most == 0 || h.rows.Len() == 0 {
		return
	}
	newest := h.rows.At(h.rows.Len() - 1)
	if h.stays(newest) {
		return
	}
	for _, c := range h.columns {
		c.Pop(newest.number)
	}
	h.rows.Pop()
}

// The distance of the rows left depends only on the number of committed ones, as in a resumed run.
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
		c.Keep(stays)
	}
	h.rows.Keep(func(i int) bool { return stay(h.rows.At(i)) })
}

func (h *History) stays(r *row) bool { return r.fixed || r.number%max(h.every, 1) == 0 }
