package managed_test

import (
	"testing"

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
)

func convolving(b *managed.Builder) {
	x := graph.Reshape(b.Field("x"), -1, 1, 1, 1)
	x = layers.Convolution(b.Scope().In("conv"), x).Channels(1).KernelSize(1).PadSame().Done()
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), graph.Reshape(x, -1, 1))))
}

func large(b *managed.Builder) {
	h := layers.Dense(b.Scope().In("hidden"), b.Field("x"), true, 600_000)
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), graph.InsertAxes(graph.ReduceMean(h, -1), -1))))
}

// However steps are grouped, they compute the same bits: parameters, optimizer, random state, and what was logged. One
// program serves all groupings.
func TestStepBlock_groupingChangesNoBit(t *testing.T) {
	r := plugintest.CPU(t)
	const steps = 230
	var batches []data.Batch
	for b, err := range line(t, 64).Batches(16, data.Shuffle(3)).From(0) {
		require.NoError(t, err)
		if batches = append(batches, b); len(batches) == steps {
			break
		}
	}
	var want map[string][]byte
	var wantLosses []float64
	for _, sizes := range [][]int{{steps}, {1}, {7, 1, 100, 3}, {99, 131}} {
		state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())), managed.WithSeed(5))
		step := managed.TrainStep(noisy)
		var all []loop.Logs
		for i, rest := 0, batches; len(rest) > 0; i++ {
			n := min(sizes[i%len(sizes)], len(rest))
			_, logs, err := step.StepBlock(t.Context(), state, rest[:n])
			require.NoError(t, err)
			require.Len(t, logs, n)
			all, rest = append(all, logs...), rest[n:]
		}
		require.Len(t, step.StableHLO(), 1)
		require.Contains(t, step.StableHLO()[0], "stablehlo.while")
		got, losses := bits(t, state), make([]float64, len(all))
		for i, l := range all {
			var err error
			losses[i], err = l.Float("loss")
			require.NoError(t, err)
		}
		if want == nil {
			want, wantLosses = got, losses
		}
		require.Equal(t, want, got, "groups of %v", sizes)
		require.Equal(t, wantLosses, losses, "groups of %v", sizes)
		require.NoError(t, step.Close())
	}
}

// The loop gives blocks where nothing else is due, and the history has every step.
func TestStepBlock_inALoop(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step, test := managed.TrainStep(regression), managed.TestStep(regression)
	testing := loop.Evaluation[*managed.State, data.Batch]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, test)),
		Data: line(t, 64).Batches(16)}
	l := loop.New(loop.On(loop.EachStep, step), testing.On(loop.Every(loop.Steps(50))))
	result, err := l.Run(t.Context(), state, line(t, 64).Batches(16), loop.Until(loop.Steps(205)))
	require.NoError(t, err)
	_, losses, err := result.History.Series("loss")
	require.NoError(t, err)
	require.Len(t, losses, 205)
	require.Less(t, losses[204], 1e-5)
	_, tested, err := result.History.Series("loss_test")
	require.NoError(t, err)
	require.Len(t, tested, 4)
	require.Less(t, tested[3], tested[0])
}

// On the CPU, XLA's loops make convolutions many times slower; and a large step gains nothing.
func TestStepBlock_oneByOneWhereThatIsFaster(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		name  string
		build managed.Build
		loop  bool
	}{{"small", regression, true}, {"convolution", convolving, false}, {"large", large, false}} {
		t.Run(row.name, func(t *testing.T) {
			state := newState(t, r, managed.WithOptimizer(sgd()))
			step := managed.TrainStep(row.build)
			defer func() { require.NoError(t, step.Close()) }()
			batch := first(t, line(t, 64).Batches(16))
			_, logs, err := step.StepBlock(t.Context(), state, []data.Batch{batch, batch, batch})
			require.NoError(t, err)
			require.Len(t, logs, 3)
			if row.loop {
				require.Contains(t, step.StableHLO()[0], "stablehlo.while")
			} else {
				require.NotContains(t, step.StableHLO()[0], "stablehlo.while")
			}
			before, err := logs[0].Float("loss")
			require.NoError(t, err)
			after, err := logs[2].Float("loss")
			require.NoError(t, err)
			require.Less(t, after, before)
		})
	}
}

// A batch of another shape ends a group; what came before an error is kept.
func TestStepBlock_mixedBatches(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := managed.TrainStep(regression)
	defer func() { require.NoError(t, step.Close()) }()
	full, small := first(t, line(t, 64).Batches(16)), first(t, line(t, 64).Batches(8))
	_, logs, err := step.StepBlock(t.Context(), state, []data.Batch{full, full, small, full})
	require.NoError(t, err)
	require.Len(t, logs, 4)
	require.Len(t, step.StableHLO(), 2)
	wrong := full
	wrong.Fields = wrong.Fields[:1]
	_, logs, err = step.StepBlock(t.Context(), state, []data.Batch{full, full, wrong, full})
	require.Error(t, err)
	require.Len(t, logs, 2)
}

// A source that writes each batch into the memory of an earlier one trains as one with fresh memory: blocks would make
// their steps on the last batch alone, as a researcher's training did.
func TestStepBlock_ofASourceThatReusesMemory(t *testing.T) {
	r := plugintest.CPU(t)
	const size, steps = 4, 60
	source := func(memories int) loop.Data[data.Batch] {
		return func(yield func(data.Batch, error) bool) {
			var x, y [][]float32
			for range memories {
				x, y = append(x, make([]float32, size)), append(y, make([]float32, size))
			}
			for i := range steps {
				x, y := x[i%memories], y[i%memories]
				for j := range x {
					x[j] = float32((i*size+j)%17) / 17
					y[j] = 3*x[j] - 1
				}
				if !yield(data.Batch{Fields: []data.Field{data.X(x, size, 1), data.Y(y, size, 1)}}, nil) {
					return
				}
			}
		}
	}
	run := func(memories int) map[string][]byte {
		state := newState(t, r, managed.WithOptimizer(optim.New(0.1)), managed.WithSeed(5))
		_, err := loop.New(loop.On(loop.EachStep, managed.TrainStep(noisy))).Run(t.Context(), state, source(memories))
		require.NoError(t, err)
		return bits(t, state)
	}
	want := run(steps)
	for _, memories := range []int{1, 2, 5} {
		require.Equal(t, want, run(memories), memories)
	}
}
