package loop

import "sort"

// piece is how many elements of a list lie together.
const piece = 512

// list grows at its end and shrinks at both ends. It consists of pieces, so that a long one is not copied when it
// grows, and what was dropped at its front is freed.
type list[T any] struct {
	pieces [][]T
	first  int // index of the first element, in the first piece
	n      int
}

func (l *list[T]) at(i int) *T {
	i += l.first
	return &l.pieces[i/piece][i%piece]
}

func (l *list[T]) push(v T) {
	end := l.first + l.n
	if end/piece == len(l.pieces) {
		var p []T // the first piece begins small: most columns of a short run are short
		if end > 0 {
			p = make([]T, 0, piece)
		}
		l.pieces = append(l.pieces, p)
	}
	last := &l.pieces[end/piece]
	*last = append(*last, v)
	l.n++
}

// shift drops the first element.
func (l *list[T]) shift() {
	var zero T
	*l.at(0) = zero // so that what it points to can be freed
	l.n--
	if l.first++; l.first == piece {
		l.pieces[0] = nil
		l.pieces, l.first = l.pieces[1:], 0
	}
}

// pop drops the last element.
func (l *list[T]) pop() {
	var zero T
	*l.at(l.n - 1) = zero
	l.n--
	end := l.first + l.n
	l.pieces[end/piece] = l.pieces[end/piece][:end%piece]
}

// keep drops all elements but those for which stays is true. It is called in order.
func (l *list[T]) keep(stays func(i int) bool) {
	kept := 0
	for i := range l.n {
		if stays(i) {
			*l.at(kept) = *l.at(i)
			kept++
		}
	}
	for l.n > kept {
		l.pop()
	}
}

// search finds the first element for which reached is true, n if there is none.
func (l *list[T]) search(reached func(*T) bool) int {
	return sort.Search(l.n, func(i int) bool { return reached(l.at(i)) })
}

// all iterates over the elements.
func (l *list[T]) all(yield func(*T) bool) {
	for i := range l.n {
		if !yield(l.at(i)) {
			return
		}
	}
}
