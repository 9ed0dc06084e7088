package data

import (
	"fmt"
	"iter"
	"sync"

	"github.com/lazo-ml/lazo/internal/ahead"
	"github.com/lazo-ml/lazo/internal/shield"
)

// ParallelMap is [Map] with up to workers (1 or more) calls of f at a time, on goroutines of their own, and as many
// results ahead of the consumer. Order stays as it is; an error, a panic or a runtime.Goexit of f comes as an error in
// the place of its batch, a panic of source as with [Prefetch]. When the consumer stops, ParallelMap waits for the
// calls that have begun.
//
// f must be safe for concurrent use. So that results do not depend on workers, it should be a pure function of its
// batch, as what [Augment] gives is.
func ParallelMap[A, B any](source iter.Seq2[A, error], workers int, f func(A) (B, error)) iter.Seq2[B, error] {
	if workers < 1 || workers > mostAhead {
		return failed[B](fmt.Errorf("data: parallel map with %d workers: expected 1 to %d", workers, mostAhead))
	}
	if err := refuse("parallel map", source == nil, f == nil); err != nil {
		return failed[B](err)
	}
	return func(yield func(B, error) bool) {
		var calls sync.WaitGroup
		defer calls.Wait() // after Prefetch has waited for the source, so no call begins any more
		free := make(chan struct{}, workers)
		begun := Map(source, func(a A) (<-chan item[B], error) {
			free <- struct{}{}
			made := make(chan item[B], 1)
			calls.Add(1)
			ahead.Begin()
			go func() {
				defer calls.Done()
				defer func() { <-free }()
				defer ahead.End()
				call(f, a, made)
			}()
			return made, nil
		})
		for made, err := range Prefetch(begun, workers) {
			var i item[B]
			if i.err = err; err == nil {
				i = <-made
			}
			if !yield(i.batch, i.err) {
				return
			}
		}
	}
}

// call puts what f makes of a into made, whatever way f ends.
func call[A, B any](f func(A) (B, error), a A, made chan<- item[B]) {
	var result item[B]
	shield.Call(func() error {
		result.batch, result.err = f(a)
		return nil
	}, func(err error) {
		if err != nil {
			result = item[B]{err: fmt.Errorf("data: parallel map: the function: %w", err)}
		}
		made <- result
	})
}
