package xla_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/xla"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openCPU opens the plugin that make setup installs.
func openCPU(t *testing.T, opts ...xla.Option) *xla.Runtime {
	t.Helper()
	runtime, err := xla.Open(t.Context(), xla.CPU, opts...)
	require.NoError(t, err, "these tests need the CPU plugin: make setup")
	t.Cleanup(func() { require.NoError(t, runtime.Close()) })
	return runtime
}

// double compiles x + x over four numbers and runs it on the device.
func double(t *testing.T, runtime *xla.Runtime, device backends.DeviceNum, x []float32) []float32 {
	t.Helper()
	shape := shapes.Make(dtypes.Float32, len(x))
	builder := runtime.Builder("double")
	require.NoError(t, builder.DeviceAssignment(device))
	parameter, err := builder.Parameter("x", shape, nil)
	require.NoError(t, err)
	sum, err := builder.Add(parameter, parameter)
	require.NoError(t, err)
	program, err := builder.Compile([]backends.Op{sum}, nil)
	require.NoError(t, err)
	defer program.Finalize()
	input, err := runtime.BufferFromFlatData(device, x, shape)
	require.NoError(t, err)
	outputs, err := program.Execute([]backends.Buffer{input}, []bool{false}, device)
	require.NoError(t, err)
	result := make([]float32, len(x))
	require.NoError(t, runtime.BufferToFlatData(outputs[0], result))
	require.NoError(t, runtime.BufferFinalize(input))
	require.NoError(t, runtime.BufferFinalize(outputs[0]))
	return result
}
