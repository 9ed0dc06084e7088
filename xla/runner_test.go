package xla_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/assert"
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

// Many goroutines run a program: as many at once as there are processors, and each gets its own answer.
func TestRun_ofManyGoroutines(t *testing.T) {
	const goroutines, runs, n = 32, 20, 512
	r := plugintest.CPU(t)
	p, err := r.Compile("rows", func(g *graph.Graph) xla.Built {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, n))
		y := x
		for range 20 { // about a millisecond
			y = graph.Tanh(graph.Dot(y, graph.OneHot(graph.Iota(g, shapes.Make(dtypes.Int32, n), 0), n, dtypes.Float32)).Product())
		}
		return xla.Built{Outputs: []*graph.Node{graph.Sub(y, y), x}, Host: []int{0}, Read: []int{0, 1}}
	})
	require.NoError(t, err)
	_, err = p.Run([]compute.Buffer{nil}, []any{make([]float32, n)})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			x := make([]float32, n)
			x[0] = float32(i)
			for range runs {
				outputs, err := p.Run([]compute.Buffer{nil}, []any{x})
				if !assert.NoError(t, err) {
					return
				}
				got, _ := xla.OnHost(outputs[1])
				assert.Equal(t, x, got)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, xla.Calls(p), runtime.GOMAXPROCS(0))
	require.NoError(t, p.Close())
}
