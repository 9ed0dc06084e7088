package flaxlike_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
)

// Weights of 0 take examples out of the loss, in the average too; and out of a metric only if it is weighted.
func TestSampleWeights(t *testing.T) {
	weights := make([]float32, 32)
	for i := range 8 {
		weights[i] = 2
	}
	set := line(t, 32, data.Named("weight", weights, 32))
	part, err := line(t, 32).Slice(0, 8)
	require.NoError(t, err)
	options := []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mse")}
	evaluate := func(set *data.Set, options ...flaxlike.Option) map[string]float64 {
		found, err := newModel(t, nn.Dense{Units: 1}, options...).Evaluate(t.Context(), set)
		require.NoError(t, err)
		return found
	}
	all, few := evaluate(set, options...), evaluate(part, options...)
	weighed := evaluate(set, append(options, flaxlike.WithSampleWeights("weight"),
		flaxlike.WithMetrics(flaxlike.Metric{Name: "weighted", Metric: metrics.MeanSquaredError(), Weighted: true}))...)
	require.InDelta(t, 2*8*few["loss"]/32, weighed["loss"], 1e-5, "divided by the number of examples, as in Keras")
	require.InDelta(t, all["mse"], weighed["mse"], 1e-6)
	require.InDelta(t, few["mse"], weighed["weighted"], 1e-6)
}

// New opens a runtime of its own, and Close closes it.
func TestRuntimeByDefault(t *testing.T) {
	m, err := flaxlike.New(context.Background(), nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	require.NoError(t, err)
	_, err = m.Fit(t.Context(), line(t, 64), quiet(flaxlike.Fit{}))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.Evaluate(t.Context(), line(t, 64))
	require.ErrorIs(t, err, managed.ErrClosed)
}
