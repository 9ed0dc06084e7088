package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Background runs watchers beside the loop, each on a goroutine of its own with a queue of its own, so that a slow disk or
// server never makes a step wait:
//
//	loop.Background{}.Of(loop.JSONL("run.jsonl", loop.EachStep), loop.Watch(loop.EachStep, send))
//
// A watcher so gets the reports of the turns in which it was due, in their order, but later. When its queue is full the
// oldest report is dropped and counted. The reports have no History and no State, which belong to the loop, and their
// values are read on that goroutine: [Value.Float] must then be safe to be called from several. A wish to stop ([ErrStop])
// is heard when the watcher is due next.
//
// clu's queue has no bound and so grows as long as a writer hangs; ours drops, because a run must not die of its log.
type Background struct {
	// Queue is how many reports may wait for each watcher; 64 if it is 0.
	Queue int
	// Deadline bounds how long the end of the run waits for the queue of each watcher; 10 s if it is 0. What is left then
	// is dropped, and the context of the watcher is cancelled.
	Deadline time.Duration
	// Dropped, if there is one, is told at the end of the run of each watcher that missed reports.
	Dropped func(watcher string, reports int64)
	// Strict makes an error of a watcher one of the run, when the watcher is due next, as it is in clu. Otherwise the watcher
	// goes on with the next report, and the first error is one of the end.
	Strict bool
}

const (
	backgroundQueue    = 64
	backgroundDeadline = 10 * time.Second
	// grace is for a watcher to heed that its context was cancelled.
	grace = time.Second
)

// Of is an option that runs the watchers of other options in the background. Options that do more than watch, or that
// must look before others, are refused.
func (b Background) Of(options ...Option) Option {
	options = slices.Clone(options)
	return func(s *settings) {
		if b.Queue < 0 || b.Deadline < 0 {
			s.errs = append(s.errs, fmt.Errorf("background: queue and deadline must not be negative, got %d and %s", b.Queue, b.Deadline))
			return
		}
		s.late = append(s.late, func(s *settings) { b.add(s, options) })
	}
}

func (b Background) add(s *settings, options []Option) {
	inner := settings{until: s.until, from: s.from, resumed: s.resumed}
	for _, o := range options {
		if o != nil {
			o(&inner)
		}
	}
	for _, o := range inner.late {
		o(&inner)
	}
	s.errs = append(s.errs, inner.errs...)
	if inner.until != s.until || inner.from != s.from || inner.resumed != s.resumed || inner.keep.name != "" || inner.bounds != (bounds{}) ||
		inner.sizes != nil || inner.watchdog != nil || inner.restores != "" {
		s.errs = append(s.errs, errors.New("background: takes options that watch, and only those"))
	}
	for _, w := range inner.watchers {
		if w.first {
			s.errs = append(s.errs, fmt.Errorf("background: %s looks before the others, and cannot do that later", w.label()))
			continue
		}
		start, name := w.start, w.label()
		if start != nil {
			w.start = func() Attendant {
				if a := start(); a != nil {
					return b.New(name, a)
				}
				return nil
			}
		}
		s.watchers = append(s.watchers, w)
	}
}

// New puts an attendant into the background by hand. Its goroutine begins with the first Watch and ends in End, which must be
// called; the name is for Dropped.
func (b Background) New(name string, attendant Attendant) Attendant {
	if b.Queue <= 0 {
		b.Queue = backgroundQueue
	}
	if b.Deadline <= 0 {
		b.Deadline = backgroundDeadline
	}
	return &background{settings: b, name: name, inner: attendant, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// background is an attendant behind a queue. Only its goroutine calls the inner one.
type background struct {
	settings Background
	name     string
	inner    Attendant
	cancel   context.CancelFunc // nil before the goroutine runs
	wake     chan struct{}      // holds a token when there is something new
	done     chan struct{}      // closed when the goroutine is over

	mu      sync.Mutex // of all below
	queue   []Report
	ending  *Ending
	dropped int64
	stop    error // a wish to stop that the loop does not know yet
	err     error // the first
	failed  int64 // how many there were
}

func (b *background) Watch(ctx context.Context, r Report) error {
	b.begin(ctx)
	r = r.detached()
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

// detached is a report that stays as it is when the loop goes on.
func (r Report) detached() Report {
	r.Logs, r.Latest = NewLogs(slices.Clone(r.Logs.entries)), NewLogs(slices.Clone(r.Latest.entries))
	r.History, r.state = nil, nil
	return r
}

func (b *background) begin(ctx context.Context) {
	if b.cancel == nil {
		// What is queued when the run is cancelled is still to be written.
		ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go b.work(ctx)
	}
}

func (b *background) notify() {
	select {
	case b.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

func (b *background) work(ctx context.Context) {
	defer close(b.done)
	for {
		r, ending, ok := b.take()
		switch {
		case ok:
			b.note(r.Elapsed.Steps, shielded(func() error { return b.inner.Watch(ctx, r) }))
		case ending != nil:
			b.note(ending.Elapsed.Steps, shielded(func() error { return b.inner.End(context.WithoutCancel(ctx), *ending) }))
			return
		default:
			<-b.wake
		}
	}
}

func (b *background) take() (r Report, ending *Ending, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return r, b.ending, false
	}
	r = b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1) // which also forgets the values
	return r, nil, true
}

func (b *background) note(step int64, err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err = fmt.Errorf("in the background, at step %d: %w", step, err)
	if isStop(err) {
		b.stop = err
		return
	}
	b.failed++
	if b.err == nil {
		b.err = err
	}
}

// takeErr gives the errors that were not given yet.
func (b *background) takeErr() error {
	err := b.err
	if b.failed > 1 {
		err = fmt.Errorf("%d errors, the first %w", b.failed, err)
	}
	b.err, b.failed = nil, 0
	return err
}

// End waits for the queue and ends the watcher.
func (b *background) End(ctx context.Context, e Ending) error {
	b.begin(ctx)
	e.Report = e.detached()
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

// wait waits until the goroutine is over, or for so long that it is left behind.
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
		return fmt.Errorf("not done %s after the end of the run: its goroutine is left behind", b.settings.Deadline+grace)
	}
}
