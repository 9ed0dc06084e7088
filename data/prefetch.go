package data

import (
	"fmt"
	"iter"

	"github.com/lazo-ml/lazo/internal/ahead"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Prefetch runs source on a goroutine of its own, at most depth batches (1 or more) ahead of the consumer: the next
// batch is made while the present one is worked on. Order and errors stay as they are.
//
// So source must give each batch memory of its own, as [Set.Batches] does, and leave it alone afterwards: the consumer
// still works on a batch, or holds several for a block of steps, while source fills the next. Prefetch itself copies
// nothing.
//
// Source is ahead of the run's steps. So it must not read the state that is trained, which is an error of the run, nor
// change what is saved with the state (checkpoint.Options.Also): the values would be those of a later batch.
//
// A panic of source arrives as an error behind the batches made before it. When the consumer stops
// early, Prefetch waits for source to return, so nothing that source uses is still in use afterwards. If source blocks,
// it waits for ever; a run of package loop leaves both behind when its context ends. A fault of source after the
// consumer has stopped (a panic in a defer, or a call of yield after it returned false) is a panic of the consumer's
// range, as it is without Prefetch.
func Prefetch[B any](source iter.Seq2[B, error], depth int) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		if depth < 1 || depth > mostAhead {
			var none B
			yield(none, fmt.Errorf("data: prefetch %d batches ahead: expected 1 to %d", depth, mostAhead))
			return
		}
		p := producer[B]{made: make(chan item[B], depth-1), stop: make(chan struct{})} // and one that the producer holds
		ahead.Begin()
		go p.run(source)
		stopped := false
		defer func() {
			close(p.stop)
			for range p.made { // until the producer has ended
			}
			if stopped && p.afterStop != nil { // not if the consumer panicked: its own panic goes on
				panic(p.afterStop)
			}
		}()
		for i := range p.made {
			if stopped = !yield(i.batch, i.err); stopped {
				return
			}
		}
	}
}

// mostAhead limits the memory that an empty queue takes.
const mostAhead = 1 << 16

type item[B any] struct {
	batch B
	err   error
}

type producer[B any] struct {
	made chan item[B]
	stop chan struct{}
	// afterStop is a fault of source after the consumer stopped; to be read when made is closed.
	afterStop error
}

// send tells whether there is to be more.
func (p *producer[B]) send(i item[B]) bool {
	select {
	case <-p.stop: // even if there is place in made
		return false
	default:
	}
	select {
	case p.made <- i:
		return true
	case <-p.stop:
		return false
	}
}

func (p *producer[B]) run(source iter.Seq2[B, error]) {
	defer close(p.made)
	defer ahead.End()
	ended := false // the consumer has stopped
	shield.Call(func() error {
		for b, err := range source { // not source(send): ranged over, a source that calls yield after a false panics
			if ended = !p.send(item[B]{b, err}); ended {
				break
			}
		}
		return nil
	}, func(err error) {
		if err == nil {
			return
		} // also of a source that calls runtime.Goexit, which would look like the end of the data
		err = fmt.Errorf("data: prefetch: the source: %w", err)
		if ended {
			p.afterStop = err
		} else {
			p.send(item[B]{err: err})
		}
	})
}
