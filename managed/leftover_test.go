package managed_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// devices opens a runtime of several CPU devices.
func devices(t *testing.T, n int) *xla.Runtime {
	t.Helper()
	r, err := xla.Open(t.Context(), xla.CPU, xla.ClientOption("cpu_device_count", n))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// What becomes of the 10 examples of a batch on 4 devices.
func TestLeftover(t *testing.T) {
	perExample := func(b *managed.Builder) {
		y := layers.Dense(b.Vars().In("dense"), b.Node("x"), true, 1)
		b.Loss("loss", graph.Square(graph.Sub(y, b.Node("y"))))
		b.Metric("x", graph.Squeeze(b.Node("x")))
		// What is computed of the padding may be of any size.
		b.Metric("inverse", graph.Reciprocal(graph.Squeeze(b.Node("x"), -1)))
	}
	losses := func(s strategies.Strategy, examples int, build managed.Build) (all []float64, last loop.Logs, err error) {
		state, err := managed.New(s, managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		step := stepper(t, managed.TrainStep(build))
		for b, err := range line(t, 64).Batches(10, data.KeepRemainder()) {
			require.NoError(t, err)
			if b.Size >= examples {
				for i, f := range b.Fields {
					b.Fields[i].Array = f.Array.Slice(0, examples)
				}
				b.Size = examples
			}
			_, logs, err := step.Step(t.Context(), state, b)
			if err != nil {
				return all, last, err
			}
			loss, err := logs.Float("loss")
			require.NoError(t, err)
			all, last = append(all, loss), logs
		}
		return all, last, nil
	}
	four := func(l strategies.Leftover) strategies.Strategy {
		s, err := strategies.DataParallel(devices(t, 4), strategies.OnLeftover(l))
		require.NoError(t, err)
		return s
	}
	near := func(want, got []float64) {
		require.Len(t, got, len(want))
		for i := range want {
			require.InDelta(t, want[i], got[i], 1e-6)
		}
	}
	one := strategies.Jit(runtime(t))

	_, _, err := losses(four(strategies.RefuseLeftover), 10, perExample)
	require.ErrorIs(t, err, strategies.ErrLeftover)
	require.EqualError(t, err, "managed: strategies: data parallel: a batch of 10 examples over 4 devices: the examples cannot be divided evenly over the devices: take a batch of a multiple of 4, or OnLeftover")

	eight, _, err := losses(one, 8, perExample) // and a last batch of 4
	require.NoError(t, err)
	dropped, _, err := losses(four(strategies.DropLeftover), 10, perExample)
	require.NoError(t, err)
	near(eight, dropped)

	all, want, err := losses(one, 10, perExample)
	require.NoError(t, err)
	padded, got, err := losses(four(strategies.PadLeftover), 10, perExample)
	require.NoError(t, err)
	near(all, padded)
	for _, name := range []string{"x", "inverse"} {
		w, err := want.Float(name)
		require.NoError(t, err)
		g, err := got.Float(name)
		require.NoError(t, err)
		require.InDelta(t, w, g, 1e-6*math.Abs(w), name)
	}
	t.Log(fmt.Sprint("losses of 10 examples: on one device ", all, ", padded on four ", padded))

	scalar := func(b *managed.Builder) {
		b.Loss("loss", managed.MeanSquaredError(b.Node("y"), layers.Dense(b.Vars().In("dense"), b.Node("x"), true, 1)))
	}
	_, _, err = losses(four(strategies.PadLeftover), 10, scalar)
	require.ErrorContains(t, err, `"loss" is (Float32), but the batch is padded: report a value for each of its 12 examples, whose mean leaves the padding out, or use the builder's Mask`)
	masking := func(b *managed.Builder) {
		square := graph.Square(graph.Sub(layers.Dense(b.Vars().In("dense"), b.Node("x"), true, 1), b.Node("y")))
		if b.Mask() == nil {
			b.Loss("loss", square)
			return
		}
		mask := graph.ConvertDType(b.Mask(), square.DType())
		b.Loss("loss", graph.Div(graph.Dot(graph.Squeeze(square, -1), mask), graph.ReduceAllSum(mask)))
	}
	padded, _, err = losses(four(strategies.PadLeftover), 10, masking)
	require.NoError(t, err)
	near(all, padded)
}

func TestDataParallel_settings(t *testing.T) {
	r := devices(t, 4)
	for _, row := range []struct {
		options []strategies.ParallelOption
		err     string
	}{
		{nil, ""},
		{[]strategies.ParallelOption{strategies.Devices(2)}, ""},
		{[]strategies.ParallelOption{strategies.Devices(5)}, `strategies: data parallel: 5 devices: the runtime has 4; the CPU has as many as xla.ClientOption("cpu_device_count", n) says when it is opened`},
		{[]strategies.ParallelOption{strategies.Devices(0)}, "strategies: data parallel: 0 devices with groups of 1: expected a multiple of 1 or more"},
		{[]strategies.ParallelOption{strategies.ModelDevices(3)}, "strategies: data parallel: 4 devices with groups of 3: expected a multiple of 1 or more"},
	} {
		_, err := strategies.DataParallel(r, row.options...)
		if row.err == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, row.err)
	}
	host, err := xla.Open(t.Context(), xla.Go)
	require.NoError(t, err)
	defer host.Close()
	_, err = strategies.DataParallel(host, strategies.Devices(2))
	require.Error(t, err)
}
