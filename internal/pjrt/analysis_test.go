package pjrt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExecutable(t *testing.T) {
	c := openCPU(t, 1)
	e := compile(t, c, stepProgram, CompileOptions{Debug: map[string]any{"xla_cpu_enable_fast_math": false}})
	serialized, err := e.Serialize()
	require.NoError(t, err)
	loaded, err := c.Load(serialized)
	require.NoError(t, err)
	for name, e := range map[string]*Executable{"compiled": e, "loaded": loaded} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, "step", e.Name())
			assert.Equal(t, c.Devices(), e.Devices())
			assert.Empty(t, cmp.Diff([]Shape{{Float32, []int{4}}, {Int32, nil}, {Float32, nil}}, e.Outputs()))
			parameters, err := e.Parameters()
			require.NoError(t, err)
			assert.Empty(t, cmp.Diff([]Shape{{Float32, []int{4}}, {Int32, nil}, {Float32, nil}, {Float32, []int{4}}}, parameters))
			donated, err := e.Donated()
			require.NoError(t, err)
			assert.Equal(t, map[int]int{0: 0, 1: 1}, donated)
			costs, err := e.CostAnalysis()
			if c.Plugin().Version().Minor < 106 { // newer plugins count nothing: package cost does
				require.NoError(t, err)
				assert.Positive(t, costs["flops"])
			} else {
				require.ErrorIs(t, err, ErrUnimplemented)
			}
			memory, err := e.Memory()
			require.NoError(t, err)
			assert.EqualValues(t, 20, memory.Aliased)
			text, err := e.Fingerprint()
			require.NoError(t, err)
			assert.NotEmpty(t, text)
			program, format, err := e.OptimizedProgram()
			require.NoError(t, err)
			assert.Equal(t, "hlo_with_config", format)
			assert.Contains(t, string(program), "step")

			call, err := e.NewCall(stepOptions())
			require.NoError(t, err)
			d := c.Devices()[0]
			sum := put(t, d, Float32, []float32{1, 1, 1, 1}, 4)
			require.NoError(t, firstError(call.Set(0, 0, sum), call.Set(0, 1, put(t, d, Int32, []int32{0})), call.Set(0, 2, put(t, d, Float32, []float32{3}))))
			out, err := call.Run(Bytes([]float32{1, 2, 3, 4}))
			require.NoError(t, err)
			assert.Equal(t, []float32{4, 7, 10, 13}, fetch[float32](t, sum, 4))
			assert.Equal(t, []float32{34}, fetch[float32](t, out[0][0], 1))
		})
	}
}
