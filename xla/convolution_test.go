package xla_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// For XLA's CPU, a convolution of few input channels is a sum of products where that is faster. Integers are exact, as
// added up in Go.
func TestConvGeneral_fewChannels(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		x, kernel []int // channels last
		paddings  [][2]int
		terms     bool
	}{
		{[]int{4, 8, 8, 1}, []int{3, 3, 1, 16}, [][2]int{{1, 1}, {1, 1}}, true},
		{[]int{3, 6, 9, 3}, []int{3, 2, 3, 5}, [][2]int{{2, 0}, {0, 1}}, true},
		{[]int{3, 6, 9, 2}, []int{3, 2, 2, 1}, nil, true},
		{[]int{2, 12, 2}, []int{5, 2, 4}, [][2]int{{4, 1}}, true},
		{[]int{2, 4, 5, 6, 1}, []int{2, 3, 2, 1, 3}, [][2]int{{1, 0}, {0, 2}, {1, 1}}, true},
		{[]int{2, 4, 4, 3}, []int{1, 1, 3, 8}, nil, true},
		{[]int{32, 5, 5, 1}, []int{3, 3, 1, 32}, [][2]int{{1, 1}, {1, 1}}, true},
		{[]int{31, 5, 5, 1}, []int{3, 3, 1, 32}, [][2]int{{1, 1}, {1, 1}}, false},
		{[]int{32, 5, 5, 2}, []int{3, 3, 2, 32}, [][2]int{{1, 1}, {1, 1}}, false},
		{[]int{2, 8, 8, 4}, []int{3, 3, 4, 16}, [][2]int{{1, 1}, {1, 1}}, true},
		{[]int{2, 8, 8, 5}, []int{3, 3, 5, 16}, [][2]int{{1, 1}, {1, 1}}, false},
	} {
		t.Run(fmt.Sprint(row.x, row.kernel), func(t *testing.T) {
			last := len(row.x) - 1
			axes := compute.ConvolveAxesConfig{InputChannels: last, OutputChannels: last, KernelInputChannels: last - 1, KernelOutputChannels: last}
			for i := range last - 1 {
				axes.InputSpatial, axes.OutputSpatial = append(axes.InputSpatial, i+1), append(axes.OutputSpatial, i+1)
				axes.KernelSpatial = append(axes.KernelSpatial, i)
			}
			x, kernel := shapes.Make(dtypes.Float32, row.x...), shapes.Make(dtypes.Float32, row.kernel...)
			p, err := r.Compile("convolution", func(g *graph.Graph) xla.Built {
				y := graph.ConvGeneral(graph.Parameter(g, "x", x), graph.Parameter(g, "kernel", kernel), axes, nil, row.paddings, nil, nil, 1, 1)
				return xla.Built{Outputs: []*graph.Node{y}, Host: []int{0, 1}}
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close()) }()
			require.Equal(t, row.terms, !strings.Contains(p.StableHLO(), "stablehlo.convolution"))
			numbers := func(n, by int) []float32 {
				v := make([]float32, n)
				for i := range v {
					v[i] = float32(i*by%11 - 5)
				}
				return v
			}
			a, k := numbers(x.Size(), 7), numbers(kernel.Size(), 5)
			run := func() []float32 {
				outputs, err := p.Run(make([]compute.Buffer, 2), []any{a, k})
				require.NoError(t, err)
				shape, err := outputs[0].Shape()
				require.NoError(t, err)
				got := make([]float32, shape.Size())
				require.NoError(t, outputs[0].ToFlatData(got))
				require.NoError(t, outputs[0].Finalize())
				return got
			}
			require.Equal(t, convolved(a, row.x, k, row.kernel, row.paddings), run())
			k[0] = float32(math.NaN())
			got := run()
			for i := range got { // NaN everywhere in the first output channel, nowhere in the others
				require.Equal(t, i%row.kernel[last] == 0, math.IsNaN(float64(got[i])), "number %d: %v", i, got[i])
			}
		})
	}
}

// convolved is a direct sum.
func convolved(x []float32, dims []int, k []float32, kernel []int, paddings [][2]int) []float32 {
	last := len(dims) - 1
	out := append([]int{dims[0]}, dims[1:last]...)
	for i := range paddings {
		out[i+1] += paddings[i][0] + paddings[i][1]
	}
	for i := 1; i < last; i++ {
		out[i] -= kernel[i-1] - 1
	}
	out = append(out, kernel[last])
	index := func(i int, dims []int) []int {
		at := make([]int, len(dims))
		for a := len(dims) - 1; a >= 0; a-- {
			at[a], i = i%dims[a], i/dims[a]
		}
		return at
	}
	sums := make([]float32, shapes.Make(dtypes.Float32, out...).Size())
	for i := range sums {
		at := index(i, out)
		for j := range k {
			place := index(j, kernel)
			if place[last] != at[last] {
				continue
			}
			from, inside := at[0], true
			for a := 1; a < last; a++ {
				p := at[a] + place[a-1]
				if paddings != nil {
					p -= paddings[a-1][0]
				}
				inside = inside && p >= 0 && p < dims[a]
				from = from*dims[a] + p
			}
			if inside {
				sums[i] += x[from*dims[last]+place[last-1]] * k[j]
			}
		}
	}
	return sums
}
