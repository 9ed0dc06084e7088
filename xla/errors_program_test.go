package xla

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// The plugin's message about a refused text leads to the line here that asked for the operation. The builder passes
// nothing that the plugin refuses, so the test corrupts the text.
func TestLocated(t *testing.T) {
	r, err := Open(t.Context(), CPU)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	c := r.Backend.(*pjrtClient)
	var plain *hlo.Module
	b := hlo.New("spoilt", func(m *hlo.Module) (compute.Executable, error) { plain = m; return &executable{module: m}, nil })
	f := b.Main()
	x, err := f.Parameter("x", shapes.Make(dtypes.Float32, 2, 3), nil)
	require.NoError(t, err)
	sum, err := f.ReduceSum(x, 0)
	require.NoError(t, err)
	wave, err := f.Sin(sum)
	require.NoError(t, err)
	y, err := f.Add(x, x)
	require.NoError(t, err)
	require.NoError(t, b.InPlace(0, 0))
	require.NoError(t, f.Return([]compute.Value{y, wave}, nil))
	_, err = b.Compile()
	require.NoError(t, err)
	steps, err := plain.Steps(3)
	require.NoError(t, err)
	for name, m := range map[string]*hlo.Module{"plain": plain, "steps": steps} {
		for _, row := range []struct{ name, from, to, operation, operand string }{
			{"no such operation", "stablehlo.sine", "stablehlo.sinus", "Sin", "(Float32)[3]"},
			{"shapes that do not fit", `"stablehlo.sine"(%2)`, `"stablehlo.sine"(%p0)`, "Sin", "(Float32)[3]"},
			{"an axis that is not there", "dimensions = array<i64: 0>", "dimensions = array<i64: 7>", "ReduceSum", "(Float32)[2, 3]"},
		} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				text := strings.ReplaceAll(m.Text(), row.from, row.to)
				require.NotEqual(t, m.Text(), text)
				_, err := c.client.Compile([]byte(text), pjrt.CompileOptions{Replicas: 1, Partitions: 1, Devices: []int{0}})
				require.Error(t, err)
				err = during(located(m, err), "compile %s", m.Name)
				var typed *Error
				require.ErrorAs(t, err, &typed)
				require.Equal(t, row.operation, typed.Operation, "%v", err)
				require.Equal(t, row.operand, shapeList(typed.Operands))
				require.Regexp(t, `^xla/errors_program_test\.go:\d+$`, typed.Where)
				require.Equal(t, 1, strings.Count(err.Error(), typed.Where))
				t.Log(err)
			})
		}
	}
}
