package nn_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla/ops"
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

// Each digit of gelu and its slope is right, also where Φ is small; a half-precision input is computed in float32.
func TestActivation_geluTail(t *testing.T) {
	in := []float32{-12, -9, -6, -5, -3, -2.75, -1, -1e-3, 0, 1e-3, 1, 5, 40}
	below := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	density := func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }
	gelu := func(s *model.Scope, x *node) []*node {
		y := nn.Activation("gelu").Apply(s, x)
		slope := ops.Gradient(graph.ReduceAllSum(y), x)[0]
		short := nn.Activation("gelu").Apply(s, graph.ConvertDType(x, dtypes.BFloat16))
		return []*node{y, slope, ops.Gradient(graph.ReduceAllSum(slope), x)[0], graph.ConvertDType(short, dtypes.Float32)}
	}
	for name, open := range plugintest.Platforms {
		out := callOn(t, open(t), tensors.FromValue(in), gelu)
		for i, x := range in {
			x := float64(x)
			for k, want := range []float64{x * below(x), below(x) + x*density(x), (2 - x*x) * density(x)} {
				require.InDelta(t, want, out[k][i], 1e-5*math.Abs(want), "%s: derivative %d of gelu at %g", name, k, x)
			}
			if rounded := float64(bfloat16.FromFloat32(in[i]).Float32()); math.Abs(rounded) < 9 {
				require.InDelta(t, rounded*below(rounded), out[3][i], math.Abs(rounded*below(rounded))/250, "%s: bfloat16 at %g", name, x)
			}
		}
	}
}

func TestActivation_geluOfIntegers(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.Int8, dtypes.Int32} {
		exec, err := model.NewExec(plugintest.CPU(t), model.NewStore(), func(s *model.Scope, x *node) *node {
			return nn.Activation("gelu").Apply(s, graph.ConvertDType(x, dtype))
		})
		require.NoError(t, err)
		_, err = exec.Call(normal(1, 2))
		require.ErrorContains(t, err, "expected float", dtype)
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
