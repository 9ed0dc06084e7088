package managed_test

import (
	"context"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// A running average is that of all examples, however they come in batches, and whatever batches are filled up with.
func TestRunningAverages_weighExamples(t *testing.T) {
	r := plugintest.Devices(t, 4)
	build := func(b *managed.Builder) {
		managed.AddLoss("penalty", graph.ReduceAllMax(b.Field("x"))) // which counts no examples
		b.Loss("loss", graph.Square(graph.Sub(graph.MulScalar(b.Field("x"), 2), b.Field("y"))))
		b.Mean("same", graph.Square(graph.Sub(graph.MulScalar(b.Field("x"), 2), b.Field("y"))))
	}
	masked := func(b *managed.Builder) {
		b.Mask() // the scalar below is said to be right
		build(b)
	}
	averages := map[string][2]float64{}
	padding, err := strategies.DataParallel(r, strategies.Parallel{Pad: true})
	require.NoError(t, err)
	for _, row := range []struct {
		name     string
		strategy strategies.Strategy
		batch    int
		build    managed.Build
	}{
		{"one batch", strategies.Jit(r), 26, build},
		{"10, 10 and 6", strategies.Jit(r), 10, build},
		{"padded to 12, 12 and 8", padding, 10, masked},
		{"8, 8, 8 and 2 padded to 4", padding, 8, masked},
	} {
		state, err := managed.New(row.strategy)
		require.NoError(t, err)
		step := stepper(t, managed.TestStep(row.build, managed.RunningAverages()))
		var last loop.Logs
		sum, penalties := 0.0, 0.0
		for b, err := range line(t, 26).Batches(row.batch, data.Kept).All() {
			require.NoError(t, err)
			_, logs, err := step.Step(t.Context(), state, b)
			require.NoError(t, err)
			sum += float64(b.Size) * float(t, logs, "loss")
			penalties += float64(b.Size) * float(t, logs, "penalty")
			last = logs
		}
		require.InDelta(t, sum/26, float(t, last, "avg_loss"), 1e-6, row.name)
		require.InDelta(t, penalties/26, float(t, last, "avg_penalty"), 1e-6, row.name)
		averages[row.name] = [2]float64{float(t, last, "avg_loss"), float(t, last, "same")}
		require.NoError(t, state.Close())
	}
	for name, got := range averages {
		require.InDelta(t, averages["one batch"][0], got[0], 1e-6, name)
		require.InDelta(t, got[1], got[0], 1e-6, name)
	}
}

func TestDataParallel_settings(t *testing.T) {
	r := plugintest.Devices(t, 4)
	for _, row := range []struct {
		options strategies.Parallel
		err     string
	}{
		{strategies.Parallel{}, ""},
		{strategies.Parallel{Devices: 2}, ""},
		{strategies.Parallel{Devices: 5}, `strategies: data_parallel: asked for 5 devices, the runtime has 4: expected from 1 to 4; on the CPU, set the number by xla.ClientOption("cpu_device_count", n) when it is opened`},
		{strategies.Parallel{ModelDevices: 3}, "strategies: data_parallel: asked for groups of 3 of the 4 devices: expected a number that divides 4; the runtime has 4 devices, see Parallel.Devices and ModelDevices"},
	} {
		_, err := strategies.DataParallel(r, row.options)
		if row.err == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, row.err)
	}
	host := plugintest.Go(t)
	_, err := strategies.DataParallel(host, strategies.Parallel{Devices: 2})
	require.Error(t, err)
}

// A batch made by hand may say no size: it has as many examples as its fields have rows, on which they then must agree.
func TestR08_aBatchWithoutSizeIsCounted(t *testing.T) {
	x := data.X([]float32{1, 2, 3}, 3, 1)
	batch := data.Batch{Fields: []data.Field{x}}
	steps := 0
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(context.Context, int, data.Batch) (int, loop.Logs, error) {
		steps++
		return 0, loop.Logs{}, nil
	}))).Run(t.Context(), 0, loop.Data[data.Batch](data.Items([]data.Batch{batch, batch, batch, batch})), loop.Until(loop.Samples(6)))
	require.NoError(t, err)
	require.Equal(t, 2, steps, "until 6 examples, by 3")
	odd := data.Batch{Fields: []data.Field{x, data.Named("z", []float32{1, 2}, 2)}}
	for _, s := range []strategies.Strategy{strategies.Jit(plugintest.CPU(t)), strategies.Eager(plugintest.CPU(t))} {
		_, err = s.Batch(odd)
		require.EqualError(t, err, `strategies: field "z" of the batch has 2 rows, but field "x" has 3: expected a row for each example in both; if the first axis of one is not an axis of examples, set Batch.Size to the number of examples`)
		odd := odd
		odd.Size = 3
		_, err = s.Batch(odd)
		require.NoError(t, err)
	}
}
