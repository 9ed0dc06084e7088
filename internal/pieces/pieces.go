// Package pieces has lists that lie in memory piece by piece.
package pieces

import "sort"

// piece is how many elements of a list lie together.
const piece = 512

// List grows and shrinks at its end. It consists of pieces, so that a long one is not copied when it grows.
type List[T any] struct {
	pieces [][]T
	n      int
}

// Len is the number of elements.
func (l *List[T]) Len() int { return l.n }

// At is the i-th element.
func (l *List[T]) At(i int) *T {
	return &l.pieces[i/piece][i%piece]
}

// Push adds an element at the end.
func (l *List[T]) Push(v T) {
	end := l.n
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

// Pop drops the last element.
func (l *List[T]) Pop() {
	var zero T
	*l.At(l.n - 1) = zero
	l.n--
	l.pieces[l.n/piece] = l.pieces[l.n/piece][:l.n%piece]
}

// Keep drops all elements but those for which stays is true. It is called in order.
func (l *List[T]) Keep(stays func(i int) bool) {
	kept := 0
	for i := range l.n {
		if stays(i) {
			*l.At(kept) = *l.At(i)
			kept++
		}
	}
	for l.n > kept {
		l.Pop()
	}
}

// Search finds the first element for which reached is true, n if there is none.
func (l *List[T]) Search(reached func(*T) bool) int {
	return sort.Search(l.n, func(i int) bool { return reached(l.At(i)) })
}

// All iterates over the elements.
func (l *List[T]) All(yield func(*T) bool) {
	for i := range l.n {
		if !yield(l.At(i)) {
			return
		}
	}
}
