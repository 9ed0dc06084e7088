package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// OnBest calls a function in each turn in which an entry has a better value than ever before, to save the best state
// for example. The first finite value counts as better. An error of the function ends the run. A run that is resumed
// with its history ([loop.Continue]) starts from the best value of the earlier one.
func OnBest(entry string, do func(context.Context, loop.Report) error, settings ...Monitor) loop.Callback {
	settings = slices.Clone(settings)
	return watchValue("on best", entry, func() (*onBest, error) {
		if do == nil {
			return nil, errNoFunction
		}
		m, err := newMonitor(entry, settings)
		return &onBest{monitor: m, do: do}, err
	})
}

type onBest struct {
	noEnd
	monitor
	do func(context.Context, loop.Report) error
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

// KeepBest copies the state each time an entry has a better value, and restores the best one at the end:
// [loop.Result].State is then that of [loop.History.Best], while [loop.Result].Elapsed stays that of the last turn. It
// does so if the run ended without an error (see [loop.Ending.Normal]). A run that was cancelled or has failed keeps
// its last state, so that it can be resumed; so does one without a better value.
//
// The copy is lost with the process. A run that is resumed with its history ([loop.Continue]) knows the best value of
// the earlier run; if it finds no better one, it ends with an error, and the state is that of its last
// step. checkpoint.KeepBest restores the best state from a folder, after restarts too. To keep several of the best,
// give a folder a checkpoint.Retention with Best.
//
// A state that changes in place must have a method Snapshot ([loop.State]); the copy takes as much memory again.
// Callbacks and changes before it in the options end after it, and see the best state then.
func KeepBest(entry string, settings ...Monitor) loop.Change {
	settings = slices.Clone(settings)
	return changeByValue("keep best", entry, func() (*keepBest, error) {
		m, err := newMonitor(entry, settings)
		return &keepBest{monitor: m}, err
	})
}

type keepBest struct {
	monitor
	state copied
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
	case k.found && k.bestAt.Steps != e.Elapsed.Steps: // otherwise no step was made since
		mode := "Lowest"
		if k.Mode == loop.Highest {
			mode = "Highest"
		}
		err = fmt.Errorf("the best state is gone: %q was best in the earlier run, %g at step %d, and its copy was not kept: the state is that of the last step, %d"+
			"\n  use checkpoint.Resume with checkpoint.Options{Best: %[1]q, Mode: loop.%[5]s} in place of callbacks.KeepBest: it holds over restarts"+
			"\n  or resume from the checkpoint of step %[3]d with checkpoint.Options.At, if there is one",
			k.entry, k.best, k.bestAt.Steps, e.Elapsed.Steps, mode)
	}
	return errors.Join(err, k.state.close())
}

// resume starts from the earlier run's best value: only better states are copied.
func (k *keepBest) resume(from loop.Beginning) error {
	k.replay(from, func(at loop.Elapsed, v float64) { k.see(at, v) })
	return keepable(from)
}
