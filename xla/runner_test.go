package xla_test

import (
	"errors"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// greedy is x + 0 by way of 16 TiB, in place.
func greedy(g *graph.Graph) xla.Built {
	x := graph.Parameter(g, "x", pair)
	column := graph.BroadcastToDims(graph.ReduceAllMax(x), 1<<21, 1)
	square := graph.Dot(column, graph.Reshape(column, 1, 1<<21)).Product()
	return xla.Built{Outputs: []*graph.Node{graph.Add(x, graph.ReduceAllMax(graph.Dot(square, column).Product()))}, InPlace: map[int]int{0: 0}}
}

// F17, F18: a run without enough memory reports its need, and leaves its inputs and nothing else.
func TestF17_F18_outOfMemoryKeepsTheInputs(t *testing.T) {
	r := plugintest.Uncached(t, xla.KeepPrograms(0))
	before := pjrt.Live()
	p, err := r.Compile("greedy", greedy)
	require.NoError(t, err)
	x, err := r.BufferFromFlatData(0, []float32{1, 2}, pair)
	require.NoError(t, err)
	inputs := []compute.Buffer{x}
	const runs = 20
	for range runs {
		_, err = p.Run(inputs, nil)
		require.ErrorIs(t, err, xla.ErrOutOfMemory)
		require.NotErrorIs(t, err, xla.ErrInputsLost)
		var typed *xla.Error
		require.ErrorAs(t, err, &typed)
		require.Equal(t, "run greedy", typed.Context)
		require.Regexp(t, `(?s)^  the program needs 16\.0 TiB: 8 bytes of arguments.*16\.0 TiB: \(Float32\)\[2097152, 2097152\] of Dot(General)? at xla/runner_test\.go:\d+`, typed.Memory)
		got := make([]float32, 2)
		require.NoError(t, inputs[0].ToFlatData(got))
		require.Equal(t, []float32{1, 2}, got)
	}
	require.NoError(t, errors.Join(p.Close(), x.Finalize()))
	require.Equal(t, before, pjrt.Live())
	t.Logf("F17: %d of %d failed runs left the inputs; F18: 0 objects left; %v", runs, runs, err)
}
