package nn_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

func TestActivation_valuesThatDifferFromGoMLX(t *testing.T) {
	in := []float32{-4, -1, 0, 1, 8}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for name, want := range map[nn.Activation]func(x float64) float64{
		"relu":         func(x float64) float64 { return max(x, 0) },
		"relu6":        func(x float64) float64 { return min(max(x, 0), 6) },
		"hard_sigmoid": func(x float64) float64 { return min(max(x/6+0.5, 0), 1) },
		"hard_swish":   func(x float64) float64 { return x * min(max(x/6+0.5, 0), 1) },
		"leaky_relu":   func(x float64) float64 { return max(x, 0.2*x) },
		"quick_gelu":   func(x float64) float64 { return x * sigmoid(1.702*x) },
	} {
		out := call(t, tensors.FromValue(in), func(s *model.Scope, x *node) []*node {
			return []*node{name.Apply(s, x), graph.Gradient(graph.ReduceAllSum(nn.Relu(x)), x)[0], nn.SoftCap(x, 2)}
		})
		for i, x := range in {
			require.InDelta(t, want(float64(x)), out[0][i], 1e-5, "%s of %g", name, x)
			require.InDelta(t, 2*math.Tanh(float64(x)/2), out[2][i], 1e-5)
		}
		require.Equal(t, []float32{0, 0, 0, 1, 1}, out[1], "the slope of Relu")
	}
}

func TestActivation_unknownName(t *testing.T) {
	exec, err := model.NewExec(plugintest.Go(t), model.NewStore(), func(s *model.Scope, x *node) *node {
		return nn.Activation("rellu").Apply(s.In("a"), x)
	})
	require.NoError(t, err)
	_, err = exec.Call(normal(1, 2))
	require.ErrorContains(t, err, `nn: Activation in /a: activation "rellu": unknown name; did you mean "relu"?`)
}
