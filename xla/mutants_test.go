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

// Tests of behaviours that mutants found untested.

// identity compiles x by GoMLX's own executor.
func identity(t *testing.T, r *xla.Runtime, shape shapes.Shape) compute.Executable {
	t.Helper()
	builder := r.Builder("identity")
	main := builder.Main()
	x, err := main.Parameter("x", shape, nil)
	require.NoError(t, err)
	require.NoError(t, main.Return([]compute.Value{x}, nil))
	e, err := builder.Compile()
	require.NoError(t, err)
	t.Cleanup(e.Finalize)
	return e
}

// A wrong argument, passed through GoMLX's interface, is an error that names it.
func TestExecute_whatDoesNotBelong(t *testing.T) {
	cpu := plugintest.Uncached(t, xla.ClientOption("cpu_device_count", 2))
	plain := plugintest.Go(t)
	x, err := cpu.BufferFromFlatData(0, []float32{1, 2}, pair)
	require.NoError(t, err)
	_, err = identity(t, cpu, pair).Execute([]compute.Buffer{x}, nil, 9)
	require.ErrorContains(t, err, "device 9")
	_, err = identity(t, plain, pair).Execute([]compute.Buffer{x}, nil, 0)
	require.ErrorContains(t, err, "buffer", "another runtime's value")
	require.NoError(t, x.Finalize())

	_, err = cpu.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32, 1<<40, 1<<40))
	require.ErrorContains(t, err, "more bytes than an int counts")

	other, err := plain.Builder("other").Main().Parameter("state", shapes.Make(dtypes.Uint64, 3), nil)
	require.NoError(t, err)
	_, _, err = plain.Builder("drawing").Main().RNGBitGenerator(other, pair)
	require.Error(t, err, "another graph's value")
}

// A freed value is not reported as a closed runtime.
func TestRun_aFreedValue(t *testing.T) {
	r := plugintest.Uncached(t)
	p, err := r.Compile("plus one", plusOne)
	require.NoError(t, err)
	x, err := r.BufferFromFlatData(0, []float32{1, 2}, pair)
	require.NoError(t, err)
	require.NoError(t, x.Finalize())
	_, err = p.Run([]compute.Buffer{x}, nil)
	require.ErrorIs(t, err, xla.ErrClosed)
	require.NotContains(t, err.Error(), "the runtime is closed")
	require.NoError(t, p.Close())
}

// A block may have two steps.
func TestCompile_aBlockOfTwo(t *testing.T) {
	p := accumulating(t, plugintest.Uncached(t), 2)
	require.Equal(t, 2, p.Block())
	require.NoError(t, p.Close())
}

// An output that is not an input is returned unchanged, without compiling or copying.
func TestEager_copiesOnlyWhatIsTaken(t *testing.T) {
	r := plugintest.Uncached(t)
	e := newEager(t, r)
	before := pjrt.Live().Buffers
	outputs, err := e.Run("step", nil, func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.Neg(graph.Const(g, []float32{1, 2}))}
	})
	require.NoError(t, err)
	compiled := e.Compiled()
	twice, err := e.Run("step", nil, func(g *graph.Graph) []*graph.Node {
		x := graph.Neg(graph.Const(g, []float32{1, 2}))
		return []*graph.Node{x, x}
	})
	require.NoError(t, err)
	require.Equal(t, compiled+1, e.Compiled(), "the second time it is copied")
	for _, b := range append(outputs, twice...) {
		require.NoError(t, b.Finalize())
	}
	require.Equal(t, before, pjrt.Live().Buffers)
}
