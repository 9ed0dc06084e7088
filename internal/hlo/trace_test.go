package hlo_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// After a traced body its values are refused: those made of its parameters, or all but constants.
func TestTrace(t *testing.T) {
	for _, whole := range []bool{false, true} {
		do := must1(t)
		b := programOf(hlo.New("trace", nil))
		x := do(b.Parameter("x", shapes.Make(dtypes.Float32), nil))
		zero := do(b.Constant([]float32{0}))
		b.BeginTrace(whole)
		in, err := b.OptimizationBarrier(zero)
		require.NoError(t, err)
		b.TraceBody()
		inside, outside := do(b.Add(in[0], x)), do(b.Neg(x))
		further, constant := do(b.Neg(inside)), do(b.Neg(zero))
		b.EndTrace()
		for name, row := range map[string]struct {
			v       compute.Value
			refused bool
		}{
			"the parameter": {in[0], true}, "of the parameter": {inside, true}, "of that": {further, true},
			"of values before": {outside, whole}, "of constants": {constant, false}, "a value before": {x, false},
		} {
			_, err := b.Neg(row.v)
			if row.refused {
				require.ErrorIs(t, err, hlo.ErrTraced, "%s, whole: %t", name, whole)
			} else {
				require.NoError(t, err, "%s, whole: %t", name, whole)
			}
		}
	}
}
