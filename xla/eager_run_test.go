package xla_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

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
				require.ErrorContains(t, err, "xla/eager_run_test.go:")
			}
			other = nil
			require.ErrorContains(t, err, "xla: run step operation by operation: ")
			require.Equal(t, before, pjrt.Live().Buffers)
			t.Log(err)
		})
	}
}
