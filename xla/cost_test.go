package xla_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// squared squares a matrix as often as an argument says.
const squared = `module @squared {
  func.func public @main(%n: tensor<i32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %seven = stablehlo.constant dense<7> : tensor<i32>
    %r:3 = stablehlo.while(%i = %zero, %limit = %n, %y = %x) : tensor<i32>, tensor<i32>, tensor<8x8xf32>
     cond {
      %more = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %z = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      stablehlo.return %j, %limit, %z : tensor<i32>, tensor<i32>, tensor<8x8xf32>
    }
    return %r#2 : tensor<8x8xf32>
  }
}
`

// lazo counts a loop as often as it runs, and reports loops of unknown length.
func TestCost_loops(t *testing.T) {
	r := plugintest.CPU(t)
	const once = 2*8*8*8 + 2 // a product, a step of the counter and a comparison
	for name, row := range map[string]struct {
		text           string
		flops, unknown int
	}{
		"as often as an argument says": {squared, once, 1},
		"seven times":                  {strings.Replace(squared, "%limit = %n", "%limit = %seven", 1), 7 * once, 0},
	} {
		p, err := r.CompileStableHLO(t.Context(), "squared", row.text, xla.Built{})
		require.NoError(t, err, name)
		told, err := p.Cost()
		require.NoError(t, err, name)
		counted, err := xla.CostFromHLO(p)
		require.NoError(t, err, name)
		t.Logf("%s: %+v, %+v", name, told, counted)
		require.True(t, counted.Counted, name)
		require.Len(t, counted.Unknown, row.unknown, name)
		require.Empty(t, counted.Uncounted, name)
		require.InDelta(t, row.flops, counted.FLOPs, 8, "%s: XLA may copy the counter", name)
		if !told.Counted {
			require.InDelta(t, once, told.FLOPs, 8, "%s: the body counts once", name)
			require.Empty(t, told.Unknown, name)
		} else {
			require.Equal(t, counted, told, name)
		}
		if row.unknown > 0 { // the caller may change it
			counted.Unknown[0] = "mine"
			again, err := xla.CostFromHLO(p)
			require.NoError(t, err)
			require.NotEqual(t, counted.Unknown, again.Unknown)
		}
		require.NoError(t, p.Close())
	}
}

// If the plugin reports no cost, its text decides.
func TestCost_fromHLO(t *testing.T) {
	const text = "HloModule m\n\nENTRY %main (x: f32[64]) -> f32[64] {\n  %x = f32[64]{0} parameter(0)\n  %e = f32[64]{0} exponential(%x)\n" +
		"  %y = f32[64]{0} custom-call(%e), custom_call_target=\"mine\"\n  ROOT %z = f32[64]{0} negate(%y)\n}\n"
	c, err := xla.CostOf(text, nil)
	require.NoError(t, err)
	require.Equal(t, xla.Cost{FLOPs: 64, Transcendentals: 64, BytesAccessed: 3 * 2 * 4 * 64, Counted: true, Uncounted: []string{`custom-call "mine"`}}, c)

	_, err = xla.CostOf("HloModule m\n", nil)
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	require.ErrorContains(t, err, "the optimized program cannot be counted: line 1: the module has no entry computation")
	_, err = xla.CostOf("", xla.ErrNoText)
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	lost := errors.New("no room")
	_, err = xla.CostOf("", lost)
	require.ErrorIs(t, err, lost)
	require.NotErrorIs(t, err, xla.ErrUnimplemented)
}
