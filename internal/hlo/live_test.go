package hlo_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"
)

// A program has exactly the operations that its outputs need, also those that only a closure needs.
func TestModule_live(t *testing.T) {
	o := newOperands(t)
	do := must1(t)
	inside := do(o.Neg(do(o.Exp(o.f))))
	c, err := o.Closure()
	require.NoError(t, err)
	require.NoError(t, c.Return([]compute.Value{do(c.Tanh(inside))}, nil))
	chosen, err := o.If(o.yes(), c, closure1(o, o.f))
	require.NoError(t, err)
	unused, err := o.If(o.yes(), closure1(o, do(o.Cos(do(o.Sin(o.f))))), closure1(o, o.f))
	require.NoError(t, err)
	do(o.Sqrt(unused[0]))
	module := moduleFrom(t, o.program, []compute.Value{chosen[0]})
	for kind, want := range map[compute.OpType]int{
		compute.OpTypeExp: 1, compute.OpTypeNeg: 1, compute.OpTypeTanh: 1, compute.OpTypeIf: 1,
		compute.OpTypeSin: 0, compute.OpTypeCos: 0, compute.OpTypeSqrt: 0,
	} {
		require.Equal(t, want, module.Ops[kind], kind)
	}
	require.NotContains(t, module.Text(), "stablehlo.sine")
	require.NotContains(t, module.Text(), "stablehlo.sqrt")
	for _, op := range module.Largest(100) {
		require.NotContains(t, []compute.OpType{compute.OpTypeSin, compute.OpTypeCos, compute.OpTypeSqrt}, op.Kind)
	}
}
