package loop

import "fmt"

// bounds is how many rows a history keeps, and which.
type bounds struct {
	rows   int // no bound where 0
	spread bool
}

// Limit keeps only the newest rows of the history, so that its memory is bounded, on the device too. Dropped values are
// not read. Of Limit and [Thin] the last option holds. rows must be positive.
func Limit(rows int) Option { return setBounds("limit", bounds{rows: rows}) }

// Thin keeps at most so many rows of the history, spread over the whole run: every k-th row and the newest. When there
// are too many, k is doubled and every second row dropped. [History.Mean] is the mean of the rows that are left. rows
// must be positive.
func Thin(rows int) Option { return setBounds("thin", bounds{rows: rows, spread: true}) }

func setBounds(name string, b bounds) Option {
	return setting(func(s *settings) {
		if b.rows <= 0 {
			s.errs = append(s.errs, fmt.Errorf("%s: rows must be positive, got %d", name, b.rows))
			return
		}
		s.bounds = b
	})
}

// restrict sets the bounds, if there are any, and drops surplus rows.
func (h *History) restrict(b bounds) {
	if b.rows > 0 {
		h.bounds = b
		h.bound()
	}
}

// dropProvisional drops the newest row of a thinned history if it was kept only because it is the newest.
func (h *History) dropProvisional() {
	if !h.bounds.spread || h.rows.Len() == 0 {
		return
	}
	newest := h.rows.At(h.rows.Len() - 1).number
	if h.stays(newest) {
		return
	}
	for _, c := range h.columns {
		c.pop(newest)
	}
	h.rows.Pop()
}

// bound drops rows until there are no more than the bound.
func (h *History) bound() {
	for h.bounds.rows > 0 && h.rows.Len() > h.bounds.rows {
		if h.bounds.spread {
			h.every = max(2*h.every, 2)
			h.thin()
			continue
		}
		for _, c := range h.columns {
			c.shift(h.rows.At(0).number)
		}
		h.rows.Shift()
	}
}

func (h *History) thin() {
	stays := func(row int64) bool { return h.stays(row) || row == h.number }
	for _, c := range h.columns {
		c.keep(stays)
	}
	h.rows.Keep(func(i int) bool { return stays(h.rows.At(i).number) })
}

func (h *History) stays(row int64) bool { return row%max(h.every, 1) == 0 }
