package nn_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla/ops"
)

// Positions continue at Start, or at one of each example.
func TestPositionsStart(t *testing.T) {
	out := call(t, normal(1, 2, 6, 4), func(s *model.Scope, x *node) []*node {
		p, at := nn.Positions{Length: 6}, graph.Scalar(x.Graph(), dtypes.Int32, 2)
		later := nn.Positions{Length: 6, Start: at}
		full := nn.Positions{Length: 6, Start: graph.AddScalar(at, 3)}
		return []*node{
			places(p.Apply(s.In("p"), x), 2, 4), later.Apply(s.Shared("p"), places(x, 2, 4)),
			places(nn.Sinusoidal{}.Apply(s, x), 2, 4), nn.Sinusoidal{Start: at}.Apply(s, places(x, 2, 4)),
			full.Apply(s.Shared("p"), places(x, 2, 4)),
			nn.Positions{Length: 6, Start: graph.Const(x.Graph(), []int32{2, 5})}.Apply(s.Shared("p"), places(x, 2, 4)),
			nn.Sinusoidal{Start: graph.Const(x.Graph(), []int32{2, 2})}.Apply(s, places(x, 2, 4)),
		}
	})
	require.Equal(t, out[0][:8], out[5][:8])
	require.True(t, math.IsNaN(float64(out[5][8])))
	require.Equal(t, out[3], out[6])
	require.Equal(t, out[0], out[1])
	require.InDeltaSlice(t, out[2], out[3], 1e-6)
	require.True(t, math.IsNaN(float64(out[4][0])))
}

// The padding is 0 and does not learn, at either end of a tied embedding. An id outside is NaN.
func TestEmbedding_padding(t *testing.T) {
	out := call(t, normal(1, 2, 3), func(s *model.Scope, x *node) []*node {
		e := nn.Embedding{Vocabulary: 4, Width: 3, Padding: new(0)}
		ids := graph.Const(x.Graph(), []int32{0, 2, 2})
		y := e.Apply(s.In("tokens"), ids)
		logits := e.Logits(s.Shared("tokens"), x)
		table := s.Store().GetVariable("/tokens/embeddings").NodeValue(x.Graph())
		loss := graph.Add(graph.ReduceAllSum(y), graph.ReduceAllSum(logits))
		far := e.Apply(s.At("tokens"), graph.Const(x.Graph(), []int32{4, -1}))
		return []*node{y, logits, ops.Gradient(loss, table)[0], far}
	})
	require.Equal(t, make([]float32, 3), out[0][:3])
	require.NotContains(t, out[0][3:], float32(0))
	require.Zero(t, out[1][0])
	require.Zero(t, out[1][4])
	require.Equal(t, make([]float32, 3), out[2][:3])
	require.NotContains(t, out[2][3:], float32(0))
	for _, v := range out[3] {
		require.True(t, math.IsNaN(float64(v)))
	}
}
