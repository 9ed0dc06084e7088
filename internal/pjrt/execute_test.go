package pjrt

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExecuteRefusals(t *testing.T) {
	c := openCPU(t, 2)
	d := c.Devices()
	e := compile(t, c, tinyProgram, CompileOptions{})
	good := put(t, d[0], Float32, []float32{1})
	rows := []struct {
		name    string
		args    [][]*Buffer
		options ExecuteOptions
		text    string
	}{
		{"no devices", nil, ExecuteOptions{}, "expected arguments for 1 devices, got 0"},
		{"two devices", [][]*Buffer{{good}, {good}}, ExecuteOptions{}, "expected arguments for 1 devices, got 2"},
		{"no arguments", [][]*Buffer{{}}, ExecuteOptions{}, "expected 1 arguments, got 0"},
		{"two arguments", [][]*Buffer{{good, good}}, ExecuteOptions{}, "expected 1 arguments, got 2"},
		{"shape", [][]*Buffer{{put(t, d[0], Float32, []float32{1}, 1)}}, ExecuteOptions{}, "argument 0: invalid argument: expected shape f32, got 1xf32"},
		{"type", [][]*Buffer{{put(t, d[0], Int32, []int32{1})}}, ExecuteOptions{}, "expected shape f32, got i32"},
		{"device", [][]*Buffer{{put(t, d[1], Float32, []float32{1})}}, ExecuteOptions{}, "expected a buffer on"},
		{"nothing", [][]*Buffer{{nil}}, ExecuteOptions{}, "there is no buffer"},
		{"keep", [][]*Buffer{{good}}, ExecuteOptions{Keep: []int{1}}, "argument 1 is to be kept, there are 1"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := e.Execute(row.args, row.options)
			require.ErrorIs(t, err, ErrInvalidArgument)
			assert.Contains(t, err.Error(), row.text)
		})
	}
}

// An argument may be passed twice, and a donated argument may be kept.
func TestExecuteDonation(t *testing.T) {
	c := openCPU(t, 1)
	e := compile(t, c, stateProgram(2, 4), CompileOptions{})
	for _, keep := range []bool{false, true} {
		x, y := put(t, c.Devices()[0], Float32, make([]float32, 4), 4), put(t, c.Devices()[0], Float32, make([]float32, 4), 4)
		options := ExecuteOptions{}
		if keep {
			options.Keep = []int{0, 1}
			y = x
		}
		run, err := e.Execute([][]*Buffer{{x, y}}, options)
		require.NoError(t, err)
		require.NoError(t, run.Await())
		gone, err := x.IsDeleted()
		require.NoError(t, err)
		assert.Equal(t, !keep, gone)
		assert.Equal(t, []float32{1, 1, 1, 1}, fetch[float32](t, run.Outputs[0][1], 4))
		require.NoError(t, run.Close())
	}
}
