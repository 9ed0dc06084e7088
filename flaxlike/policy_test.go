package flaxlike_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// A model of convolutions, normalisations and dense layers learns in 16 bits what it learns in 32.
//
//lazo:norace
func TestWithPolicy_learnsAsInFloat32(t *testing.T) {
	training, test := digits(t)
	var want float64
	for _, row := range []struct {
		name   string
		policy optim.Policy
		within float64 // of float32's accuracy
	}{
		{"float32", optim.Policy{Parameters: dtypes.Float32, Compute: dtypes.Float32, Outputs: dtypes.Float32}, 0},
		{"bfloat16", optim.MixedBFloat16(), 0.04},
		{"float16", optim.MixedFloat16(), 0.04},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newModel(t, nn.Sequential{nn.Reshape{8, 8, 1}, nn.Conv{Channels: 4, Window: []int{3}}, nn.BatchNorm{}, nn.Activation("relu"),
				nn.Flatten{}, nn.Dense{Units: 32}, nn.LayerNorm{}, nn.Activation("relu"), nn.Dropout{Rate: 0.1}, nn.Dense{Units: 10}},
				flaxlike.WithPolicy(row.policy), flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.003))
			_, err := m.Fit(t.Context(), training, quiet(flaxlike.Fit{Epochs: 3}))
			require.NoError(t, err)
			figures, err := m.Evaluate(t.Context(), test)
			require.NoError(t, err)
			got := figures["accuracy"]
			if want == 0 {
				want = got
				require.Greater(t, got, 0.85)
			}
			require.InDelta(t, want, got, row.within+1e-12)
			out, err := m.Predict(t.Context(), test)
			require.NoError(t, err)
			require.IsType(t, []float32{}, output(t, out).Flat)
			scales := 0
			for _, name := range m.Names() {
				v, err := m.Value(name)
				require.NoError(t, err)
				require.NotContains(t, []dtypes.DType{dtypes.BFloat16, dtypes.Float16}, v.DType(), name)
				if strings.HasSuffix(name, "/loss_scale/scale") {
					scales++
				}
			}
			require.Equal(t, row.policy.NeedsLossScale(), scales == 1)
			t.Logf("%s: accuracy %.3f (float32 %.3f)", row.policy, got, want)
		})
	}
}

// The gradients of a float16 model are scaled on their way and are right at its end: penalties count as much as they
// should, and what vanishes without a scale does not.
func TestWithPolicy_float16(t *testing.T) {
	const tiny = 1e-9 // of which float16 has 0
	network := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		scope.SetParam(regularizer.ParamL2, 0.25)
		return nn.Dense{Units: 1}.Apply(scope, x)
	})
	moved := func(options ...flaxlike.Option) (w, b float32) {
		set := must.M1(data.New(data.X([]float32{1, 1}, 2, 1), data.Y([]float32{0, 0}, 2, 1)))
		loss := flaxlike.Loss{Name: "tiny", Func: func(_, output *graph.Node) *graph.Node { return graph.MulScalar(output, tiny) }}
		m := newModel(t, network, append(options, flaxlike.WithLoss(loss), flaxlike.WithBatchSize(2))...)
		require.NoError(t, m.Init(t.Context(), first(t, set, 2)))
		require.NoError(t, m.SetValue("/model/kernel", tensor([][]float32{{0.5}})))
		require.NoError(t, m.SetValue("/model/bias", tensor([]float32{0})))
		_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 1}))
		require.NoError(t, err)
		return flat(t, m, "/model/kernel"), flat(t, m, "/model/bias") / tiny
	}
	rate := func(chain ...optim.Transformation) flaxlike.Option {
		return flaxlike.WithOptimizer(optim.New(0.5, chain...))
	}
	fullW, fullB := moved(rate())
	require.InDelta(t, -0.5, fullB, 1e-6)
	require.Less(t, fullW, float32(0.4))
	for name, chain := range map[string][]optim.Transformation{"a scale of its own": {optim.LossScale{Start: 1 << 14}}, "none": nil} {
		w, b := moved(rate(chain...), flaxlike.WithPolicy(optim.MixedFloat16()))
		require.InDelta(t, fullW, w, 1e-3, name)
		require.InDelta(t, fullB, b, 1e-2, name)
		t.Logf("%s: a gradient of %.0e moves the bias by %.4f of it, the penalty the weight to %.4f (float32 %.4f and %.4f)", name, tiny, b, w, fullB, fullW)
	}
}

// Labels keep their digits, of which bfloat16 has three.
func TestWithPolicy_labelsStay(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{0, 0}, 2, 1), data.Y([]float32{1000.5, 1001.5}, 2, 1), data.Named("w", []float32{1.001, 1.001}, 2)))
	loss := flaxlike.Loss{Name: "label", Func: func(labels, output *graph.Node) *graph.Node {
		return graph.Add(labels, graph.MulScalar(output, 0))
	}}
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithPolicy(optim.MixedBFloat16()), flaxlike.WithLoss(loss), flaxlike.WithSampleWeights("w"), flaxlike.WithBatchSize(2))
	figures, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, 1001*1.001, figures["loss"], 1e-3)
}

//lazo:norace
func TestWithPolicy_sequences(t *testing.T) {
	set := must.M1(data.New(data.X([]int32{0, 1, 2, 3, 3, 2, 1, 0}, 2, 4), data.Y([]int32{1, 2}, 2)))
	network := nn.Sequential{nn.Embedding{Vocabulary: 4, Width: 8, Initial: nn.RandomNormal(0.7)}, nn.Attention{Heads: 2, Width: 4}, nn.RMSNorm{}, nn.LSTM{Units: 8, Last: true}, nn.Dense{Units: 3}}
	m := newModel(t, network, flaxlike.WithPolicy(optim.MixedBFloat16()), flaxlike.WithLoss(sparse), flaxlike.WithBatchSize(2), flaxlike.WithLearningRate(0.05))
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 30}))
	require.NoError(t, err)
	losses := series(t, h, "loss")
	require.Less(t, losses[29], losses[0]/4)
	var kinds []string
	for _, row := range m.Summary().Layers {
		require.Equal(t, dtypes.BFloat16, row.Output.DType, row.Kind)
		kinds = append(kinds, row.Kind)
	}
	require.Len(t, kinds, 5)
}

func tensor(v any) *tensors.Tensor { return tensors.MustFromAnyValue(v) }

// flat is the only number of a variable.
func flat(t testing.TB, m *flaxlike.Model, name string) float32 {
	t.Helper()
	v, err := m.Value(name)
	require.NoError(t, err)
	values, err := tensors.CopyFlatData[float32](v)
	require.NoError(t, err)
	require.Len(t, values, 1)
	return values[0]
}
