package data

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
)

// Prefetch runs source on a goroutine of its own, at most depth batches (1 or more) ahead of the consumer: the next
// batch is made while the present one is worked on. Order and errors stay as they are.
//
// So source must give each batch memory of its own, as [Set.Batches] does, and leave it alone afterwards: the consumer still
// works on a batch, or holds several for a block of steps, while source fills the next. Prefetch itself copies nothing.
//
// A panic of source arrives as an error, with its stack, behind the batches made before it. When the consumer stops
// early, Prefetch waits for source to return, so nothing that source uses is still in use afterwards. It so waits for a source
// that blocks, for ever if need be; a run of package loop leaves both behind when its context ends.
func Prefetch[B any](source iter.Seq2[B, error], depth int) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		if depth < 1 || depth > mostAhead {
			var none B
			yield(none, fmt.Errorf("data: prefetch %d batches ahead: expected 1 to %d", depth, mostAhead))
			return
		}
		made := make(chan item[B], depth-1) // and one in the producer's hand
		stop := make(chan struct{})
		go produce(source, made, stop)
		defer func() {
			close(stop)
			for range made { // until the producer has ended
			}
		}()
		for i := range made {
			if !yield(i.batch, i.err) {
				return
			}
		}
	}
}

// mostAhead bounds what a queue takes by itself.
const mostAhead = 1 << 16

type item[B any] struct {
	batch B
	err   error
}

func produce[B any](source iter.Seq2[B, error], made chan<- item[B], stop <-chan struct{}) {
	defer close(made)
	send := func(i item[B]) bool {
		select {
		case made <- i:
			return true
		case <-stop:
			return false
		}
	}
	returned := false
	defer func() {
		switch v := recover().(type) {
		case nil:
			if !returned { // else a source that ends its goroutine would look like the end of the data
				send(item[B]{err: errors.New("data: prefetch: the source ended its goroutine (runtime.Goexit)")})
			}
		case error:
			send(item[B]{err: fmt.Errorf("data: prefetch: the source panicked: %w\n%s", v, debug.Stack())})
		default:
			send(item[B]{err: fmt.Errorf("data: prefetch: the source panicked: %v\n%s", v, debug.Stack())})
		}
	}()
	source(func(b B, err error) bool { return send(item[B]{b, err}) })
	returned = true
}
