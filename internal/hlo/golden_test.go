package hlo_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
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

// Special values of each dtype come back bit-identical, in short, long, scalar and empty constants. The builder copies
// the values.
func TestConstants(t *testing.T) {
	d := open(t)
	inf := math.Inf(1)
	for _, a := range []array{
		of([]int{3}, true, false, true),
		of([]int{2}, int8(math.MinInt8), math.MaxInt8), of([]int{2}, int16(math.MinInt16), math.MaxInt16),
		of([]int{2}, int32(math.MinInt32), math.MaxInt32), of([]int{2}, int64(math.MinInt64), math.MaxInt64),
		of([]int{2}, uint8(0), math.MaxUint8), of([]int{2}, uint16(0), math.MaxUint16),
		of([]int{2}, uint32(0), math.MaxUint32), of([]int{2}, uint64(0), math.MaxUint64),
		of([]int{5}, float32(inf), float32(-inf), float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32),
		of([]int{5}, inf, -inf, math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.MaxFloat64),
		of([]int{3}, float32(0.1), float32(math.Float32frombits(0x7fc00001)), float32(1e-40)),
		of([]int{3}, 0.1, math.NaN(), 1e300),
		of([]int{4}, float16.Float16(0x7c00), float16.Float16(0xfc00), float16.Float16(0x0001), float16.Float16(0x7e00)),
		of([]int{4}, bfloat16.BFloat16(0x7f80), bfloat16.BFloat16(0xff80), bfloat16.BFloat16(0x0001), bfloat16.BFloat16(0x7fc0)),
		of([]int{2}, complex64(complex(inf, math.NaN())), complex64(complex(-0.1, 1e-40))),
		of([]int{2}, complex(inf, math.NaN()), complex(-0.1, 1e-310)),
	} {
		t.Run(a.shape.String(), func(t *testing.T) {
			long, single, empty := zeros(shapes.Make(a.shape.DType, 5, 5)), zeros(shapes.Make(a.shape.DType)), zeros(shapes.Make(a.shape.DType, 2, 0))
			for i := range 25 {
				copyElement(long, i, a, i%a.shape.Size())
			}
			copyElement(single, 0, a, 0)
			all := []array{a, long, single, empty}
			got, err := run(d, nil, func(f compute.Function, _ []compute.Value) (out []compute.Value, err error) {
				for _, c := range all {
					given := append([]byte{}, memory(c.flat)...)
					op, err := f.Constant(c.flat, c.shape.Dimensions...)
					if err != nil {
						return nil, err
					}
					clear(memory(c.flat)) // the caller reuses its slice
					defer copy(memory(c.flat), given)
					out = append(out, op)
				}
				return out, nil
			})
			require.NoError(t, err)
			for i, c := range all {
				require.Equal(t, memory(c.flat), memory(got[i].flat), "%s", c.shape)
				require.Equal(t, c.shape.Dimensions, got[i].shape.Dimensions)
			}
		})
	}
}

// Programs for which a naive lowering gives wrong results on XLA's CPU or ends the process.
func TestFaultsOfXLA(t *testing.T) {
	d := open(t)
	constant := func(f compute.Function, a array) compute.Value {
		return must1(t)(f.Constant(a.flat, a.shape.Dimensions...))
	}
	for _, row := range []struct {
		name  string
		build func(f compute.Function) (compute.Value, error)
		want  any
	}{
		{"a dot of constants with batch axes out of order", func(f compute.Function) (compute.Value, error) {
			x := of([]int{3, 3}, int32(1), 2, 3, 4, 5, 6, 7, 8, 9)
			return f.DotGeneral(constant(f, x), nil, []int{1, 0}, constant(f, x), nil, []int{1, 0}, compute.DotGeneralConfig{})
		}, []int32{1, 16, 49, 4, 25, 64, 9, 36, 81}},
		{"leading zeros of a constant below 0", func(f compute.Function) (compute.Value, error) {
			return f.Clz(constant(f, of([]int{2}, int16(-64), 15)))
		}, []int16{0, 12}},
		{"total order of a NaN", func(f compute.Function) (compute.Value, error) {
			return f.GreaterOrEqualTotalOrder(constant(f, of([]int{2}, math.NaN(), 1)), constant(f, of(nil, 2.0)))
		}, []bool{true, false}},
		{"a complex constant to reals", func(f compute.Function) (compute.Value, error) {
			return f.ConvertDType(constant(f, of([]int{2}, complex64(3+4i), 5)), dtypes.Float64)
		}, []float64{3, 5}},
		{"a complex constant to truth", func(f compute.Function) (compute.Value, error) {
			return f.ConvertDType(constant(f, of([]int{3}, complex64(4i), 0, 1)), dtypes.Bool)
		}, []bool{true, false, true}},
		{"the length of a complex iota", func(f compute.Function) (compute.Value, error) {
			return f.Abs(must1(t)(f.Iota(shapes.Make(dtypes.Complex64, 3), 0)))
		}, []float32{0, 1, 2}},
		{"base dilations that are not the window's (go-xla)", func(f compute.Function) (compute.Value, error) {
			return f.ReduceWindow(constant(f, of([]int{3}, float32(1), 2, 3)), compute.ReduceOpSum, []int{1}, []int{1}, []int{2}, []int{1}, nil)
		}, []float32{1, 0, 2, 0, 3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := run(d, nil, func(f compute.Function, _ []compute.Value) ([]compute.Value, error) { return one(row.build(f)) })
			require.NoError(t, err)
			require.Equal(t, row.want, got[0].flat)
		})
	}
}

// A module counts its operations.
func TestOpsCounted(t *testing.T) {
	m := stepModule(t)
	require.Equal(t, 5, m.Ops[compute.OpTypeParameter])
	require.Equal(t, 2, m.Ops[compute.OpTypeDotGeneral])
	require.Equal(t, 1, m.Ops[compute.OpTypeRNGBitGenerator])
	require.Zero(t, m.Ops[compute.OpTypeConvGeneral])
	require.Equal(t, "random", m.Parameters[3].Name)
	require.Equal(t, 1, m.Devices.Count())
}
