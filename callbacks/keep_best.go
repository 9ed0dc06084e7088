package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// OnBest calls do in each iteration with a better value of an entry than all before, including the first finite value.
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

// KeepBest copies the state in memory at each better value of an entry and restores the best at a normal end
// ([loop.Ending.Normal]). [loop.Result].Elapsed is that of the last iteration. A state that changes in place needs a
// method Snapshot ([loop.Stepper]).
//
// A resumed run lacks the best state: if none is better, it ends with an error. checkpoint.KeepBest restores the best
// across restarts.
//
// Callbacks earlier in the options see the best state at their end.
func KeepBest(entry string, settings ...Monitor) loop.Callback {
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

func (k *keepBest) Watch(ctx context.Context, r loop.Report) error {
	v, err := k.read(r)
	if err != nil || !k.see(r.Elapsed, v) {
		return err
	}
	return k.state.take(ctx, r)
}

func (k *keepBest) End(ctx context.Context, e loop.Ending) (err error) {
	switch {
	case !e.Normal():
	case k.state.any:
		err = k.state.restore(ctx, e.Report)
	case k.found && k.bestAt.Steps != e.Elapsed.Steps:
		mode := "Lowest"
		if k.Mode == loop.Highest {
			mode = "Highest"
		}
		if k.AgainstName {
			mode += ", AgainstName: true"
		}
		err = fmt.Errorf("the best state is lost: %q was best in the earlier run, %g at step %d, and its copy was not kept: the state is that of the last step, %d"+
			"\n  use checkpoint.Resume with checkpoint.Options{Best: %[1]q, Mode: loop.%[5]s} in place of callbacks.KeepBest: it survives restarts"+
			"\n  or resume from the checkpoint of step %[3]d with checkpoint.Options.At, if there is one",
			k.entry, k.best, k.bestAt.Steps, e.Elapsed.Steps, mode)
	}
	return errors.Join(err, k.state.close())
}

func (k *keepBest) resume(from loop.Beginning) error {
	k.replay(from, func(at loop.Elapsed, v float64) { k.see(at, v) })
	return keepable(from)
}
