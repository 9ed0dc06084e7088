// Package reader decides which goroutine owns a run: the one in its data source, which may never return, or the one
// that waits for it.
package reader

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/internal/ahead"
)

const (
	Grace = 500 * time.Millisecond
	poll  = Grace / 5
)

// Reader is the goroutine that ranges over a source. It owns the run while it handles a batch; the caller of Wait does
// after it has taken the run.
type Reader struct {
	// Turn handles a batch and must call Enter at its end. It is nil after the run has left the reader.
	Turn func(last bool, err error) (more bool)
	// Shared: other goroutines can make the waiting steps. The run holds Control except in the source.
	Shared       bool
	Control      sync.Mutex
	Goroutine    string
	Uncancelable bool
	// crossings counts how often the reader entered and left the source; it is odd within. The run belongs to the
	// goroutine that replaces an odd value by compare-and-swap: the reader adds 1, Wait stores leftBehind.
	crossings atomic.Int64
	count     int64
}

const leftBehind = -1

func (r *Reader) Begin() {
	if r.Shared {
		r.Goroutine, _ = ahead.Origin()
	}
	r.Enter()
}

func (r *Reader) End() {
	if r.Shared {
		r.Control.Lock()
	}
}

// Enter notes that the run returns to the source.
func (r *Reader) Enter() {
	if !r.Uncancelable {
		r.count++
		r.crossings.Store(r.count)
	}
}

// Leave notes that the source yielded, and reports whether the reader owns the run.
func (r *Reader) Leave() bool {
	if r.Uncancelable {
		return true
	}
	r.count++
	return r.crossings.CompareAndSwap(r.count-1, r.count)
}

func (r *Reader) Left() bool { return r.crossings.Load() == leftBehind }

func (r *Reader) Yield(last bool, err error) bool {
	if r.Shared {
		return r.yieldShared(last, err)
	}
	return r.Leave() && r.Turn(last, err)
}

func (r *Reader) yieldShared(last bool, err error) bool {
	r.Control.Lock()
	defer r.Control.Unlock()
	return r.Leave() && r.Turn(last, err)
}

// Wait waits for the reader's result. left: the context ended first, and the run belongs to the caller.
func (r *Reader) Wait(ctx context.Context, over <-chan error) (err error, left bool) {
	select {
	case err := <-over:
		return err, false
	case <-ctx.Done():
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for seen, since := r.crossings.Load(), time.Now(); ; {
		select {
		case err := <-over:
			return err, false
		case <-tick.C:
		}
		switch at := r.crossings.Load(); {
		case at != seen:
			seen, since = at, time.Now()
		case at%2 == 1 && time.Since(since) >= Grace && r.crossings.CompareAndSwap(at, leftBehind):
			r.Turn = nil
			return nil, true
		}
	}
}
