package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
)

// Background runs callbacks in separate goroutines: a slow disk or server delays no step.
//
// Each callback receives its reports in order, without History and State. A full queue drops the oldest.
// [loop.Value.Float] must be safe for concurrent use. A [loop.ErrStop] takes effect when the callback is next due.
type Background struct {
	// Queue is the length of each callback's queue, default 64.
	Queue int
	// Deadline limits the wait for each queue at the run's end, default 10 s. Then the callback's context is cancelled.
	Deadline time.Duration
	// Dropped, if not nil, gets at the end the number of reports that a callback missed.
	Dropped func(callback string, reports int64)
	// Strict ends the run after a callback's error, when next due. Otherwise the run's end returns it.
	Strict bool
}

const (
	backgroundQueue    = 64
	backgroundDeadline = 10 * time.Second
	grace              = time.Second
)

// Of returns c in the background. A callback with Changes, a negative Order or the method Interrupts ([loop.Attendant])
// is an error of the run.
func (b Background) Of(c loop.Callback) loop.Callback {
	switch {
	case b.Queue < 0 || b.Deadline < 0:
		return refused(c, fmt.Errorf("background: queue and deadline must not be negative, got %d and %s", b.Queue, b.Deadline))
	case c.Changes:
		return refused(c, errors.New("background: the callback may change the state, which a background callback cannot do"))
	case c.Order < 0:
		return refused(c, errors.New("background: the callback must run before the others (Order below 0), which a background callback cannot do"))
	}
	if b.Queue <= 0 {
		b.Queue = backgroundQueue
	}
	if b.Deadline <= 0 {
		b.Deadline = backgroundDeadline
	}
	start := c.Start
	if start == nil {
		return c
	}
	c.Start = func(from loop.Beginning) (loop.Attendant, error) {
		a, err := start(from)
		if a == nil || err != nil {
			return a, err
		}
		switch a.(type) {
		case abilities.Observer, abilities.Interrupter:
			return a, &refusal{c.Name, fmt.Errorf("background: the run calls a %T on its own goroutine, so it cannot run in the background", a)}
		}
		return &background{settings: b, name: c.String(), inner: a, wake: make(chan struct{}, 1), done: make(chan struct{})}, nil
	}
	return c
}

type background struct {
	settings Background
	name     string
	inner    loop.Attendant
	cancel   context.CancelFunc
	wake     chan struct{}
	done     chan struct{}

	mu      sync.Mutex
	queue   []loop.Report
	ending  *loop.Ending
	dropped int64
	stop    error
	err     error
	failed  int64
}

func (b *background) Watch(ctx context.Context, r loop.Report) error {
	b.begin(ctx)
	r = r.Detached()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.stop; err != nil {
		b.stop = nil
		return err
	}
	if b.settings.Strict && b.err != nil {
		return b.takeErr()
	}
	if len(b.queue) == b.settings.Queue {
		b.queue = slices.Delete(b.queue, 0, 1)
		b.dropped++
	}
	b.queue = append(b.queue, r)
	b.notify()
	return nil
}

func (b *background) begin(ctx context.Context) {
	if b.cancel == nil {
		// A cancellation still writes queued reports.
		ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go b.work(ctx)
	}
}

func (b *background) notify() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *background) work(ctx context.Context) {
	defer close(b.done)
	for {
		r, ending, ok := b.take()
		switch {
		case ok:
			b.note(r.Elapsed.Steps, shield.Run(func() error { return b.inner.Watch(ctx, r) }))
		case ending != nil:
			b.note(ending.Elapsed.Steps, shield.Run(func() error { return b.inner.End(context.WithoutCancel(ctx), *ending) }))
			return
		default:
			<-b.wake
		}
	}
}

func (b *background) take() (r loop.Report, ending *loop.Ending, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return r, b.ending, false
	}
	r = b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	return r, nil, true
}

func (b *background) note(step int64, err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err = fmt.Errorf("in the background, at step %d: %w", step, err)
	if errors.Is(err, loop.ErrStop) {
		b.stop = err
		return
	}
	b.failed++
	if b.err == nil {
		b.err = err
	}
}

func (b *background) takeErr() error {
	err := b.err
	if b.failed > 1 {
		err = fmt.Errorf("%d errors, the first %w", b.failed, err)
	}
	b.err, b.failed = nil, 0
	return err
}

func (b *background) End(ctx context.Context, e loop.Ending) error {
	b.begin(ctx)
	e.Report = e.Detached()
	b.mu.Lock()
	b.ending = &e
	b.notify()
	b.mu.Unlock()
	err := b.wait()
	b.cancel()
	b.mu.Lock()
	err = errors.Join(b.takeErr(), err)
	dropped := b.dropped
	b.mu.Unlock()
	if dropped > 0 && b.settings.Dropped != nil {
		b.settings.Dropped(b.name, dropped)
	}
	return err
}

func (b *background) wait() error {
	deadline := time.NewTimer(b.settings.Deadline)
	defer deadline.Stop()
	select {
	case <-b.done:
		return nil
	case <-deadline.C:
	}
	b.mu.Lock()
	b.dropped += int64(len(b.queue))
	b.queue = nil
	b.mu.Unlock()
	b.cancel()
	deadline.Reset(grace)
	select {
	case <-b.done:
		return nil
	case <-deadline.C:
		return fmt.Errorf("not done %s after the end of the run: its goroutine was abandoned", b.settings.Deadline+grace)
	}
}
