package managed_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// A step of gradient descent takes optax's gradients, clipped by example, away; the loss is as it is without.
func TestClipByExample(t *testing.T) {
	var peer struct {
		W, V, X, Y []float32
		Gradients  [2][]float32
		Loss       float64
	}
	text, err := os.ReadFile("testdata/clipped.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &peer))
	run := func(limit float64) (float64, error) {
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.New(0.5)), managed.WithValues(map[string]*managed.Tensor{
			"/w": tensors.FromFlatDataAndDimensions(peer.W, 3, 4), "/v": tensors.FromFlatDataAndDimensions(peer.V, 4, 1)}))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		step := managed.TrainStep(func(b *managed.Builder) {
			weight := func(name string, dims ...int) *managed.Node {
				return b.Scope().VariableWithShape(name, shapes.Make(dtypes.Float32, dims...)).NodeValue(b.Graph())
			}
			b.Loss("loss", b.ClipByExample(limit, []*managed.Node{b.Field("x"), b.Field("y")}, func(example []*managed.Node) *managed.Node {
				y := graph.Dot(graph.Tanh(graph.Dot(example[0], weight("w", 3, 4)).Product()), weight("v", 4, 1)).Product()
				return graph.ReduceAllSum(graph.Square(graph.Sub(y, example[1])))
			}))
		})
		defer func() { require.NoError(t, step.Close()) }()
		batch := data.Batch{Fields: []data.Field{data.X(peer.X, 6, 3), data.Y(peer.Y, 6, 1)}}
		_, logs, err := step.Step(t.Context(), state, batch)
		if err != nil {
			return 0, err
		}
		for i, start := range [][]float32{peer.W, peer.V} {
			v, err := state.Value([]string{"/w", "/v"}[i])
			require.NoError(t, err)
			for k, got := range tensors.MustCopyFlatData[float32](v) {
				require.InDelta(t, start[k]-0.5*peer.Gradients[i][k], got, 1e-6)
			}
		}
		return logs.Float("loss")
	}
	loss, err := run(4)
	require.NoError(t, err)
	require.InDelta(t, peer.Loss, loss, 1e-5)
	_, err = run(0)
	require.ErrorContains(t, err, "ClipByExample: the limit is 0, expected a positive number")
}
