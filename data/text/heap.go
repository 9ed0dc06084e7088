package text

type heap[T any] struct {
	list   []T
	before func(a, b T) bool
}

func (h *heap[T]) push(x T) {
	h.list = append(h.list, x)
	for i := len(h.list) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(h.list[i], h.list[up]) {
			break
		}
		h.list[i], h.list[up] = h.list[up], h.list[i]
		i = up
	}
}

func (h *heap[T]) pop() (first T, ok bool) {
	if len(h.list) == 0 {
		return first, false
	}
	first, last := h.list[0], len(h.list)-1
	h.list[0] = h.list[last]
	h.list = h.list[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next+1 < last && h.before(h.list[next+1], h.list[next]) {
			next++
		}
		if next >= last || !h.before(h.list[next], h.list[i]) {
			return first, true
		}
		h.list[i], h.list[next] = h.list[next], h.list[i]
		i = next
	}
}
