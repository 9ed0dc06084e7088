package flaxlike_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// scaledDense is the custom layer of docs/layers.md.
type scaledDense struct {
	Units int
	Scale float64
}

func (d scaledDense) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	y := nn.Dense{Units: d.Units}.Apply(scope.In("dense"), x) // layers in it have scopes of their own
	shape := shapes.Make(x.DType(), d.Units)                  // and its weights are at the scope
	gain := scope.WithInitializer(nn.Initial("ones")).VariableWithShape("gain", shape).NodeValue(x.Graph())
	return graph.Mul(y, graph.MulScalar(graph.ExpandLeftToRank(gain, y.Rank()), d.Scale))
}

// A custom layer with weights is trained, saved and opened again by its name, with its settings and its weights.
func TestOpen_ownLayerWithWeights(t *testing.T) {
	set, path := sorted(t, 32), filepath.Join(t.TempDir(), "model.safetensors")
	m := newModel(t, nn.Sequential{scaledDense{Units: 8, Scale: 0.5}, nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse))
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2}))
	require.NoError(t, err)
	want, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.NoError(t, m.Save(path))
	for _, name := range []string{"dense/kernel", "dense/bias", "gain"} {
		_, err := m.Value("/model/0/" + name)
		require.NoError(t, err, name)
	}
	again, err := opened(t, path, flaxlike.WithLayer("scaledDense", scaledDense{}))
	require.NoError(t, err)
	got, err := again.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
