package flaxlike_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// One network has bit-identical results in a custom step and as a model of flaxlike, in float32 and by a policy, with
// padded batches and masked positions: its losses, its weights and the averages of its normalisations.
func TestOneLayer_ownStepAndFit(t *testing.T) {
	var images []float32
	var ids []int32
	var classes []int32
	const n = 6
	for i := range n * 16 {
		images = append(images, float32((i*37+i/7)%19)/19)
		ids = append(ids, int32((i*5+i/16)%7))
	}
	for i := range int32(n) {
		classes = append(classes, i%3)
		ids[(i+1)*16-1], ids[(i+1)*16-2] = 0, 0
	}
	square := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Square(x) })
	convolutions := nn.Sequential{nn.Reshape{4, 4, 1}, nn.Conv{Channels: 4, Window: []int{3}}, nn.BatchNorm{}, nn.Activation("relu"), nn.MaxPool{Window: 2},
		nn.Residual{nn.Dense{Units: 4}, nn.LayerNorm{}, nn.Dropout{Rate: 0.2}}, nn.Named{Name: "square", Layer: square}, nn.Flatten{}, nn.BatchNorm{},
		nn.L2{Rate: 0.01, Layers: []nn.Layer{nn.Dense{Units: 3}}}}
	sequences := nn.Sequential{nn.Embedding{Vocabulary: 7, Width: 4, Padding: new(0)}, nn.Positions{Length: 16}, nn.Residual{nn.BatchNorm{}, nn.Attention{Heads: 2, Causal: true}},
		nn.LSTM{Units: 4}, nn.TimeDistributed{Layer: nn.Dense{Units: 4}}, nn.RMSNorm{}, nn.GlobalMeanPool{}, nn.Dense{Units: 3}}
	mixed := optim.MixedBFloat16()
	for name, row := range map[string]struct {
		network nn.Layer
		x       data.Field
		policy  *optim.Policy
	}{
		"images": {convolutions, data.X(images, n, 16), nil}, "tokens": {sequences, data.X(ids, n, 16), nil},
		"tokens, bfloat16": {sequences, data.X(ids, n, 16), &mixed},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := data.New(row.x, data.Y(classes, n))
			require.NoError(t, err)
			batch, err := data.Peek(set.Batches(n).All())
			require.NoError(t, err)
			padded, err := data.Pad(batch, n+2)
			require.NoError(t, err)

			strategy := strategies.Jit(plugintest.CPU(t))
			options := []flaxlike.Option{flaxlike.WithStrategy(strategy), flaxlike.WithLoss(flaxlike.Loss{Func: losses.CrossEntropy}), flaxlike.WithOptimizer(optim.New(0.01, optim.Adam{})),
				flaxlike.WithBatchSize(n + 2), flaxlike.WithSeed(7)}
			stateOptions := []managed.Option{managed.WithOptimizer(optim.New(0.01, optim.Adam{})), managed.WithSeed(7)}
			if row.policy != nil {
				options, stateOptions = append(options, flaxlike.WithPolicy(*row.policy)), append(stateOptions, managed.WithPolicy(*row.policy))
			}
			m, err := flaxlike.New(t.Context(), row.network, options...)
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			five := func(yield func(data.Batch, error) bool) {
				for i := 0; i < 5 && yield(padded, nil); i++ {
				}
			}
			_, err = m.FitBatches(t.Context(), loop.Data[data.Batch](five), quiet(flaxlike.Fit{Epochs: 1, StepsPerEpoch: 5}))
			require.NoError(t, err)

			state, err := managed.New(strategy, stateOptions...)
			require.NoError(t, err)
			defer func() { require.NoError(t, state.Close()) }()
			step := managed.TrainStep(func(b *managed.Builder) {
				y := b.ToOutputType(row.network.Apply(b.Scope().In("model"), b.Field("x")))
				b.Loss("loss", losses.CrossEntropy(b.Field("y"), y))
			})
			defer func() { require.NoError(t, step.Close()) }()
			for range 5 {
				_, _, err := step.Step(t.Context(), state, padded)
				require.NoError(t, err)
			}
			compared := 0
			for _, name := range state.Names() {
				if !strings.HasPrefix(name, "/model/") {
					continue
				}
				compared++
				got, err := state.Value(name)
				require.NoError(t, err)
				want, err := m.Value(name)
				require.NoError(t, err)
				require.Equal(t, want.Value(), got.Value(), name)
			}
			require.Greater(t, compared, 10)
		})
	}
}
