package hlo_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// On XLA's CPU, and only there, a product of two matrices has its operands swapped where that is faster. A barrier in
// the text keeps XLA from swapping them back.
func TestDotGeneral_sidesForCPU(t *testing.T) {
	rows := []struct {
		name    string
		cpu     bool
		x, y    []int
		axis    int
		changed bool
	}{
		{"the gradient of a dense layer's input", true, []int{128, 512}, []int{512, 512}, 1, true},
		{"a wide layer", true, []int{32, 256}, []int{3136, 256}, 1, true},
		{"another device", false, []int{128, 512}, []int{512, 512}, 1, false},
		{"as many examples as features", true, []int{512, 512}, []int{512, 512}, 1, false},
		{"a short sum", true, []int{128, 10}, []int{512, 10}, 1, false},
		{"a sum along columns", true, []int{512, 128}, []int{512, 512}, 0, false},
		{"the gradient of a classifier's last weights", true, []int{128, 512}, []int{128, 10}, 0, true},
		{"as few columns on both sides", true, []int{128, 10}, []int{128, 10}, 0, false},
		{"a single column", true, []int{128, 512}, []int{128, 1}, 0, false},
		{"the gradient of a wide layer's weights", true, []int{128, 784}, []int{128, 33}, 0, false},
		{"the gradient of the weights behind a transformer's wide layer", true, []int{2048, 1024}, []int{2048, 256}, 0, true},
		{"half as many columns", true, []int{2048, 512}, []int{2048, 256}, 0, false},
		{"fewer examples", true, []int{256, 1024}, []int{256, 256}, 0, false},
		{"the same on another device", false, []int{2048, 1024}, []int{2048, 256}, 0, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var text string
			b := programOf(hlo.New("dot", func(m *hlo.Module) (compute.Executable, error) {
				text = m.Text()
				return &executable{module: m}, nil
			}).ForCPU(row.cpu))
			x, err := b.Parameter("x", shapes.Make(dtypes.Float32, row.x...), nil)
			require.NoError(t, err)
			y, err := b.Parameter("y", shapes.Make(dtypes.Float32, row.y...), nil)
			require.NoError(t, err)
			axes := []int{row.axis}
			product, err := b.DotGeneral(x, axes, nil, y, axes, nil, compute.DotGeneralConfig{})
			require.NoError(t, err)
			shape, err := b.OpShape(product)
			require.NoError(t, err)
			require.Equal(t, []int{row.x[1-row.axis], row.y[1-row.axis]}, shape.Dimensions)
			_, err = b.Finish([]compute.Value{product})
			require.NoError(t, err)
			require.Equal(t, row.changed, strings.Contains(text, `"stablehlo.optimization_barrier"`), text)
			require.Equal(t, row.changed, strings.Contains(text, `"stablehlo.dot_general"(%p1, %p0)`), text)
			require.NotContains(t, text, "negate")
		})
	}
}

// On XLA's CPU a row's product with a large matrix is the sum of products of the row's parts, which run on several
// threads. Whole numbers make sums exact.
func TestDotGeneral_oneRowByParts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		name  string
		x, w  []int
		parts string
	}{
		{"a token", []int{1, 1, 576}, []int{576, 1536}, "tensor<8x72x1536xf32>"},
		{"a vector", []int{1028}, []int{1028, 512}, "tensor<4x257x512xf32>"},
		{"an odd number of terms", []int{1, 1025}, []int{1025, 512}, ""},
		{"two rows", []int{2, 576}, []int{576, 1536}, ""},
		{"a small matrix", []int{1, 512}, []int{512, 512}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			draw := func(dims ...int) []float32 {
				list := make([]float32, shapes.Make(dtypes.Float32, dims...).Size())
				for i := range list {
					list[i] = float32(r.IntN(9) - 4)
				}
				return list
			}
			product := func(x, w *graph.Node) *graph.Node {
				return graph.DotGeneral(graph.Reshape(x, c.x...), []int{len(c.x) - 1}, nil, graph.Reshape(w, c.w...), []int{0}, nil)
			}
			on, x, w := open(t), draw(c.x...), draw(c.w...)
			got := graph.MustExecOnce(forCPU{on}, product, x, w)
			if c.parts == "" {
				require.NotContains(t, on.last.Text(), "stablehlo.reduce")
			} else {
				require.Contains(t, on.last.Text(), c.parts)
			}
			want := graph.MustExecOnce(on, product, x, w)
			require.Equal(t, want.Shape(), got.Shape())
			require.Equal(t, want.Value(), got.Value())
		})
	}
}
