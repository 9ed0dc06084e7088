package managed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// watched is jit whose runs can be looked at, and made to fail late.
type watched struct {
	strategies.Strategy
	running []strategies.Running
	steps   int // of all runs
	fail    int // the run with this step, counted from 1, fails when it is waited for; 0 for none
	failed  int // the last step of that run
}

func (s *watched) Compile(step strategies.Step) (strategies.Program, error) {
	p, err := s.Strategy.Compile(step)
	return &watchedProgram{p, s}, err
}

type watchedProgram struct {
	strategies.Program
	on *watched
}

func (p *watchedProgram) Start(state []compute.Buffer, batches []data.Batch) (changed, outputs []compute.Buffer, running strategies.Running, err error) {
	changed, outputs, running, err = p.Program.Start(state, batches)
	if err == nil {
		if running == nil {
			running = over{}
		}
		p.on.running = append(p.on.running, running)
		before := p.on.steps
		p.on.steps += len(batches)
		if p.on.fail > before && p.on.fail <= p.on.steps {
			running, p.on.failed = failing{running}, p.on.steps
		}
	}
	return changed, outputs, running, err
}

// over is a run that has ended.
type over struct{}

func (over) Wait() error { return nil }
func (over) Over() bool  { return true }

type failing struct{ strategies.Running }

func (f failing) Wait() error {
	return errors.Join(fmt.Errorf("%w: %w", strategies.ErrStateLost, errBroken), f.Running.Wait())
}

// heavy is a step that is small enough for blocks and takes a while.
func heavy(b *managed.Builder) {
	h := b.Field("x")
	for i := range 10 {
		h = layers.Dense(b.Scope().In("dense_%d", i), h, true, 64) // 41,600 numbers in all
		h = graph.Tanh(h)
	}
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("out"), h, true, 1))))
}

// The next block is gathered while the one before runs.
func TestOverlap(t *testing.T) {
	on := &watched{Strategy: strategies.Jit(plugintest.CPU(t))}
	state, err := managed.New(on, managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	step := stepper(t, managed.TrainStep(heavy))
	blocks, overlapped, most := 0, 0, 0
	batches := func(yield func(data.Batch, error) bool) {
		for b, err := range line(t, 640).Batches(64, data.Shuffle(1)).From(0) {
			goingOn := 0
			for _, r := range on.running {
				if !r.Over() {
					goingOn++
				}
			}
			if len(on.running) > blocks {
				blocks = len(on.running)
				if goingOn > 0 {
					overlapped++
				}
			}
			most = max(most, goingOn)
			if !yield(b, err) {
				return
			}
		}
	}
	_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.Data[data.Batch](batches), loop.Until(loop.Steps(300)), loop.Keep(loop.Schedule{}))
	require.NoError(t, err)
	for _, r := range on.running {
		require.True(t, r.Over(), "the run ends when its last step has ended")
	}
	require.Greater(t, blocks, 3)
	require.NotZero(t, overlapped)
	require.LessOrEqual(t, most, 1, "the block before the last was waited for")
	t.Logf("%d blocks; the gathering of %d began while the one before ran", blocks, overlapped)
	require.NoError(t, state.Close())
}

// F17: a step that fails on the device when the host is ahead of it.
func TestF17_aLateFailure(t *testing.T) {
	for _, row := range []struct {
		name string
		then func(*managed.State, *managed.Stepper) error
	}{
		{"the next step", func(state *managed.State, step *managed.Stepper) error {
			_, _, err := step.Step(context.Background(), state, firstBatch(t))
			return err
		}},
		{"a value", func(state *managed.State, _ *managed.Stepper) error {
			_, err := state.Value("/out/dense/weights")
			return err
		}},
		{"a snapshot", func(state *managed.State, _ *managed.Stepper) error {
			_, err := state.Snapshot(context.Background())
			return err
		}},
		{"the learning rate", func(state *managed.State, _ *managed.Stepper) error { return state.SetLearningRate(1) }},
		{"a wait", func(state *managed.State, _ *managed.Stepper) error { return state.Wait() }},
		{"the end", func(state *managed.State, _ *managed.Stepper) error { return state.Close() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			on := &watched{Strategy: strategies.Jit(plugintest.CPU(t)), fail: 2}
			state, err := managed.New(on, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
			require.NoError(t, err)
			step := stepper(t, managed.TrainStep(noisy))
			for range 2 {
				_, _, err := step.Step(t.Context(), state, firstBatch(t))
				require.NoError(t, err)
			}
			err = row.then(state, step)
			require.ErrorIs(t, err, strategies.ErrStateLost)
			require.ErrorIs(t, err, errBroken)
			require.NoError(t, state.Close())
		})
	}
	for _, row := range []struct {
		name string
		fail int // the step whose block fails; how long the blocks are depends on the time that steps take
		at   int // the reported step, after the block's last
	}{
		{"a run of the loop, told by the next block", 3, 1},
		{"a run of the loop, told at its end", 7, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			on := &watched{Strategy: strategies.Jit(plugintest.Uncached(t)), fail: row.fail}
			state, err := managed.New(on, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
			require.NoError(t, err)
			step := stepper(t, managed.TrainStep(noisy))
			result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, line(t, 64).Batches(16), loop.Until(loop.Steps(7)))
			require.ErrorIs(t, err, strategies.ErrStateLost)
			require.EqualError(t, err, fmt.Sprintf("loop: step %d: train step: the state is lost: broken on purpose", on.failed+row.at))
			require.Equal(t, loop.Failed, result.Reason)
			require.EqualValues(t, on.failed, result.Elapsed.Steps)
			require.NoError(t, state.Close(), "it was told before")
		})
	}
}

// firstBatch is a batch of line.
func firstBatch(t *testing.T) data.Batch {
	for b, err := range line(t, 64).Batches(16).All() {
		require.NoError(t, err)
		return b
	}
	panic("no batch")
}
