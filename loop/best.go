package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Best is the best value of an entry, and where in the run it was.
type Best struct {
	Value   float64
	Elapsed Elapsed
}

// Best finds the best value that was logged under a name; of equal ones, the first. It knows the rows that were kept
// only. NaN and infinities are passed over; where there is nothing else, the error wraps [ErrNonFinite].
func (h *History) Best(entry string, mode Mode) (Best, error) {
	mode, err := mode.of(entry)
	if err != nil {
		return Best{}, fmt.Errorf("loop: history: best of %q: %w", entry, err)
	}
	best, found := Best{Value: mode.worst()}, false
	err = h.each(entry, func(r row, v float64) {
		if mode.beats(v, best.Value, 0) {
			best, found = Best{v, r.elapsed}, true
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("loop: history: best of %q: no value is finite: %w", entry, ErrNonFinite)
	}
	if err != nil {
		return Best{}, err
	}
	return best, nil
}

// OnBest calls a function in each turn in which an entry has a better value than ever before: a place to save the best
// state. The first finite value is better than none. The function is a watcher like others: an error of it ends the
// run. A run that is resumed with its history ([From]) knows the best value of the earlier one.
func OnBest(entry string, mode Mode, do Watcher, options ...MonitorOption) Option {
	options = slices.Clone(options)
	return watchValue("on best", entry, func() (*onBest, error) { return newOnBest(entry, mode, do, options) })
}

// NewOnBest is [OnBest] for a loop by hand: call its Watch in each pass that logged the entry.
func NewOnBest(entry string, mode Mode, do Watcher, options ...MonitorOption) (Attendant, error) {
	b, err := newOnBest(entry, mode, do, options)
	if err != nil {
		return nil, fmt.Errorf("loop: on best: %w", err)
	}
	return b, nil
}

type onBest struct {
	noEnd
	monitor
	do Watcher
}

func newOnBest(entry string, mode Mode, do Watcher, options []MonitorOption) (*onBest, error) {
	if do == nil {
		return nil, errNoFunction
	}
	m, err := newMonitor(entry, mode, options)
	if err == nil {
		err = m.plateau.meaningless()
	}
	if err != nil {
		return nil, err
	}
	return &onBest{monitor: m, do: do}, nil
}

func (b *onBest) Watch(ctx context.Context, r Report) error {
	v, err := b.read(r)
	if err != nil || !b.see(r.Elapsed, v) {
		return err
	}
	return b.do(ctx, r)
}

func (b *onBest) resume(from Elapsed, h *History, when *Schedule) {
	b.replay(from, h, when, func(at Elapsed, v float64) { b.see(at, v) })
}

// KeepBest copies the state each time an entry has a better value, and gives the best one back at the end:
// [Result].State is then that of [History.Best], though the [Result].Elapsed stays that of the last turn. It does so at
// every normal end: the data is over, [Until] is reached, somebody asked to stop. A run that was cancelled or has
// failed keeps its last state, so that it can go on from there; and so does one without a better value.
//
// The copy is gone with the process. A run that goes on from an earlier one with its history ([From]) knows the best value of that one; if
// it finds no better one, its normal end is the error [ErrBestGone], and the state is that of its last step. checkpoint.KeepBest, which
// takes the best state from a folder, holds over restarts.
//
// A state that changes in place must be a [Snapshotter]; copying it takes as much room again. Attendants that stand
// before it in the options hear of the end after it, and see the best state then.
//
// Ciclo and older Keras give the best state back only where the early stopping itself ends the run; we do at each
// normal end, because the best state is wanted there no less.
func KeepBest(entry string, mode Mode, options ...MonitorOption) Option {
	watch := watchValue("keep best", entry, func() (*keepBest, error) { return newKeepBest(entry, mode, options) })
	return func(s *settings) {
		s.restores = "keep best"
		watch(s)
	}
}

// ErrBestGone is wrapped by the error of a run whose best value is that of the earlier run it went on from, of which [KeepBest] has no
// copy. All else of the end was done; the state is that of the last step, the history is whole.
var ErrBestGone = errors.New("the best state is gone")

// NewKeepBest is [KeepBest] for a loop by hand: call its Watch in each pass that logged the entry, and its End with the
// reason of the end. The reports need the state ([WithState]); End puts the best one into it.
func NewKeepBest(entry string, mode Mode, options ...MonitorOption) (Attendant, error) {
	k, err := newKeepBest(entry, mode, options)
	if err != nil {
		return nil, fmt.Errorf("loop: keep best: %w", err)
	}
	return k, nil
}

type keepBest struct {
	monitor
	state copied
}

func newKeepBest(entry string, mode Mode, options []MonitorOption) (*keepBest, error) {
	m, err := newMonitor(entry, mode, options)
	if err == nil {
		err = m.plateau.meaningless()
	}
	if err != nil {
		return nil, err
	}
	return &keepBest{monitor: m}, nil
}

func (k *keepBest) Watch(ctx context.Context, r Report) error {
	v, err := k.read(r)
	if err != nil || !k.see(r.Elapsed, v) {
		return err
	}
	return k.state.take(ctx, r)
}

func (k *keepBest) End(ctx context.Context, e Ending) (err error) {
	normal := e.Err == nil && (e.Reason == DataEnded || e.Reason == UntilReached || e.Reason == Stopped)
	switch {
	case !normal:
	case k.state.any:
		err = k.state.restore(ctx, e.Report)
	case k.found && k.best.Elapsed.Steps != e.Elapsed.Steps: // else no step was made since
		mode := "Lowest"
		if k.mode == Highest {
			mode = "Highest"
		}
		err = fmt.Errorf("%w: %q was best in the earlier run, %g at step %d, and its copy was not kept: the state is that of the last step, %d"+
			"\n  use checkpoint.KeepBest(folder, checkpoint.%[6]s(1, %[2]q)) in place of loop.KeepBest, with the same in the folder's Keep: it holds over restarts"+
			"\n  or restore the checkpoint of step %[4]d with checkpoint.ResumeAt, if there is one",
			ErrBestGone, k.entry, k.best.Value, k.best.Elapsed.Steps, e.Elapsed.Steps, mode)
	}
	return errors.Join(err, k.state.close())
}

// resume has only what beats the earlier run's best be copied.
func (k *keepBest) resume(from Elapsed, h *History, when *Schedule) {
	k.replay(from, h, when, func(at Elapsed, v float64) { k.see(at, v) })
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
