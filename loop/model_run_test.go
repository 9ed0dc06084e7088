package loop_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// recorded is the outcome of Run.
type recorded struct {
	outcome
	history *loop.History
	blocks  int // of more than one step
	cancel  context.CancelCauseFunc
	back    atomic.Pointer[chan struct{}] // closed when data that hung came back
}

// run passes the program to Run.
func (p program) run(t require.TestingT, from outcome, history *loop.History) *recorded {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	rec := &recorded{cancel: cancel}
	var tasks []loop.Task[uint64, batch]
	for i := range p.tasks {
		tasks = append(tasks, rec.taskOf(&p.tasks[i]))
	}
	options := []loop.Option{loop.Continue(from.at, history), loop.Keep(p.keep)}
	if p.until != nil {
		options = append(options, loop.Until(p.until))
	}
	if p.limit > 0 {
		options = append(options, loop.Thin(p.limit))
	}
	for i := range p.watchers {
		w := &p.watchers[i]
		start := func() loop.Attendant { return watched{w, rec} }
		if w.entry != "" {
			c := attend(w.name, loop.Schedule{}, start)
			c.Entry = w.entry
			options = append(options, c)
		} else {
			options = append(options, attend(w.name, w.when, start))
		}
	}
	result, err := loop.New(tasks...).Run(ctx, from.state, rest(rec.data(p, int(from.at.Steps))), options...)
	rec.state, rec.at, rec.reason, rec.history = result.State, counts(result.Elapsed), result.Reason, result.History
	if result.Stop != nil {
		rec.stop = result.Stop.Error()
	}
	if err != nil {
		rec.errs = []string{err.Error()}
	}
	rec.readRows(t)
	if back := rec.back.Load(); back != nil {
		trace := len(rec.trace)
		<-*back
		require.Len(t, rec.trace, trace, "data that comes back late finds nobody")
	}
	return rec
}

func (rec *recorded) readRows(t require.TestingT) {
	var sizes []float64
	if rec.history.Len() > 0 {
		lists, err := rec.history.Collect("elapsed.batch")
		require.NoError(t, err)
		sizes = lists[0]
	}
	for at, logs := range rec.history.Rows() {
		rec.rows = append(rec.rows, rowOf(at, int(sizes[len(rec.rows)]), read(logs)))
	}
}

func (rec *recorded) data(p program, from int) loop.Data[batch] {
	return func(yield func(batch, error) bool) {
		for i := from; i <= len(p.sizes); i++ {
			var err error
			size := 0
			if i < len(p.sizes) {
				size = p.sizes[i]
			}
			if i == p.faultAt {
				switch p.fault {
				case "error":
					err = errBoom
				case "panic":
					panic("boom")
				case "cancel":
					rec.cancel(errHome)
				case "hang": // for so long that the run does not wait for it
					rec.cancel(errHome)
					back := make(chan struct{})
					rec.back.Store(&back)
					defer close(back)
					time.Sleep(time.Hour)
				case "negative":
					size = -1
				}
			}
			if i == len(p.sizes) && err == nil || !yield(batch{i, size}, err) {
				return
			}
		}
	}
}

func (rec *recorded) taskOf(p *part) loop.Task[uint64, batch] {
	switch {
	case p.turn:
		return loop.OnTurn(p.when, func(_ context.Context, turn *loop.Turn[uint64, batch]) error {
			seen := read(turn.Logs)
			rec.trace = append(rec.trace, event{call: turnCall(p.name, turn.Batch, turn.State, turn.Elapsed, seen)})
			state, logs, err := rec.compute(p, turn.State, turn.Batch, seen)
			if err == nil || errors.Is(err, loop.ErrStop) {
				turn.State = state
				turn.Logs.Merge(logs)
			}
			return err
		}).Named(p.name)
	case p.block > 0:
		return loop.On[uint64, batch](p.when, blockStepper{stepper{p, rec}}).Named(p.name)
	}
	return loop.On[uint64, batch](p.when, stepper{p, rec}).Named(p.name)
}

// compute is a task's work; with an error it gives a state that must not be used.
func (rec *recorded) compute(p *part, state uint64, b batch, seen []logged) (uint64, loop.Logs, error) {
	time.Sleep(p.takes)
	var err error
	if b.index == p.at {
		err = rec.happens(p)
	}
	if err != nil && !errors.Is(err, loop.ErrStop) {
		return 999, loop.Logs{}, err
	}
	state, values := p.computed(state, b, seen)
	var logs loop.Logs
	for _, l := range values {
		logs.Metric(l.name, l.value)
	}
	return state, logs, err
}

func (rec *recorded) happens(p *part) error {
	switch p.does {
	case "error":
		return errBoom
	case "panic":
		panic("boom")
	case "cancel":
		rec.cancel(errHome)
	case "stop":
		return loop.ErrStop
	}
	return nil
}

type stepper struct {
	*part
	rec *recorded
}

func (s stepper) Step(_ context.Context, state uint64, b batch) (uint64, loop.Logs, error) {
	s.rec.trace = append(s.rec.trace, event{call: stepCall(s.name, b, state)})
	return s.rec.compute(s.part, state, b, nil)
}

type blockStepper struct{ stepper }

func (s blockStepper) BlockSize() int { return s.block }

func (s blockStepper) Step(ctx context.Context, state uint64, b batch) (uint64, loop.Logs, error) {
	if s.block > 1 {
		return 0, loop.Logs{}, errors.New("step called for a block stepper")
	}
	return s.stepper.Step(ctx, state, b)
}

func (s blockStepper) StepBlock(ctx context.Context, state uint64, batches []batch) (uint64, []loop.Logs, error) {
	if len(batches) == 0 || len(batches) > s.block {
		return 0, nil, fmt.Errorf("a block of %d batches, allowed are 1 to %d", len(batches), s.block)
	}
	if len(batches) > 1 {
		s.rec.blocks++
	}
	return stepEach(ctx, s.stepper.Step, state, batches)
}

type watched struct {
	*part
	rec *recorded
}

func (w watched) Watch(_ context.Context, r loop.Report) error {
	w.rec.trace = append(w.rec.trace, w.call(r))
	if int(r.Elapsed.Steps) == w.at {
		return w.rec.happens(w.part)
	}
	return nil
}

func (w watched) End(_ context.Context, e loop.Ending) error {
	w.rec.trace = append(w.rec.trace, endCall(w.name, e.Reason, e.Err != nil, w.call(e.Report)))
	if w.does == "end" {
		return errBoom
	}
	return nil
}

func (w watched) call(r loop.Report) event {
	return watchCall(w.name, r.Elapsed, r.State().(uint64), read(r.Logs), read(r.Latest), r.History.Len())
}

func read(logs loop.Logs) (all []logged) {
	for e := range logs.All() {
		v, err := e.Value.Float()
		if err != nil {
			panic(err)
		}
		all = append(all, logged{e.Name, v})
	}
	return all
}

func counts(e loop.Elapsed) loop.Elapsed { return loop.Elapsed{Steps: e.Steps, Samples: e.Samples} }
