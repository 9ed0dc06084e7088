package xla_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// A text is compiled once, whether its first program is open or closed.
func TestSharedPrograms(t *testing.T) {
	var log bytes.Buffer
	r := plugintest.Uncached(t, xla.Log(slog.New(slog.NewTextHandler(&log, nil))), xla.KeepPrograms(2))
	compiled := func() int { return strings.Count(log.String(), "cache=off") }
	for range 3 {
		require.Equal(t, []float32{31, 32}, addTo(t, r, 10))
	}
	require.Equal(t, 1, compiled())
	require.Equal(t, 2, strings.Count(log.String(), "cache=shared"))
	for n := range 4 { // the oldest idle one is freed
		addTo(t, r, float64(n))
	}
	hits, all, idle := xla.SharedPrograms(r)
	require.Equal(t, []int{2, 2, 2}, []int{hits, all, idle})
	addTo(t, r, 10)
	require.Equal(t, 6, compiled())
	t.Log("3 programs of one text: 1 compilation")
}

// Programs of one compilation share nothing else: each has its own inputs in place, first run and Close, also when they
// run concurrently.
func TestSharedPrograms_apart(t *testing.T) {
	before := pjrt.Live().Executables
	r := plugintest.Uncached(t)
	const n = 8
	programs, shape := make([]*xla.Program, n), shapes.Make(dtypes.Float32, 2)
	require.NoError(t, atOnce(n, func(i int) (err error) {
		programs[i], err = r.Compile("count", func(g *graph.Graph) xla.Built {
			return xla.Built{Outputs: []*graph.Node{graph.AddScalar(graph.Parameter(g, "x", shape), 1)}, InPlace: map[int]int{0: 0}}
		})
		return err
	}))
	_, all, idle := xla.SharedPrograms(r)
	require.Equal(t, []int{1, 0}, []int{all, idle})
	require.EqualValues(t, 1, pjrt.Live().Executables-before, "those that were compiled at the same time are freed")
	results := make([][]float32, n)
	require.NoError(t, atOnce(n, func(i int) error {
		x, err := r.BufferFromFlatData(0, []float32{float32(i), 0}, shape)
		if err != nil {
			return err
		}
		inputs := []compute.Buffer{x}
		for range 10 * (i + 1) {
			if _, err := programs[i].Run(inputs, nil); err != nil {
				return err
			}
		}
		results[i] = []float32{0, 0}
		return errors.Join(inputs[0].ToFlatData(results[i]), inputs[0].Finalize(), programs[i].Close())
	}))
	for i, got := range results {
		require.Equal(t, []float32{float32(11*i + 10), float32(10*i + 10)}, got)
	}
	_, all, idle = xla.SharedPrograms(r)
	require.Equal(t, []int{1, 1}, []int{all, idle})
}

// The runtime's Close frees idle programs.
func TestSharedPrograms_close(t *testing.T) {
	before := pjrt.Live().Executables
	r, err := xla.Open(t.Context(), xla.CPU)
	require.NoError(t, err)
	addTo(t, r, 10)
	require.EqualValues(t, 1, pjrt.Live().Executables-before)
	require.NoError(t, r.Close())
	require.Zero(t, pjrt.Live().Executables-before)

	_, err = xla.Open(t.Context(), xla.CPU, xla.KeepPrograms(-1))
	require.ErrorContains(t, err, "the number must not be negative, got -1")
}

// atOnce runs f n times concurrently.
func atOnce(n int, f func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
