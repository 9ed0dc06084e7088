package data

import (
	"fmt"
	"iter"
	"sync"

	"github.com/lazo-ml/lazo/internal/ahead"
	"github.com/lazo-ml/lazo/internal/shield"
)

// ParallelMap is [Map] with up to workers concurrent calls of f, and as many results ahead, in order. An error, panic
// or runtime.Goexit of f becomes an error instead of its batch. When the consumer stops, ParallelMap waits for running
// calls. Panics of source are as in [Prefetch].
func ParallelMap[A, B any](source iter.Seq2[A, error], workers int, f func(A) (B, error)) iter.Seq2[B, error] {
	if workers < 1 || workers > mostAhead {
		return failed[B](fmt.Errorf("data: parallel map with %d workers: expected 1 to %d", workers, mostAhead))
	}
	if err := refuse("parallel map", source == nil, f == nil); err != nil {
		return failed[B](err)
	}
	return parallel(source, workers, func(a A) (B, error) { makeWritable(&a); return f(a) })
}

func parallel[A, B any](source iter.Seq2[A, error], workers int, f func(A) (B, error)) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var calls sync.WaitGroup
		defer calls.Wait() // Prefetch waited for the source
		free := make(chan struct{}, workers)
		begun := mapped(source, func(a A) (<-chan item[B], error) {
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
