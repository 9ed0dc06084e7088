package xla_test

import (
	"context"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla"
)

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
