package xla_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

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
