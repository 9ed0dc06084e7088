package managed_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// measured is a regression that gathers a mean, a largest value and, by RunningAverages, the mean of the loss.
func measured(b *managed.Builder) {
	h := nn.BatchNorm{}.Apply(b.Scope().In("norm"), layers.Dense(b.Scope().In("h"), b.Field("x"), true, 4))
	predicted := layers.Dense(b.Scope().In("out"), h, true, 1)
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted)))
	b.Mean("mean", predicted)
	b.Track("largest", metrics.Max(), nil, predicted)
	if b.Training() {
		b.Metric("samples", b.Samples())
	}
}

// some are batches of a set, from i to j-1.
func some(t *testing.T, i, j int) (list []data.Batch) {
	t.Helper()
	for ; i < j; i++ {
		x := []float32{float32(i) / 8, 1, -1, float32(i) / 16}
		list = append(list, data.Batch{Fields: []data.Field{data.X(x, 4, 1), data.Y([]float32{x[0] + 1, 2, x[2], 3 * x[3]}, 4, 1)}})
	}
	return list
}

// inEvaluation does what a loop does: it begins, runs the steps, in blocks or not, ends, and then reads the last logs.
func inEvaluation(t *testing.T, step *managed.Stepper, state *managed.State, batches []data.Batch, blocks bool) string {
	t.Helper()
	end, err := step.BeginEvaluation(t.Context(), state)
	require.NoError(t, err)
	last := made(t, step, state, batches, blocks)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, end(ctx), "also where the context has ended")
	require.NoError(t, end(ctx), "a second end does nothing")
	return shown(t, last)
}

func made(t *testing.T, step *managed.Stepper, state *managed.State, batches []data.Batch, blocks bool) (last loop.Logs) {
	t.Helper()
	if blocks {
		_, logs, err := step.StepBlock(t.Context(), state, batches)
		require.NoError(t, err)
		return logs[len(logs)-1]
	}
	for _, b := range batches {
		_, logs, err := step.Step(t.Context(), state, b)
		require.NoError(t, err)
		last = logs
	}
	return last
}

// shown are the metrics that were gathered.
func shown(t *testing.T, logs loop.Logs) string {
	t.Helper()
	return fmt.Sprint(float(t, logs, "mean"), float(t, logs, "largest"), float(t, logs, "avg_loss"))
}

// strategiesOf are those under which an evaluation is tried.
func strategiesOf(t *testing.T) map[string]strategies.Strategy {
	t.Helper()
	two := plugintest.Devices(t, 2)
	parallel, err := strategies.DataParallel(two, strategies.Parallel{})
	require.NoError(t, err)
	sharded, err := strategies.DataParallel(two, strategies.Parallel{Shard: strategies.FullyShard(2, 2)})
	require.NoError(t, err)
	return map[string]strategies.Strategy{
		"jit": strategies.Jit(plugintest.CPU(t)), "eager": strategies.Eager(plugintest.CPU(t)), "data parallel": parallel, "sharded": sharded}
}

// Each evaluation has the metrics of its own batches, whatever was evaluated and trained before. Training's metrics
// continue as if there had been no evaluation.
func TestS01_evaluationsShareNothing(t *testing.T) {
	for name, strategy := range strategiesOf(t) {
		for _, blocks := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", blocks ", blocks), func(t *testing.T) {
				states := make([]*managed.State, 2)
				for i := range states {
					state, err := managed.New(strategy, managed.WithOptimizer(optim.New(0.01, optim.Adam{})))
					require.NoError(t, err)
					defer func() { require.NoError(t, state.Close()) }()
					states[i] = state
				}
				state, alone := states[0], states[1]
				train := stepper(t, managed.TrainStep(measured, managed.RunningAverages()))
				test := stepper(t, managed.TestStep(measured, managed.RunningAverages()))
				for i := range 3 {
					batches := some(t, 10*i, 10*i+4)
					require.Equal(t, shown(t, made(t, train, alone, batches, blocks)), shown(t, made(t, train, state, batches, blocks)), "training")
					for _, of := range [][]data.Batch{some(t, 0, 3), some(t, 5, 12)} {
						clone, err := state.Clone(t.Context(), strategy)
						require.NoError(t, err)
						_, err = managed.Reset(t.Context(), clone)
						require.NoError(t, err)
						fresh := stepper(t, managed.TestStep(measured, managed.RunningAverages()))
						want := shown(t, made(t, fresh, clone, of, blocks))
						require.Equal(t, want, inEvaluation(t, test, state, of, blocks), "as a test that nothing went before")
						require.NoError(t, clone.Close())
					}
				}
				for name, value := range bits(t, alone) {
					require.Equal(t, value, bits(t, state)[name], "%s: as without evaluations", name)
				}
			})
		}
	}
}

// A training step can be evaluated too: it trains the state, its metrics are those of the evaluation. Batch
// normalisation's averages and the count of examples are no metrics.
func TestS01_aTrainingStepInAnEvaluation(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	train := stepper(t, managed.TrainStep(measured, managed.RunningAverages()))
	made(t, train, state, some(t, 0, 4), true)
	before := bits(t, state)
	end, err := train.BeginEvaluation(t.Context(), state)
	require.NoError(t, err)
	inner := made(t, train, state, some(t, 4, 6), true)
	require.NoError(t, end(t.Context()))
	require.EqualValues(t, 20, float(t, inner, "samples")) // before the last of 6 batches of 4
	after := bits(t, state)
	for _, name := range []string{"/metrics/train/mean/total", "/metrics/train/largest/extreme", "/metrics/train/avg_loss/total"} {
		require.Contains(t, before, name)
		require.Equal(t, before[name], after[name], name)
	}
	for _, name := range []string{"/norm/batch_normalization/mean", "/norm/batch_normalization/avg_weight", "/samples", "/out/dense/weights"} {
		require.NotEqual(t, before[name], after[name], name)
	}
}

// copies counts what is copied to the device and back.
type copies struct {
	strategies.Strategy
	to, from atomic.Int64
}

func (c *copies) Put(name string, t *tensors.Tensor) (compute.Buffer, error) {
	c.to.Add(1)
	return c.Strategy.Put(name, t)
}

func (c *copies) Fetch(b compute.Buffer) (*tensors.Tensor, error) {
	c.from.Add(1)
	return c.Strategy.Fetch(b)
}

// An evaluation puts one empty value for each accumulator, fetches nothing, and leaves no buffer.
func TestS01_copiesOfAnEvaluation(t *testing.T) {
	on := &copies{Strategy: strategies.Jit(plugintest.CPU(t))}
	state, err := managed.New(on, managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	test := stepper(t, managed.TestStep(measured, managed.RunningAverages()))
	made(t, test, state, some(t, 0, 1), true) // compiles
	accumulators := 0
	for name := range bits(t, state) {
		if len(name) > 9 && name[:9] == "/metrics/" {
			accumulators++
		}
	}
	require.NoError(t, state.Wait())
	inEvaluation(t, test, state, some(t, 0, 30), true)
	live := pjrt.Live().Buffers
	on.to.Store(0)
	on.from.Store(0)
	for range 3 {
		inEvaluation(t, test, state, some(t, 0, 30), true)
	}
	require.EqualValues(t, 3*accumulators, on.to.Load())
	t.Logf("S01: three evaluations: %d copies to the device for %d accumulators, %d back", on.to.Load(), accumulators, on.from.Load())
	require.LessOrEqual(t, on.from.Load(), int64(3), "the logs of the last block, which the test reads")
	require.Equal(t, live, pjrt.Live().Buffers)
}
