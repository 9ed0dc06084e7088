package data

import (
	"fmt"
	"iter"

	"github.com/lazo-ml/lazo/internal/ahead"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Prefetch runs source on its own goroutine, at most depth batches ahead of the consumer. Order and errors are
// unchanged. Source must give each batch its own memory. It must not read the trained state, which is an error, nor
// change what is saved with it (checkpoint.Options.Also).
//
// A panic of source becomes an error after its last batch. When the consumer stops early, Prefetch waits for source; a
// run of package loop waits until its context ends. If source fails then, no batch can carry the error, and the
// consumer's range panics.
func Prefetch[B any](source iter.Seq2[B, error], depth int) iter.Seq2[B, error] {
	if err := refuse("prefetch", source == nil, false); err != nil {
		return failed[B](err)
	}
	return func(yield func(B, error) bool) {
		if depth < 1 || depth > mostAhead {
			var none B
			yield(none, fmt.Errorf("data: prefetch %d batches ahead: expected 1 to %d", depth, mostAhead))
			return
		}
		p := producer[B]{made: make(chan item[B], depth-1), stop: make(chan struct{})} // the producer holds one more
		ahead.Begin()
		go p.run(source)
		stopped := false
		defer func() {
			close(p.stop)
			for range p.made {
			}
			if stopped && p.afterStop != nil {
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

const mostAhead = 1 << 16

type item[B any] struct {
	batch B
	err   error
}

type producer[B any] struct {
	made chan item[B]
	stop chan struct{}
	// afterStop is source's failure after the stop. Read it after made is closed.
	afterStop error
}

func (p *producer[B]) send(i item[B]) bool {
	select {
	case <-p.stop: // even if made has room
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
	ended := false
	shield.Call(func() error {
		for b, err := range source { // panics if source yields after false
			if ended = !p.send(item[B]{b, err}); ended {
				break
			}
		}
		return nil
	}, func(err error) {
		if err == nil {
			return
		} // also after runtime.Goexit, which would look like the end
		err = fmt.Errorf("data: prefetch: the source: %w", err)
		if ended {
			p.afterStop = err
		} else {
			p.send(item[B]{err: err})
		}
	})
}
