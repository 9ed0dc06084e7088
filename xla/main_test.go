package xla_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/xla"
)

func TestMain(m *testing.M) {
	if os.Args[0] == childName {
		child()
	}
	goleak.VerifyTestMain(m)
}

// double compiles x + x over four numbers and runs it on the device.
func double(t *testing.T, runtime *xla.Runtime, device compute.DeviceNum, x []float32) []float32 {
	t.Helper()
	shape := shapes.Make(dtypes.Float32, len(x))
	builder := runtime.Builder("double")
	require.NoError(t, builder.DeviceAssignment(device))
	main := builder.Main()
	parameter, err := main.Parameter("x", shape, nil)
	require.NoError(t, err)
	sum, err := main.Add(parameter, parameter)
	require.NoError(t, err)
	require.NoError(t, main.Return([]compute.Value{sum}, nil))
	program, err := builder.Compile()
	require.NoError(t, err)
	defer program.Finalize()
	input, err := runtime.BufferFromFlatData(device, x, shape)
	require.NoError(t, err)
	outputs, err := program.Execute([]compute.Buffer{input}, []bool{false}, device)
	require.NoError(t, err)
	result := make([]float32, len(x))
	require.NoError(t, outputs[0].ToFlatData(result))
	require.NoError(t, input.Finalize())
	require.NoError(t, outputs[0].Finalize())
	return result
}
