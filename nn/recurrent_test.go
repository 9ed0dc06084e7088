package nn_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla/ops"
)

// An example of length 0 has no places: they affect no number, and no gradient is NaN.
func TestNothingIsSeen(t *testing.T) {
	out := call(t, normal(1, 2, 3, 4), func(s *model.Scope, x *node) []*node {
		lengths := graph.Const(x.Graph(), []int32{0, 2})
		y := nn.Attention{Heads: 2, Mask: lengths, NoBias: true}.Apply(s.In("attention"), x)
		h, last := nn.LSTM{Units: 3, Mask: lengths, Bidirectional: true}.ApplyStates(s.In("lstm"), x)
		by := func(v *node) *node { return ops.Gradient(graph.ReduceAllSum(graph.Square(v)), x)[0] }
		key := s.Store().GetVariable("/attention/key/kernel").NodeValue(x.Graph())
		return []*node{y, h, last[0], by(y), by(h), ops.Gradient(graph.ReduceAllSum(graph.Square(y)), key)[0]}
	})
	require.Equal(t, make([]float32, 12), out[0][:12])
	require.Equal(t, make([]float32, 18), out[1][:18])
	require.Equal(t, make([]float32, 6), out[1][30:], "the second's last place")
	require.Equal(t, make([]float32, 3), out[2][:3])
	for _, gradient := range out[3:5] {
		require.Equal(t, make([]float32, 12), gradient[:12])
		for _, v := range gradient[12:20] {
			require.False(t, math.IsNaN(float64(v)))
			require.NotZero(t, v)
		}
	}
	require.Equal(t, make([]float32, 4), out[4][20:])
	for _, v := range out[5] {
		require.False(t, math.IsNaN(float64(v)), "the keys' kernel")
	}
}

// The forget gate of an LSTM begins at 1, all other biases at 0.
func TestBiasesBegin(t *testing.T) {
	out := call(t, normal(1, 1, 1, 2), func(s *model.Scope, x *node) []*node {
		nn.LSTM{Units: 2}.Apply(s.In("lstm"), x)
		nn.GRU{Units: 1}.Apply(s.In("gru"), x)
		nn.Attention{Heads: 1}.Apply(s.In("attention"), x)
		var list []*node
		for _, path := range []string{"/lstm/bias", "/gru/bias", "/attention/query/bias"} {
			list = append(list, s.Store().GetVariable(path).NodeValue(x.Graph()))
		}
		return list
	})
	require.Equal(t, [][]float32{{0, 0, 1, 1, 0, 0, 0, 0}, make([]float32, 6), make([]float32, 2)}, out)
}
