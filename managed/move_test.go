package managed_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// everything is a model with all that a state holds: parameters, statistics of a normalisation, random numbers, a
// metric, counters.
func everything(b *managed.Builder) {
	h := layers.Dense(b.Scope().In("a"), b.Field("x"), false, 8)
	h = norm.BatchNorm(b.Scope().In("norm"), h, -1).Done()
	h = layers.Dropout(b.Scope().In("drop"), graph.Tanh(h), graph.Scalar(b.Graph(), h.DType(), 0.3))
	h = layers.Dense(b.Scope().In("b"), h, true, 1)
	b.Loss("loss", graph.Square(graph.Sub(h, b.Field("y"))))
	b.Mean("mean", graph.Square(h))
	b.Metric("samples", b.Samples())
}

func adam() *optim.Optimizer { return optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done()) }

// turns makes the steps from the i-th to before the j-th.
func turns(t require.TestingT, step *managed.Stepper, state *managed.State, set *data.Set, i, j int) {
	for b, err := range data.Take(set.Batches(16, data.Shuffle(1)).From(int64(i)), int64(j-i)) {
		require.NoError(t, err)
		_, _, err = step.Step(context.Background(), state, b)
		require.NoError(t, err)
	}
}

// parallel is a strategy on four devices.
func parallel(t *testing.T) strategies.Strategy {
	t.Helper()
	s, err := strategies.DataParallel(plugintest.Devices(t, 4), strategies.Parallel{})
	require.NoError(t, err)
	return s
}

// 5 steps on one strategy, moved, and 5 more are 10 steps on one, with the same random bits; so are 5 steps of a clone.
func TestMoveTo_tenSteps(t *testing.T) {
	r, mesh := plugintest.CPU(t), plugintest.Devices(t, 4)
	set := line(t, 64)
	four, err := strategies.DataParallel(mesh, strategies.Parallel{})
	require.NoError(t, err)
	divided, err := strategies.DataParallel(mesh, strategies.Parallel{Shard: strategies.FullyShard(4, 8)})
	require.NoError(t, err)
	jit, eager := strategies.Jit(r), strategies.Eager(r)
	step := stepper(t, managed.TrainStep(everything))
	want := newState(t, r, managed.WithOptimizer(adam()))
	turns(t, step, want, set, 0, 10)
	for _, row := range []struct {
		name      string
		from, to  strategies.Strategy
		tolerance float64
	}{
		{"jit to itself", jit, jit, 0},
		{"jit to another jit", jit, strategies.Jit(r), 0},
		{"jit to data parallel", jit, four, 1e-5},
		{"data parallel to jit", four, jit, 1e-5},
		{"a divided state to eager", divided, eager, 1e-5},
		{"eager to a divided state", eager, divided, 1e-5},
	} {
		t.Run(row.name, func(t *testing.T) {
			moved, err := managed.New(row.from, managed.WithOptimizer(adam()))
			require.NoError(t, err)
			defer func() { require.NoError(t, moved.Close()) }()
			turns(t, step, moved, set, 0, 4)
			_, logs, err := step.Step(t.Context(), moved, first(t, loop.Data[data.Batch](set.Batches(16, data.Shuffle(1)).From(4))))
			require.NoError(t, err)
			before := bits(t, moved)
			clone, err := moved.Clone(t.Context(), row.to)
			require.NoError(t, err)
			defer func() { require.NoError(t, clone.Close()) }()
			require.NoError(t, moved.MoveTo(t.Context(), row.to))
			require.Equal(t, row.to, moved.Strategy())
			require.Equal(t, before, bits(t, moved), "to move changes no bit")
			require.Equal(t, before, bits(t, clone))
			_, err = logs.Float("loss")
			require.NoError(t, err, "logs of before the move can be read")
			for _, state := range []*managed.State{moved, clone} {
				turns(t, step, state, set, 5, 10)
				require.Equal(t, bits(t, want)["/#rngState"], bits(t, state)["/#rngState"])
				require.Equal(t, want.Names(), state.Names())
				requireSame(t, want, state, row.tolerance)
			}
			rate, err := clone.LearningRate()
			require.NoError(t, err)
			require.Equal(t, float64(float32(0.01)), rate)
			_, err = managed.Reset(t.Context(), clone)
			require.NoError(t, err)
			require.NotEqual(t, bits(t, clone), bits(t, moved), "the clone's metric was reset, not the other's")
			require.Equal(t, moved.Summary(), clone.Summary())
		})
	}
}

// Wherever a state goes and however often it is cloned, no bit changes.
func TestMoveTo_law(t *testing.T) {
	r, mesh := plugintest.CPU(t), plugintest.Devices(t, 4)
	divided, err := strategies.DataParallel(mesh, strategies.Parallel{Shard: strategies.FullyShard(4, 1)})
	require.NoError(t, err)
	places := []strategies.Strategy{strategies.Jit(r), divided, strategies.Eager(r), strategies.Jit(mesh)}
	state, err := managed.New(places[0], managed.WithOptimizer(adam()))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	turns(t, stepper(t, managed.TrainStep(everything)), state, line(t, 64), 0, 1)
	before := bits(t, state)
	summary := state.Summary()
	moves := 0
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.SampledFrom(places).Draw(t, "place")
		if rapid.Bool().Draw(t, "clone") {
			clone, err := state.Clone(context.Background(), place)
			require.NoError(t, err)
			require.NoError(t, state.Close())
			state = clone
		} else {
			require.NoError(t, state.MoveTo(context.Background(), place))
		}
		require.Equal(t, before, bits(t, state))
		require.Equal(t, summary, state.Summary())
		moves++
	})
	t.Logf("%d moves and clones: %d values, 0 differing bits", moves, len(before))
}

// The runtime where a state was may be closed; the programs of there are closed at the next step.
func TestMoveTo_leavesNothing(t *testing.T) {
	before := pjrt.Live()
	old := plugintest.CPU(t)
	r := plugintest.CPU(t)
	set := line(t, 64)
	state, err := managed.New(strategies.Jit(old), managed.WithOptimizer(adam()))
	require.NoError(t, err)
	step := managed.TrainStep(everything)
	turns(t, step, state, set, 0, 2)
	_, logs, err := step.Step(t.Context(), state, first(t, set.Batches(16)))
	require.NoError(t, err)
	require.NoError(t, state.MoveTo(t.Context(), strategies.Jit(r)))
	require.NoError(t, old.Close())
	_, err = logs.Float("loss")
	require.NoError(t, err)
	turns(t, step, state, set, 3, 5)
	require.Len(t, step.StableHLO(), 1, "the old program is closed")
	require.NoError(t, errors.Join(step.Close(), state.Close(), r.Close()))
	after := pjrt.Live()
	after.Collected = before.Collected
	require.Equal(t, before, after)
}

func TestMoveAndClone_refuse(t *testing.T) {
	r := plugintest.CPU(t)
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	turns(t, stepper(t, managed.TrainStep(regression)), state, line(t, 64), 0, 1)
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errInjected)
	for _, row := range []struct {
		name string
		do   func() error
		want string
		is   error
	}{
		{"move nowhere", func() error { return state.MoveTo(t.Context(), nil) }, "managed: move: no strategy given, such as strategies.Jit(runtime)", nil},
		{"clone nowhere", func() error { _, err := state.Clone(t.Context(), nil); return err }, "managed: clone: no strategy given, such as the state's own", nil},
		{"move, cancelled", func() error { return state.MoveTo(cancelled, strategies.Eager(r)) }, "managed: move to eager: /#rngState: injected", errInjected},
		{"clone, cancelled", func() error { _, err := state.Clone(cancelled, strategies.Eager(r)); return err }, "managed: clone under eager: /#rngState: injected", errInjected},
		{"close", state.Close, "", nil},
		{"move, closed", func() error { return state.MoveTo(t.Context(), strategies.Eager(r)) }, "managed: move to eager: the state: used after Close", managed.ErrClosed},
		{"clone, closed", func() error { _, err := state.Clone(t.Context(), strategies.Eager(r)); return err }, "managed: clone under eager: the state: used after Close", managed.ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.do()
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, row.want)
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
		})
	}
}
