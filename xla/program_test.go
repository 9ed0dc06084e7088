package xla_test

import (
	"context"
	"errors"
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

// F41: a runtime is closed while programs run.
func TestF41_closeWhileItRuns(t *testing.T) {
	const rounds, runs = 30, 40
	done, refused := 0, 0
	for range rounds {
		r, err := xla.Open(t.Context(), xla.CPU)
		require.NoError(t, err)
		p, err := r.Compile("plus one", plusOne)
		require.NoError(t, err)
		x, err := r.BufferFromFlatData(0, []float32{1, 2}, pair)
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := r.Close(); err != nil {
				t.Errorf("%v", err)
			}
		})
		inputs := []compute.Buffer{x}
		for range runs {
			if _, err := p.Run(inputs, nil); err != nil {
				require.ErrorIs(t, err, xla.ErrClosed)
				refused++
				continue
			}
			done++
		}
		wg.Wait()
		require.ErrorIs(t, p.Close(), xla.ErrClosed)
	}
	require.Positive(t, refused)
	t.Logf("F41: %d runtimes closed under %d runs: %d done, %d refused, no crash", rounds, rounds*runs, done, refused)
}

// A program sees what another one has written in place. XNNPACK, to which the CPU plugin leaves products, caches packed
// weights by address: a test step had results of old weights.
func TestProgram_readsWhatAnotherWroteInPlace(t *testing.T) {
	r, err := xla.Open(context.Background(), "cpu")
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for _, n := range [][3]int{{120, 256, 256}, {1, 64, 64}, {128, 512, 512}, {32, 784, 10}} {
		x, w := shapes.Make(dtypes.Float32, n[0], n[1]), shapes.Make(dtypes.Float32, n[1], n[2])
		read, err := r.Compile("read", func(g *graph.Graph) xla.Built {
			a, b := graph.Parameter(g, "x", x), graph.Parameter(g, "w", w)
			return xla.Built{Outputs: []*graph.Node{graph.Add(graph.Dot(a, b).Product(), graph.ScalarOne(g, dtypes.Float32))}}
		})
		require.NoError(t, err)
		write, err := r.Compile("write", func(g *graph.Graph) xla.Built {
			b := graph.Parameter(g, "w", w)
			return xla.Built{Outputs: []*graph.Node{graph.AddScalar(b, 1)}, InPlace: map[int]int{0: 0}}
		})
		require.NoError(t, err)
		ones := make([]float32, x.Size())
		for i := range ones {
			ones[i] = 1
		}
		left, err := r.BufferFromFlatData(0, ones, x)
		require.NoError(t, err)
		weights, err := r.BufferFromFlatData(0, make([]float32, w.Size()), w)
		require.NoError(t, err)
		state := []compute.Buffer{weights}
		for turn := range 6 {
			out, err := read.Run([]compute.Buffer{left, state[0]}, nil)
			require.NoError(t, err)
			got := make([]float32, n[0]*n[2])
			require.NoError(t, out[0].ToFlatData(got))
			want := float32(n[1]*turn + 1)
			for _, v := range got {
				require.Equal(t, want, v, "%v: turn %d", n, turn)
			}
			require.NoError(t, out[0].Finalize())
			_, err = write.Run(state, nil)
			require.NoError(t, err)
		}
		for _, b := range []compute.Buffer{left, state[0]} {
			require.NoError(t, b.Finalize())
		}
		require.NoError(t, read.Close())
		require.NoError(t, write.Close())
	}
}
