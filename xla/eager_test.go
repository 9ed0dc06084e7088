package xla_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func newEager(t *testing.T, r *xla.Runtime) *xla.Eager {
	t.Helper()
	e, err := xla.NewEager(r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// look runs a function without inputs and outputs.
func look(e *xla.Eager, f func(g *graph.Graph)) error {
	_, err := e.Run("look", nil, func(g *graph.Graph) []*graph.Node {
		f(g)
		return nil
	})
	return err
}

func value(t *testing.T, n *graph.Node) any {
	t.Helper()
	v, err := xla.Value(n)
	require.NoError(t, err)
	return v.Value()
}

func TestEager_readsValuesOnTheWay(t *testing.T) {
	r := plugintest.Uncached(t)
	e := newEager(t, r)
	before := pjrt.Live()
	x, err := r.BufferFromFlatData(0, []float32{1, 2, 3}, shapes.Make(dtypes.Float32, 3))
	require.NoError(t, err)
	var kept *graph.Node
	outputs, err := e.Run("numbers", map[string]compute.Buffer{"x": x}, func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 3))
		require.Equal(t, []float32{1, 2, 3}, value(t, x))
		sum := graph.ReduceAllSum(x)
		require.Equal(t, float32(6), value(t, sum))
		if value(t, sum).(float32) > 5 { // the graph may depend on a value
			x = graph.Neg(x)
		}
		require.Equal(t, []bool{true, false}, value(t, graph.Const(g, []bool{true, false})))
		require.Equal(t, complex64(complex(1, -2)), value(t, graph.Const(g, complex64(complex(1, -2)))))
		require.Equal(t, [][]int64{{7}}, value(t, graph.Const(g, [][]int64{{7}})))
		require.Equal(t, float32(1.5), value(t, graph.ConvertDType(graph.Const(g, 1.5), dtypes.Float32)))
		next, drawn := graph.RandomUniform(graph.RNGStateFromSeedForGraph(g, 1), shapes.Make(dtypes.Float32, 2))
		require.NotEqual(t, value(t, next), value(t, graph.RNGStateFromSeedForGraph(g, 1)))
		require.NotEqual(t, value(t, drawn).([]float32)[0], value(t, drawn).([]float32)[1])
		empty, err := xla.Value(graph.Zeros(g, shapes.Make(dtypes.Float32, 0, 2)))
		require.NoError(t, err)
		require.Equal(t, 0, empty.Size())
		gradient := graph.Gradient(graph.ReduceAllSum(graph.Square(x)), x)[0]
		require.Equal(t, []float32{-2, -4, -6}, value(t, gradient))
		kept = x
		return []*graph.Node{x, nil, gradient}
	})
	require.NoError(t, err)
	require.Nil(t, outputs[1])
	flat := make([]float32, 3)
	require.NoError(t, outputs[0].ToFlatData(flat))
	require.Equal(t, []float32{-1, -2, -3}, flat)
	for _, b := range []compute.Buffer{x, outputs[0], outputs[2]} {
		require.NoError(t, b.Finalize())
	}
	_, err = xla.Value(kept)
	require.ErrorContains(t, err, "the node has no value")
	require.Positive(t, e.CompileTime())
	require.NoError(t, e.Close())
	require.Equal(t, before, pjrt.Live())
}

func TestValue_outsideOfARun(t *testing.T) {
	r := plugintest.Uncached(t)
	_, err := xla.Value(nil)
	require.ErrorContains(t, err, "the node has no value")
	asked := 0
	_, err = graph.CallOnce(r, func(x *graph.Node) *graph.Node {
		_, err := xla.Value(x)
		require.ErrorContains(t, err, "the node has no value")
		require.ErrorContains(t, err, "is not run operation by operation")
		asked++
		return graph.Neg(x)
	}, tensors.FromValue(float32(1)))
	require.NoError(t, err)
	require.Equal(t, 1, asked)
}

func TestEager_closedRuntime(t *testing.T) {
	r, err := xla.Open(t.Context(), xla.CPU)
	require.NoError(t, err)
	e, err := xla.NewEager(r)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, r.Close())
	require.ErrorIs(t, look(e, func(*graph.Graph) {}), xla.ErrClosed)
}

// With several devices, everything runs on the first.
func TestEager_severalDevices(t *testing.T) {
	e := newEager(t, plugintest.Uncached(t, xla.ClientOption("cpu_device_count", 2)))
	e.CheckFinite = true
	require.NoError(t, look(e, func(g *graph.Graph) {
		require.Equal(t, float32(3), value(t, graph.AddScalar(graph.Const(g, float32(1)), 2)))
	}))
}
