package nn_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

// TestS21_saturatedSoftmax: the gradient of a saturated softmax is a difference of equal numbers. It may have their
// rounding error, as in JAX's float32; docs/maintain/numerics.md has the numbers.
func TestS21_saturatedSoftmax(t *testing.T) {
	const places, width = 12, 8
	var rows []struct {
		Scale              float64
		Ties               bool
		X, W               []float32
		Kernels, Gradients map[string][]float64
		Error              map[string]float64
	}
	text, err := os.ReadFile("testdata/saturated.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &rows))
	r, names := plugintest.CPU(t), []string{"query", "key", "value", "output"}
	for _, row := range rows {
		store := model.NewStore()
		for _, n := range names {
			kernel := make([]float32, width*width)
			for i, v := range row.Kernels[n] {
				kernel[i] = float32(v)
			}
			store.RootScope().In("%s", n).VariableWithValue("kernel", tensors.FromFlatDataAndDimensions(kernel, width, width))
		}
		got, err := model.CallOnceN(r, store, func(scope *model.Scope, x, w *graph.Node) []*graph.Node {
			y := nn.Attention{Heads: 2, NoBias: true}.Apply(scope, x)
			var wrt []*graph.Node
			for _, n := range names {
				wrt = append(wrt, store.GetVariable("/"+n+"/kernel").NodeValue(x.Graph()))
			}
			return graph.Gradient(graph.ReduceAllSum(graph.Mul(y, w)), wrt...)
		}, tensors.FromFlatDataAndDimensions(row.X, 1, places, width), tensors.FromFlatDataAndDimensions(row.W, 1, places, width))
		require.NoError(t, err)
		for k, n := range names {
			off, most := 0.0, 0.0
			for i, v := range tensors.MustCopyFlatData[float32](got[k]) {
				off, most = max(off, math.Abs(float64(v)-row.Gradients[n][i])), max(most, math.Abs(row.Gradients[n][i]))
			}
			require.LessOrEqual(t, off, max(10*row.Error[n], 1e-6*most), "scale %v, ties %v: %s", row.Scale, row.Ties, n)
			t.Logf("scale %4v, ties %5v: d/%s/kernel off by %.1e of %.1e, JAX's float32 by %.1e", row.Scale, row.Ties, n, off, most, row.Error[n])
		}
	}
}
