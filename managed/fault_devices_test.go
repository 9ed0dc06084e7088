package managed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// F30: loops in one process share a runtime and their steps, each with a bar, while somebody else compiles, copies
// states and closes steps. The race detector has the last word.
//
//lazo:race
func TestF30_loopsInOneProcess(t *testing.T) {
	const loops, turns = 3, 150
	r := plugintest.CPU(t)
	optimizer := optim.New(0.05, optim.Adam{})
	shared := stepper(t, managed.TrainStep(noisy))
	var batches []data.Batch
	for n := range 5 {
		batches = append(batches, first(t, line(t, 8+n).Batches(8+n)))
	}
	var all sync.WaitGroup
	losses, errs := make([][]float64, loops), make([]error, 2*loops)
	for i := range loops {
		state := newState(t, r, managed.WithOptimizer(optimizer), managed.WithSeed(7))
		all.Go(func() {
			snapshots := func(ctx context.Context, _ loop.Report) error {
				snapshot, err := state.Snapshot(ctx)
				if err != nil {
					return err
				}
				return snapshot.Close()
			}
			result, err := loop.New(loop.On(loop.EachStep, shared)).Run(t.Context(), state, line(t, 64).Batches(16),
				loop.Until(loop.Steps(turns)), callbacks.ProgressBar(io.Discard), loop.Watch(loop.Every(loop.Steps(10)), snapshots))
			if err == nil {
				_, losses[i], err = result.History.Series("loss")
			}
			errs[2*i] = err
		})
		all.Go(func() {
			for n := range batches {
				other, err := managed.New(strategies.Jit(r), managed.WithOptimizer(optimizer))
				if err == nil {
					own := managed.TrainStep(regression)
					_, _, err = own.Step(t.Context(), other, batches[n])
					err = errors.Join(err, own.Close(), own.Close(), other.Close())
				}
				if err != nil {
					errs[2*i+1] = err
					return
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	for i := range loops {
		require.Len(t, losses[i], turns)
		require.Equal(t, losses[0], losses[i], "they do not disturb each other")
	}
	t.Logf("F30: %d loops of %d steps with bars and snapshots, %d programs compiled and closed beside them: equal bits", loops, turns, 5*loops)
}

// F31: the error for a wrong number of devices has the requested number, the available one and how to get more.
func TestF31_deviceCounts(t *testing.T) {
	r := plugintest.Devices(t, 4)
	more := `on the CPU, set the number by xla.ClientOption("cpu_device_count", n) when it is opened`
	parallel := func(options strategies.Parallel) func() error {
		return func() error { _, err := strategies.DataParallel(r, options); return err }
	}
	open := func(n any) func() error {
		return func() error {
			opened, err := xla.Open(t.Context(), xla.CPU, xla.ClientOption("cpu_device_count", n))
			if err == nil {
				err = opened.Close()
			}
			return err
		}
	}
	four := "asked for %s devices, the runtime has 4: expected from 1 to 4; " + more
	group := "asked for groups of %s: expected a number that divides 4; the runtime has 4 devices"
	counts := `xla: client option "cpu_device_count" is %s, expected a whole number from 1 to 2048`
	rows := []struct {
		name  string
		do    func() error
		what  string
		asked string
	}{
		{"8 of 4", parallel(strategies.Parallel{Devices: 8}), four, "8"},
		{"fewer than none", parallel(strategies.Parallel{Devices: -1}), four, "-1"},
		{"groups of fewer", parallel(strategies.Parallel{ModelDevices: -4}), group, "-4 of the 4 devices"},
		{"groups that do not divide", parallel(strategies.Parallel{Devices: 4, ModelDevices: 3}), group, "3 of the 4 devices"},
		{"a group of more than all", parallel(strategies.Parallel{ModelDevices: 8}), group, "8 of the 4 devices"},
		{"a runtime of none", open(0), counts, "0"},
		{"a runtime of fewer", open(-1), counts, "-1"},
		{"a runtime of too many", open(int64(1) << 40), counts, "1099511627776"},
		{"a runtime of one too many", open(2049), counts, "2049"}, // on which the plugin takes no program
		{"a runtime of a word", open("four"), counts, "four"},     // which ends the process in the plugin
	}
	for _, row := range rows {
		require.ErrorContains(t, row.do(), fmt.Sprintf(row.what, row.asked), row.name)
	}
	require.NoError(t, open(2)())
	// A device cannot be named twice: they are counted, not listed. Two strategies on the same devices work side by side.
	one, other := parallelState(t, r, strategies.Parallel{Devices: 4}), parallelState(t, r, strategies.Parallel{Devices: 4})
	step := stepper(t, managed.TrainStep(regression))
	batch := first(t, line(t, 16).Batches(16))
	for _, state := range []*managed.State{one, other, one} {
		_, _, err := step.Step(t.Context(), state, batch)
		require.NoError(t, err)
	}
	t.Logf("F31: %d wrong numbers of devices, %d errors with what was asked for and what there is", len(rows), len(rows))
}

// parallelState is a state on several devices.
func parallelState(t *testing.T, r *xla.Runtime, options strategies.Parallel) *managed.State {
	t.Helper()
	s, err := strategies.DataParallel(r, options)
	require.NoError(t, err)
	state, err := managed.New(s, managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	return state
}

// leftoverSizes are of batches; the nightly form has all from 1 to 33.
var leftoverSizes = []int{1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 31, 32, 33}

// F32: a run of 10 batches with an update for every 4 ends in the middle of the third update. The state keeps the
// accumulated gradients, and the continued run makes the update of a run that never ended.
func TestF32_accumulation(t *testing.T) {
	r := plugintest.CPU(t)
	for _, n := range []int{1, 3, 4, 10, 13} {
		optimizer := optim.New(0.1, optim.Accumulate(4), optim.Momentum{Decay: 0.5})
		step := stepper(t, managed.TrainStep(regression))
		parts, unbroken := newState(t, r, managed.WithOptimizer(optimizer)), newState(t, r, managed.WithOptimizer(optimizer))
		batches := func(from int) loop.Source[data.Batch] {
			return loop.Data[data.Batch](line(t, 64).Batches(8).From(int64(from)))
		}
		learn(t, parts, step, batches(0), n)
		held, err := parts.Value("/optimizers/accumulate/dense/dense/weights/batches")
		require.NoError(t, err)
		require.EqualValues(t, n%4, held.Value())
		updates, err := parts.Value("/optimizers/updates")
		require.NoError(t, err)
		require.EqualValues(t, n/4, updates.Value())
		learn(t, parts, step, batches(n), 16-n)
		learn(t, unbroken, step, batches(0), 16)
		require.Equal(t, bits(t, unbroken), bits(t, parts))
	}
	t.Log("F32: 1, 3, 4, 10 and 13 of 16 batches with an update for every 4: the remainder is held, 0 bits lost")
}
