package managed_test

import (
	stdcontext "context"
	"errors"
	goruntime "runtime"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Nothing is left on the device after Close, and while training runs the number of buffers does not grow beyond the
// logs that wait to be read.
func TestF18_noBufferIsLeft(t *testing.T) {
	r := plugintest.CPU(t)
	goruntime.GC() // so that what other tests left to the collector is not counted here
	goruntime.GC()
	before := pjrt.Live().Buffers
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	train, test := managed.TrainStep(regression), managed.TestStep(regression)
	most := int64(0)
	count := loop.Watch(loop.EachStep, func(stdcontext.Context, loop.Report) error {
		most = max(most, pjrt.Live().Buffers)
		return nil
	})
	const steps = 2000
	_, err = loop.New(loop.On(loop.EachStep, train), loop.On(loop.Every(loop.Steps(100)), test)).
		Run(t.Context(), state, line(t, 64).Batches(16), loop.Until(loop.Steps(steps)), loop.Keep(loop.Every(loop.Steps(10))), count)
	require.NoError(t, err)
	require.NoError(t, errors.Join(train.Close(), test.Close(), state.Close()))
	require.LessOrEqual(t, most-before, int64(2*256+len(state.Names())+2))
	require.Equal(t, before, pjrt.Live().Buffers)
	t.Logf("F18: %d steps, at most %d buffers at once, %d left", steps, most-before, pjrt.Live().Buffers-before)
}

// The graphs of steps are let go, of which eager makes one each.
//
//lazo:norace
func TestEager_keepsNoGraph(t *testing.T) {
	state, err := managed.New(strategies.Eager(plugintest.CPU(t)), managed.WithOptimizer(adam()))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step, batch := stepper(t, managed.TrainStep(regression)), first(t, line(t, 16).Batches(16))
	after := func(steps int) int64 {
		for range steps {
			one(t, step, state, batch)
		}
		return takeFootprint(t).heap
	}
	const steps = 400
	before := after(steps)
	grown := (after(steps) - before) / steps
	require.Less(t, grown, int64(500), "bytes a step")
	t.Logf("%d steps of %d variables: the host holds %+d bytes a step more", steps, len(state.Names()), grown)
}

// A state is held once: the host draws the initial values of a large one bit by bit, and keeps none. They are those
// that GoMLX draws all at once.
//
//lazo:norace
func TestState_isHeldOnce(t *testing.T) {
	const width = 1_200 // four layers and Adam's moments are 17 million numbers, 69 MB, drawn in five parts
	hidden := func(scope *model.Scope, x *graph.Node) *graph.Node {
		for i := range 4 {
			x = layers.Dense(scope.In("dense_%d", i), x, true, width)
		}
		return x
	}
	set, err := data.New(data.X(make([]float32, width), 1, width), data.Y(make([]float32, width), 1, width))
	require.NoError(t, err)
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())), managed.WithSeed(3))
	before := takeFootprint(t)
	train, test := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), hidden(b.Scope(), b.Field("x")))))
	}), managed.TestStep(func(b *managed.Builder) { b.Metric("sum", graph.ReduceAllSum(hidden(b.Scope(), b.Field("x")))) })
	for _, step := range []*managed.Stepper{test, train} { // parameters, and the optimizer's later
		_, _, err := step.Step(t.Context(), state, first(t, set.Batches(1)))
		require.NoError(t, err)
		defer func() { require.NoError(t, step.Close()) }()
		if step == test {
			host := plugintest.Go(t)
			store := model.NewStore()
			require.NoError(t, store.SetRNGStateFromSeed(3))
			g := graph.NewGraph(host, "reference")
			hidden(store.RootScope(), graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, width)))
			require.NoError(t, store.InitializeVariables(host, nil))
			for v := range store.IterVariables() {
				want, err := v.Value()
				require.NoError(t, err)
				got, err := state.Value(v.Path())
				require.NoError(t, err)
				require.True(t, want.Equal(got), v.Path())
			}
		}
	}
	after := takeFootprint(t)
	require.Less(t, after.heap-before.heap, int64(4<<20))
	t.Logf("%d parameters, %d variables: the host holds %+d KiB more than before", state.Parameters(), len(state.Names()), (after.heap-before.heap)>>10)
}

// On the CPU a single step is over when it is started, and brings its numbers along: none waits on the device.
func TestF18_stepsOneByOneLeaveNoLogs(t *testing.T) {
	r := plugintest.CPU(t)
	goruntime.GC() // so that what other tests left to the collector is not counted here
	goruntime.GC()
	before := pjrt.Live().Buffers
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	train := managed.TrainStep(regression)
	history, most := []loop.Logs(nil), int64(0)
	const steps = 100
	for batch, err := range line(t, 64).Batches(16).From(0) {
		require.NoError(t, err)
		_, logs, err := train.Step(t.Context(), state, batch)
		require.NoError(t, err)
		most = max(most, pjrt.Live().Buffers)
		if history = append(history, logs); len(history) == steps {
			break
		}
	}
	first, err := history[0].Float("loss")
	require.NoError(t, err)
	last, err := history[steps-1].Float("loss")
	require.NoError(t, err)
	require.Less(t, last, first)
	require.NoError(t, errors.Join(train.Close(), state.Close()))
	require.LessOrEqual(t, most-before, int64(len(state.Names())))
	require.Equal(t, before, pjrt.Live().Buffers)
	t.Logf("F18: %d steps one by one, at most %d buffers at once for %d values of the state", steps, most-before, len(state.Names()))
}
