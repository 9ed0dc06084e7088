package hlo_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/stretchr/testify/require"
)

// TestGoMLXGraph runs GoMLX's own graphs, with a gradient, on the builder.
func TestGoMLXGraph(t *testing.T) {
	d := open(t)
	x := tensors.FromValue([][]float32{{1, 2}, {3, 4}, {5, -6}})
	w := tensors.FromValue([][]float32{{0.5, -0.25}, {0.125, 1}})
	outputs := graph.MustExecOnceN(d, func(x, w *graph.Node) []*graph.Node {
		loss := graph.ReduceAllSum(graph.Tanh(graph.Dot(x, w)))
		return append([]*graph.Node{loss}, graph.Gradient(loss, w)...)
	}, x, w)
	loss, gradient := outputs[0].Value().(float32), outputs[1].Value().([][]float32)
	var want float64
	wantGradient := [2][2]float64{}
	for _, row := range x.Value().([][]float32) {
		for j := range 2 {
			var sum float64
			for i := range 2 {
				sum += float64(row[i]) * float64(w.Value().([][]float32)[i][j])
			}
			want += math.Tanh(sum)
			for i := range 2 {
				wantGradient[i][j] += float64(row[i]) * (1 - math.Tanh(sum)*math.Tanh(sum))
			}
		}
	}
	require.InDelta(t, want, loss, 1e-5)
	for i := range 2 {
		for j := range 2 {
			require.InDelta(t, wantGradient[i][j], gradient[i][j], 1e-5)
		}
	}
}

// TestGoMLXModel: a convolution, pooling, gather and random numbers, built by GoMLX's graph functions; the gradient is held
// to differences of the loss.
func TestGoMLXModel(t *testing.T) {
	d := open(t)
	loss := func(kernel *graph.Node) *graph.Node {
		g := kernel.Graph()
		x := graph.Sin(graph.IotaFull(g, shapes.Make(dtypes.Float64, 2, 6, 6, 1)))
		y := graph.Convolve(x, kernel).Done()
		y = graph.MaxPool(y).Window(2).Done()
		y = graph.Gather(graph.Reshape(y, -1, 2), graph.Const(g, [][]int32{{0}, {3}, {1}, {3}}))
		_, noise := graph.RandomUniform(graph.RNGStateFromSeedForGraph(g, 7), y.Shape())
		return graph.ReduceAllSum(graph.Mul(graph.Square(y), noise))
	}
	at := make([]float64, 2*2*1*2)
	for i := range at {
		at[i] = math.Cos(float64(3 * i))
	}
	run := func(f func(kernel *graph.Node) *graph.Node) []float64 {
		out, err := graph.ExecOnce(d, f, tensors.FromFlatDataAndDimensions(at, 2, 2, 1, 2))
		require.NoError(t, err)
		return tensors.MustCopyFlatData[float64](out)
	}
	gradient := run(func(kernel *graph.Node) *graph.Node { return graph.Gradient(loss(kernel), kernel)[0] })
	require.Positive(t, d.last.Ops[backends.OpTypeConvGeneral])
	require.Positive(t, d.last.Ops[backends.OpTypeRNGBitGenerator])
	const step = 1e-6
	for i := range at {
		keep := at[i]
		at[i] = keep + step
		up := run(loss)[0]
		at[i] = keep - step
		down := run(loss)[0]
		at[i] = keep
		require.InDelta(t, (up-down)/(2*step), gradient[i], 1e-5, "gradient of kernel element %d", i)
	}
}
