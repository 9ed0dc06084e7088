// Package pieces has lists in pieces of memory.
package pieces

import "sort"

const piece = 512

// List grows and shrinks at its end, without copies.
type List[T any] struct {
	pieces [][]T
	n      int
}

func (l *List[T]) Len() int { return l.n }

func (l *List[T]) At(i int) *T {
	return &l.pieces[i/piece][i%piece]
}

func (l *List[T]) Push(v T) {
	end := l.n
	if end/piece == len(l.pieces) {
		var p []T // the first piece grows: most lists are short
		if end > 0 {
			p = make([]T, 0, piece)
		}
		l.pieces = append(l.pieces, p)
	}
	last := &l.pieces[end/piece]
	*last = append(*last, v)
	l.n++
}

func (l *List[T]) Pop() {
	var zero T
	*l.At(l.n - 1) = zero
	l.n--
	l.pieces[l.n/piece] = l.pieces[l.n/piece][:l.n%piece]
}

// Keep removes the elements for which stays, called in order, is false.
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

func (l *List[T]) Search(reached func(*T) bool) int {
	return sort.Search(l.n, func(i int) bool { return reached(l.At(i)) })
}

func (l *List[T]) All(yield func(*T) bool) {
	for i := range l.n {
		if !yield(l.At(i)) {
			return
		}
	}
}
