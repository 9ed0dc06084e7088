package plan

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/cost"
)

// libtpu's messages about programs that are too large, verbatim.
func TestUnfit(t *testing.T) {
	for text, want := range map[string]Fit{
		"RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO temporaries (20.88G) exceeds available HBM (15.75G). HLO module: jit__lambda.": {Needs: 22419729285, Has: 16911433728, By: "the compiler"},
		"RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 512.00M of 256.00M hbm.":                                                                                                 {Needs: 512 << 20, Has: 256 << 20, By: "the compiler"},
	} {
		fit, is := unfit(fmt.Errorf("xla: compile: %w: %s", xla.ErrOutOfMemory, text))
		require.True(t, is)
		require.Equal(t, want, fit)
		require.Equal(t, want.Needs-want.Has, fit.Over())
	}
	_, is := unfit(fmt.Errorf("%w: of the host", xla.ErrOutOfMemory))
	require.False(t, is)
	_, is = unfit(errors.New("required (20.88G) exceeds available (15.75G)"))
	require.False(t, is)
}

func TestEstimate(t *testing.T) {
	at := func(name string) Target {
		target, err := ParseTarget(name)
		require.NoError(t, err)
		return target
	}
	c := &cost.Counts{Matrix: map[string]float64{"bf16": 197e9}, Bytes: 819e6, Exchanged: []cost.Exchange{{Kind: "all-reduce", Axes: "data", Group: 4, Sent: 100e6}}, Devices: 4}
	e := estimate(at("v5e:2x2"), c)
	require.Equal(t, Estimate{Compute: time.Millisecond, Memory: time.Millisecond, Links: 500 * time.Microsecond, Low: time.Millisecond, High: 2500 * time.Microsecond}, e)
	// A TPU multiplies float32 as bfloat16, which is reported.
	c.Matrix = map[string]float64{"f32": 197e9}
	e = estimate(at("v5e:2x2"), c)
	require.Equal(t, time.Millisecond, e.Compute)
	require.Equal(t, []string{"the rate of f32 products on v5e: that of bf16 is taken"}, e.Missing)
	// An unpublished rate is left out and reported.
	c.Matrix, c.Vector = map[string]float64{"c64": 1e12}, 1e9
	e = estimate(at("v4:2x2x1"), c)
	require.Zero(t, e.Compute+e.Links)
	require.Equal(t, []string{"the rate of c64 products on v4: they are not in the estimate",
		"the rate of operations other than products on v4: only their memory is counted",
		"the speed of the links of v4: the exchange is not in the estimate"}, e.Missing)
	// Over several hosts, the slower of links and a host's network cards decides.
	c = &cost.Counts{Matrix: map[string]float64{}, Exchanged: []cost.Exchange{{Kind: "all-reduce", Axes: "data", Group: 64, Sent: 450e6}}}
	require.Equal(t, time.Millisecond, estimate(at("h100:8"), c).Links)
	require.Equal(t, 1125*time.Microsecond, estimate(at("h100:64"), c).Links)
}

const stablehlo = `module @step {
  func.func public @main(%p0: tensor<32x8xf32>, %p1: tensor<8x4xf32> {tf.aliasing_output = 0 : i32}, %p2: tensor<f32>) -> (tensor<8x4xf32>, tensor<f32>) {
    %0 = "stablehlo.dot_general"(%p0, %p1) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_contracting_dimensions = [1]
>
    } : (tensor<32x8xf32>, tensor<8x4xf32>) -> tensor<32x4xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<f32>
    return %p1, %1 : tensor<8x4xf32>, tensor<f32>
  }
}
`
