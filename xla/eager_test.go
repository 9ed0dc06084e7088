package xla_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func newEager(t *testing.T, r *xla.Runtime) *xla.Eager {
	t.Helper()
	e, err := xla.NewEager(r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// look runs a function without inputs and outputs.
func look(e *xla.Eager, f func(g *graph.Graph)) error {
	_, err := e.Run("look", nil, func(g *graph.Graph) []*graph.Node {
		f(g)
		return nil
	})
	return err
}

func value(t *testing.T, n *graph.Node) any {
	t.Helper()
	v, err := xla.Value(n)
	require.NoError(t, err)
	return v.Value()
}

func TestEager_readsValuesOnTheWay(t *testing.T) {
	r := plugintest.Uncached(t)
	e := newEager(t, r)
	before := pjrt.Live()
	x, err := r.BufferFromFlatData(0, []float32{1, 2, 3}, shapes.Make(dtypes.Float32, 3))
	require.NoError(t, err)
	var kept *graph.Node
	outputs, err := e.Run("numbers", map[string]compute.Buffer{"x": x}, func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 3))
		require.Equal(t, []float32{1, 2, 3}, value(t, x))
		sum := graph.ReduceAllSum(x)
		require.Equal(t, float32(6), value(t, sum))
		if value(t, sum).(float32) > 5 { // the graph may depend on a value
			x = graph.Neg(x)
		}
		require.Equal(t, []bool{true, false}, value(t, graph.Const(g, []bool{true, false})))
		require.Equal(t, complex64(complex(1, -2)), value(t, graph.Const(g, complex64(complex(1, -2)))))
		require.Equal(t, [][]int64{{7}}, value(t, graph.Const(g, [][]int64{{7}})))
		require.Equal(t, float32(1.5), value(t, graph.ConvertDType(graph.Const(g, 1.5), dtypes.Float32)))
		next, drawn := graph.RandomUniform(graph.RNGStateFromSeedForGraph(g, 1), shapes.Make(dtypes.Float32, 2))
		require.NotEqual(t, value(t, next), value(t, graph.RNGStateFromSeedForGraph(g, 1)))
		require.NotEqual(t, value(t, drawn).([]float32)[0], value(t, drawn).([]float32)[1])
		empty, err := xla.Value(graph.Zeros(g, shapes.Make(dtypes.Float32, 0, 2)))
		require.NoError(t, err)
		require.Equal(t, 0, empty.Size())
		gradient := graph.Gradient(graph.ReduceAllSum(graph.Square(x)), x)[0]
		require.Equal(t, []float32{-2, -4, -6}, value(t, gradient))
		kept = x
		return []*graph.Node{x, nil, gradient}
	})
	require.NoError(t, err)
	require.Nil(t, outputs[1])
	flat := make([]float32, 3)
	require.NoError(t, outputs[0].ToFlatData(flat))
	require.Equal(t, []float32{-1, -2, -3}, flat)
	for _, b := range []compute.Buffer{x, outputs[0], outputs[2]} {
		require.NoError(t, b.Finalize())
	}
	_, err = xla.Value(kept)
	require.ErrorContains(t, err, "the node has no value")
	require.Positive(t, e.CompileTime())
	require.NoError(t, e.Close())
	require.Equal(t, before, pjrt.Live())
}

// A program is compiled once for each operation, shape and attribute; the oldest are freed first.
//
//lazo:norace
func TestEager_compilesOnce(t *testing.T) {
	e := newEager(t, plugintest.Uncached(t))
	before := pjrt.Live().Executables
	sum := func(values []float32, axis int) {
		require.NoError(t, look(e, func(g *graph.Graph) {
			x := graph.InsertAxes(graph.Const(g, values), 0)
			graph.ReduceSum(graph.Add(x, x), axis)
		}))
	}
	for _, row := range []struct {
		name   string
		values []float32
		axis   int
		want   int
	}{
		{"the first time", []float32{1, 2}, 0, 3},
		{"again", []float32{1, 2}, 0, 3},
		{"other values", []float32{3, 4}, 0, 3},
		{"another attribute", []float32{3, 4}, 1, 4},
		{"another shape", []float32{3, 4, 5}, 1, 7},
	} {
		sum(row.values, row.axis)
		require.Equal(t, row.want, e.Compiled(), row.name)
		require.Equal(t, int64(row.want), pjrt.Live().Executables-before, row.name)
	}
	e.KeepPrograms(7)
	for n := 4; n < 20; n++ {
		sum(make([]float32, n), 1)
		require.Equal(t, int64(7), pjrt.Live().Executables-before)
	}
	compiled := e.Compiled()
	sum(make([]float32, 19), 1)
	require.Equal(t, compiled, e.Compiled(), "the latest are kept")
	require.NoError(t, e.Close())
	require.Equal(t, before, pjrt.Live().Executables)
	sum(make([]float32, 19), 1)
	require.Equal(t, compiled+3, e.Compiled(), "after Close it compiles again")
}

func TestEager_errors(t *testing.T) {
	r := plugintest.Uncached(t)
	e := newEager(t, r)
	x, err := r.BufferFromFlatData(0, []float32{1, 2, 3}, shapes.Make(dtypes.Float32, 3))
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Finalize()) }()
	before := pjrt.Live().Buffers
	var other *graph.Node
	for _, row := range []struct {
		name  string
		build func(g *graph.Graph)
		want  string
	}{
		{"no value for a parameter", func(g *graph.Graph) { graph.Parameter(g, "y", shapes.Make(dtypes.Float32, 3)) },
			`no value was given for parameter "y", (Float32)[3]`},
		{"a value of another shape", func(g *graph.Graph) { graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2)) },
			`parameter "x": expected a value of shape (Float32)[2], got (Float32)[3]`},
		{"operands that do not fit", func(g *graph.Graph) {
			graph.Dot(graph.Ones(g, shapes.Make(dtypes.Float32, 2, 3)), graph.Ones(g, shapes.Make(dtypes.Float32, 2, 3))).Product()
		},
			"DotGeneral((Float32)[2, 3], (Float32)[2, 3])"},
		{"a node of another graph", func(*graph.Graph) { other = graph.Const(graph.NewGraph(r, "other"), 1) }, "output 0: it belongs to another graph, \"other\""},
		{"compiling", func(g *graph.Graph) { g.Compile(graph.Const(g, 1)) }, "is not compiled"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := e.Run("step", map[string]compute.Buffer{"x": x}, func(g *graph.Graph) []*graph.Node {
				graph.Exp(graph.Const(g, float32(2))) // forces an eviction
				row.build(g)
				return []*graph.Node{other}
			})
			require.ErrorContains(t, err, row.want)
			if other == nil {
				require.ErrorContains(t, err, "xla/eager_test.go:")
			}
			other = nil
			require.ErrorContains(t, err, "xla: run step operation by operation: ")
			require.Equal(t, before, pjrt.Live().Buffers)
			t.Log(err)
		})
	}
}

func TestValue_outsideOfARun(t *testing.T) {
	r := plugintest.Uncached(t)
	_, err := xla.Value(nil)
	require.ErrorContains(t, err, "the node has no value")
	asked := 0
	_, err = graph.CallOnce(r, func(x *graph.Node) *graph.Node {
		_, err := xla.Value(x)
		require.ErrorContains(t, err, "the node has no value")
		require.ErrorContains(t, err, "is not run operation by operation")
		asked++
		return graph.Neg(x)
	}, tensors.FromValue(float32(1)))
	require.NoError(t, err)
	require.Equal(t, 1, asked)
}

func TestEager_closedRuntime(t *testing.T) {
	r, err := xla.Open(t.Context(), xla.CPU)
	require.NoError(t, err)
	e, err := xla.NewEager(r)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, r.Close())
	require.ErrorIs(t, look(e, func(*graph.Graph) {}), xla.ErrClosed)
}

// With several devices, everything runs on the first.
func TestEager_severalDevices(t *testing.T) {
	e := newEager(t, plugintest.Uncached(t, xla.ClientOption("cpu_device_count", 2)))
	e.CheckFinite = true
	require.NoError(t, look(e, func(g *graph.Graph) {
		require.Equal(t, float32(3), value(t, graph.AddScalar(graph.Const(g, float32(1)), 2)))
	}))
}

func TestCheckFinite(t *testing.T) {
	e := newEager(t, plugintest.Uncached(t))
	e.CheckFinite = true
	inf := math.Inf(-1)
	of := func(g *graph.Graph, t dtypes.DType, x ...float64) *graph.Node {
		return graph.ConvertDType(graph.Const(g, x), t)
	}
	for _, row := range []struct {
		name  string
		build func(g *graph.Graph)
		op    string // "": nothing is found
		nan   bool
	}{
		{"numbers", func(g *graph.Graph) { graph.Exp(of(g, dtypes.Float32, 1, 2)) }, "", false},
		{"integers", func(g *graph.Graph) { graph.Neg(of(g, dtypes.Int32, 1, 2)) }, "", false},
		{"an infinite constant", func(g *graph.Graph) { graph.Const(g, []float64{inf}) }, "", false},
		{"a mask", func(g *graph.Graph) {
			x := graph.Where(graph.Const(g, []bool{true, false}), of(g, dtypes.Float32, 1, 2), of(g, dtypes.Float32, inf, inf))
			require.Equal(t, []float32{float32(math.E), 0}, value(t, graph.Exp(x)))
		}, "", false},
		{"NaN of infinities", func(g *graph.Graph) {
			x := of(g, dtypes.Float32, inf)
			graph.Sub(x, x)
		}, "Sub", true},
		{"NaN that is handed on", func(g *graph.Graph) { graph.Neg(graph.Sqrt(of(g, dtypes.Float32, -1))) }, "Sqrt", true},
		{"float16 too large", func(g *graph.Graph) { graph.Mul(of(g, dtypes.Float16, 6e4), of(g, dtypes.Float16, 2)) }, "Mul", false},
		{"bfloat16", func(g *graph.Graph) { graph.Log(of(g, dtypes.BFloat16, 1, 0)) }, "Log", false},
		{"float64", func(g *graph.Graph) { graph.Log(of(g, dtypes.Float64, 1, -1)) }, "Log", true},
		{"complex", func(g *graph.Graph) {
			graph.Complex(of(g, dtypes.Float32, 1), graph.Div(of(g, dtypes.Float32, 1), of(g, dtypes.Float32, 0)))
		}, "Div", false},
		{"the imaginary part", func(g *graph.Graph) {
			graph.Mul(graph.Complex(of(g, dtypes.Float32, 0), of(g, dtypes.Float32, 3e38)), graph.Const(g, []complex64{2}))
		}, "Mul", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := look(e, row.build)
			if row.op == "" {
				require.NoError(t, err)
				return
			}
			var first *xla.NotFiniteError
			require.ErrorAs(t, err, &first)
			require.Equal(t, row.op, first.Op)
			require.Equal(t, row.nan, first.NaN)
			require.Contains(t, first.Where, "xla/eager_test.go:")
			require.NotErrorIs(t, err, xla.ErrInvalidArgument)
		})
	}
}
