package xla_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/planned"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// Under lazo plan each plugin is the described machine, and the first training step is recorded instead of run.
func TestOpen_planned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "step")
	order, err := planned.Order{Plugin: plugintest.Fake(t), Topology: "fake:4", File: file}.Environment()
	require.NoError(t, err)
	t.Setenv(planned.Variable, order[len(planned.Variable)+1:])
	r, err := xla.Open(t.Context(), xla.CPU, xla.ClientOption("cpu_device_count", 2))
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	require.Equal(t, "fake:4", r.Topology())
	host, err := xla.Open(t.Context(), xla.Go)
	require.NoError(t, err)
	require.Empty(t, host.Topology(), "what runs on the host is no machine to plan for")
	require.NoError(t, host.Close())

	run := func(name string) error {
		p, err := r.Compile(name, func(g *graph.Graph) xla.Built {
			x, y := graph.Parameter(g, "x", four), graph.Parameter(g, "y", four)
			return xla.Built{Outputs: []*graph.Node{graph.AddScalar(x, 1), graph.ReduceAllSum(graph.Add(x, y))}, InPlace: map[int]int{0: 0}, Host: []int{1}, Block: 10}
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close()) }()
		require.Equal(t, 1, p.Block(), "a single step is planned")
		x, err := r.BufferFromFlatData(0, []float32{1, 2, 3, 4}, four)
		require.NoError(t, err)
		_, _, err = p.Start([]compute.Buffer{x, nil}, []any{[]float32{1, 2, 3, 4}}, 1)
		return err
	}
	require.NoError(t, run("test step"))
	require.NoFileExists(t, file)
	require.ErrorIs(t, run("train step"), xla.ErrPlanned)
	require.ErrorIs(t, run("another train step"), xla.ErrPlanned)
	s, err := planned.Read(file)
	require.NoError(t, err)
	require.Equal(t, "train step", s.Name, "the first one, though the program went on")
	require.Equal(t, []int{1}, s.Batch)
	require.Equal(t, []string{"x", "y"}, s.Inputs)
	require.Contains(t, s.Text, "stablehlo.add")
	var lines []string
	for _, where := range s.Where {
		lines = append(lines, where)
	}
	require.Contains(t, lines, "xla/described_program_test.go:34")

	t.Setenv(planned.Variable, "yes")
	_, err = xla.Open(t.Context(), xla.CPU)
	require.ErrorContains(t, err, "expected what lazo plan sets")
}

func TestCompileStableHLO_devices(t *testing.T) {
	r := plugintest.Described(t, 4)
	text := func(n string) string {
		return "module @m attributes {mhlo.num_partitions = " + n + " : i32} {\n  func.func public @main() -> () {\n    return\n  }\n}\n"
	}
	_, err := r.CompileStableHLO(t.Context(), "m", text("9"), xla.Built{})
	require.ErrorContains(t, err, "it is for 9 devices, fake:4 has 4")
	_, err = r.CompileStableHLO(t.Context(), "m", text("0"), xla.Built{})
	require.ErrorContains(t, err, "expected a number of devices")
}
