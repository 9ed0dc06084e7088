package xla_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// Outputs for the host come with the run, at their indices, and no program accepts them.
func TestProgram_outputsThatARunReads(t *testing.T) {
	r := plugintest.CPU(t)
	p, err := r.Compile("read", func(g *graph.Graph) xla.Built {
		state := graph.Parameter(g, "state", shapes.Make(dtypes.Float32, 2))
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2, 3))
		added := graph.Add(state, graph.ReduceSum(x, 1))
		return xla.Built{
			Outputs: []*graph.Node{graph.Transpose(x, 0, 1), added, graph.MulScalar(x, 2), graph.ConvertDType(graph.ReduceAllSum(x), dtypes.Int32)},
			InPlace: map[int]int{1: 0}, Host: []int{1}, Read: []int{0, 3},
		}
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	state, err := r.BufferFromFlatData(0, []float32{0, 0}, shapes.Make(dtypes.Float32, 2))
	require.NoError(t, err)
	x := []float32{1, 2, 3, 4, 5, 6}
	for run := range 3 {
		inputs := []compute.Buffer{state, nil}
		outputs, err := p.Run(inputs, []any{x})
		require.NoError(t, err)
		require.Len(t, outputs, 3)
		turned, ok := xla.OnHost(outputs[0])
		require.True(t, ok)
		sum, ok := xla.OnHost(outputs[2])
		require.True(t, ok)
		_, ok = xla.OnHost(outputs[1])
		require.False(t, ok, "it was not asked for")
		require.Equal(t, []float32{x[0], 4, 2, 5, 3, 6}, turned)
		require.Equal(t, []int32{int32(20 + x[0])}, sum)
		for _, read := range []func([]float32) error{
			func(to []float32) error { return outputs[0].ToFlatData(to) },
			func(to []float32) error { return xla.ToHost(outputs[0], pjrt.Bytes(to)) },
		} {
			got := make([]float32, 6)
			require.NoError(t, read(got))
			require.Equal(t, turned, got)
			require.Error(t, read(make([]float32, 5)))
		}
		shape, err := outputs[0].Shape()
		require.NoError(t, err)
		require.Equal(t, []int{3, 2}, shape.Dimensions)
		_, err = p.Run([]compute.Buffer{outputs[0], nil}, []any{x})
		require.ErrorContains(t, err, "CopyToDevice")
		onDevice, err := outputs[0].CopyToDevice(0)
		require.NoError(t, err)
		got := make([]float32, 6)
		require.NoError(t, onDevice.ToFlatData(got))
		require.Equal(t, turned, got)
		require.NoError(t, onDevice.Finalize())
		require.NoError(t, outputs[1].Finalize())
		state, x[0] = inputs[0], float32(run)
	}
	require.NoError(t, state.Finalize())
}
