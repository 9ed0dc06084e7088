package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// OnBest calls a function in each turn in which an entry has a better value than ever before: a place to save the best
// state. The first finite value is better than none. The function is a callback like others: an error of it ends the
// run. A run that is resumed with its history ([loop.From]) knows the best value of the earlier one.
func OnBest(entry string, mode loop.Mode, do loop.Watcher, options ...MonitorOption) loop.Callback {
	options = slices.Clone(options)
	return watchValue("on best", entry, func() (*onBest, error) { return newOnBest(entry, mode, do, options) })
}

type onBest struct {
	noEnd
	monitor
	do loop.Watcher
}

func newOnBest(entry string, mode loop.Mode, do loop.Watcher, options []MonitorOption) (*onBest, error) {
	if do == nil {
		return nil, loop.ErrNoFunction
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

func (b *onBest) Watch(ctx context.Context, r loop.Report) error {
	v, err := b.read(r)
	if err != nil || !b.see(r.Elapsed, v) {
		return err
	}
	return b.do(ctx, r)
}

func (b *onBest) resume(from loop.Beginning) error {
	b.replay(from, func(at loop.Elapsed, v float64) { b.see(at, v) })
	return nil
}

// KeepBest copies the state each time an entry has a better value, and gives the best one back at the end:
// [loop.Result].State is then that of [loop.History.Best], though the [loop.Result].Elapsed stays that of the last turn. It does so at
// every normal end: the data is over, [loop.Until] is reached, somebody asked to stop. A run that was cancelled or has
// failed keeps its last state, so that it can go on from there; and so does one without a better value.
//
// The copy is gone with the process. A run that goes on from an earlier one with its history ([loop.From]) knows the best value of that one; if
// it finds no better one, its normal end is the error [ErrBestGone], and the state is that of its last step. runs.KeepBest, which
// takes the best state from a folder, holds over restarts.
//
// A state that changes in place must be a [loop.Snapshotter]; copying it takes as much room again. Attendants that stand
// before it in the options hear of the end after it, and see the best state then.
//
// Ciclo and older Keras give the best state back only where the early stopping itself ends the run; we do at each
// normal end, because the best state is wanted there no less.
func KeepBest(entry string, mode loop.Mode, options ...MonitorOption) loop.Change {
	options = slices.Clone(options)
	return changeByValue("keep best", entry, func() (*keepBest, error) { return newKeepBest(entry, mode, options) })
}

// ErrBestGone is wrapped by the error of a run whose best value is that of the earlier run it went on from, of which [KeepBest] has no
// copy. All else of the end was done; the state is that of the last step, the history is whole.
var ErrBestGone = errors.New("the best state is gone")

type keepBest struct {
	monitor
	state copied
}

func newKeepBest(entry string, mode loop.Mode, options []MonitorOption) (*keepBest, error) {
	m, err := newMonitor(entry, mode, options)
	if err == nil {
		err = m.plateau.meaningless()
	}
	if err != nil {
		return nil, err
	}
	return &keepBest{monitor: m}, nil
}

func (k *keepBest) Change(ctx context.Context, r loop.Report, s loop.State) error {
	v, err := k.read(r)
	if err != nil || !k.see(r.Elapsed, v) {
		return err
	}
	return k.state.take(ctx, s)
}

// End puts the best state back.
func (k *keepBest) End(ctx context.Context, e loop.Ending, s loop.State) (err error) {
	switch {
	case !e.Normal():
	case k.state.any:
		err = k.state.restore(ctx, s)
	case k.found && k.best.Elapsed.Steps != e.Elapsed.Steps: // else no step was made since
		mode := "Lowest"
		if k.mode == loop.Highest {
			mode = "Highest"
		}
		err = fmt.Errorf("%w: %q was best in the earlier run, %g at step %d, and its copy was not kept: the state is that of the last step, %d"+
			"\n  use runs.KeepBest(folder, checkpoint.%[6]s(1, %[2]q)) in place of callbacks.KeepBest, with the same in the folder's Keep: it holds over restarts"+
			"\n  or restore the checkpoint of step %[4]d with runs.ResumeAt, if there is one",
			ErrBestGone, k.entry, k.best.Value, k.best.Elapsed.Steps, e.Elapsed.Steps, mode)
	}
	return errors.Join(err, k.state.close())
}

// resume has only what beats the earlier run's best be copied.
func (k *keepBest) resume(from loop.Beginning) error {
	k.replay(from, func(at loop.Elapsed, v float64) { k.see(at, v) })
	return keepable(from)
}
