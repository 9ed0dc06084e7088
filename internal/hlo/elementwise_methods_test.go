package hlo_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/internal/hlo"
)

// The text of six small modules is that of files.
func TestGolden(t *testing.T) {
	f32 := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
	for _, row := range []struct {
		name   string
		module func(t *testing.T) *hlo.Module
	}{
		{"elementwise", func(t *testing.T) *hlo.Module {
			return moduleOf(t, "elementwise", func(b program) []compute.Value {
				do := must1(t)
				x := do(b.Parameter("x", f32(2, 3), nil))
				return []compute.Value{do(b.Tanh(do(b.Add(x, do(b.Constant([]float32{0.5})))))), x}
			})
		}},
		{"reduce in place", func(t *testing.T) *hlo.Module {
			return moduleOf(t, "reduce in place", func(b program) []compute.Value {
				do := must1(t)
				state, x := do(b.Parameter("a/state", f32(3), nil)), do(b.Parameter("a_state", f32(2, 3), nil))
				require.NoError(t, b.InPlace(1, 0))
				sum := do(b.ReduceMax(x, 0))
				return []compute.Value{sum, do(b.Sub(state, sum))}
			})
		}},
		{"replicas", func(t *testing.T) *hlo.Module {
			return moduleOf(t, "replicas", func(b program) []compute.Value {
				require.NoError(t, b.DistributedSPMD(2))
				out, err := b.AllReduce([]compute.Value{must1(t)(b.Parameter("x", f32(), nil))}, compute.ReduceOpSum, [][]int{{0, 1}})
				require.NoError(t, err)
				return out
			})
		}},
		{"sharded", func(t *testing.T) *hlo.Module {
			return moduleOf(t, "sharded", func(b program) []compute.Value {
				require.NoError(t, b.DistributedAutoSharding(compute.Mesh{Name: "mesh", AxesNames: []string{"data"}, AxesSizes: []int{2}}))
				x := must1(t)(b.Parameter("x", f32(4), &compute.ShardingSpec{Mesh: "mesh", Axes: [][]string{{"data"}}}))
				return []compute.Value{must1(t)(b.Neg(x))}
			})
		}},
		{"steps", func(t *testing.T) *hlo.Module {
			step := moduleOf(t, "steps", func(b program) []compute.Value {
				do := must1(t)
				w, x := do(b.Parameter("w", f32(2), nil)), do(b.Parameter("x", f32(2), nil))
				require.NoError(t, b.InPlace(0, 0))
				return []compute.Value{do(b.Add(w, x)), do(b.DotGeneral(w, []int{0}, nil, x, []int{0}, nil, compute.DotGeneralConfig{}))}
			})
			looped, err := step.Steps(10, 1)
			require.NoError(t, err)
			return looped
		}},
		{"flow", func(t *testing.T) *hlo.Module {
			return moduleOf(t, "flow", func(b program) []compute.Value {
				do := must1(t)
				x, n := do(b.Parameter("x", f32(2), nil)), do(b.Parameter("n", shapes.Make(dtypes.Int32), nil))
				twice, err := b.NewFunction("twice")
				require.NoError(t, err)
				require.NoError(t, define(twice, []shapes.Shape{f32(2)}, func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
					return one(f.Add(in[0], in[0]))
				}))
				cond, err := b.Closure()
				require.NoError(t, err)
				state := []shapes.Shape{f32(2), shapes.Make(dtypes.Int32)}
				require.NoError(t, define(cond, state, func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
					return one(f.LessThan(in[1], n))
				}))
				body, err := b.Closure()
				require.NoError(t, err)
				require.NoError(t, define(body, state, func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
					next, err := f.Call(twice, in[0])
					return append(next, do(f.Add(in[1], do(f.Constant([]int32{1}))))), err
				}))
				out, err := b.While(cond, body, x, do(b.Constant([]int32{0})))
				require.NoError(t, err)
				return out
			})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			file := filepath.Join("testdata", strings.ReplaceAll(row.name, " ", "_")+".mlir")
			golden.Equal(t, file, row.module(t).Text())
		})
	}
}

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

// Step counts outside of 0 to k are clamped.
func TestStepCountBounds(t *testing.T) {
	d := open(t)
	looped, err := stepModule(t).Steps(2, 0, 4)
	require.NoError(t, err)
	x, y := zeros(shapes.Make(dtypes.Float32, 2, 4, 3)), zeros(shapes.Make(dtypes.Float32, 2, 4))
	for _, row := range []struct {
		n    int32
		runs int
	}{{-1, 0}, {0, 0}, {1, 1}, {2, 2}, {3, 2}} {
		state := of([]int{3}, uint64(1), 2, 3)
		got := runModule(t, d, looped, x, of([]int{3}, float32(1), 2, 3), of(nil, float32(0)), state, y, of(nil, row.n))
		ran := 0
		for _, loss := range got[2].flat.([]float32) {
			if loss != 0 {
				ran++
			}
		}
		require.Equal(t, []float32{1, 2, 3}, got[0].flat)
		require.Equal(t, row.runs == 0, fmt.Sprint(got[1].flat) == fmt.Sprint(state.flat), "n = %d", row.n)
		require.Equal(t, row.runs, ran, "n = %d", row.n)
	}
}
