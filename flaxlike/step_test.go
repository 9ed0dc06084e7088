package flaxlike_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// The steps of a state (parity 1A.9): what each logs and changes.
func TestSteps(t *testing.T) {
	m := newModel(t, nn.Sequential{nn.Dense{Units: 8}, nn.BatchNorm{}, nn.Dropout{Rate: 0.5}, nn.Dense{Units: 3}},
		flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"),
		flaxlike.WithMetrics(flaxlike.Metric{Name: "largest", Func: func(_, out *graph.Node) *graph.Node { return graph.ReduceAllMax(out) }}))
	ctx, batch := t.Context(), first(t, sorted(t, 32), 32)
	require.NoError(t, m.Init(ctx, batch))
	before := values(t, m)

	_, logs, err := m.TestStep(ctx, batch)
	require.NoError(t, err)
	for e := range logs.All() {
		want := map[string]loop.Collection{"loss": loop.Losses, "avg_loss": loop.Stateful, "accuracy": loop.Stateful, "largest": loop.Stateful}[e.Name]
		require.Equal(t, want, e.Collection, e.Name)
	}
	require.Equal(t, 4, logs.Len())
	same, err := m.Answer(ctx, batch)
	require.NoError(t, err)
	again, err := m.Answer(ctx, batch)
	require.NoError(t, err)
	require.Equal(t, same, again, "no dropout in predicting")
	require.Equal(t, []int{32, 3}, same["preds_probability"].Dims)
	require.Equal(t, before, values(t, m), "neither a test nor a prediction changes the network")

	_, logs, err = m.TrainStep(ctx, batch)
	require.NoError(t, err)
	const sum = 1e-6 // the loss is a sum in float32, the average one in float64
	require.InDelta(t, float(t, logs, "loss"), float(t, logs, "avg_loss"), sum)
	firstLoss := float(t, logs, "loss")
	require.NotEqual(t, before, values(t, m))
	_, logs, err = m.TrainStep(ctx, batch)
	require.NoError(t, err)
	require.InDelta(t, (firstLoss+float(t, logs, "loss"))/2, float(t, logs, "avg_loss"), sum)
	_, err = m.ResetStep(ctx)
	require.NoError(t, err)
	_, logs, err = m.TrainStep(ctx, batch)
	require.NoError(t, err)
	require.InDelta(t, float(t, logs, "loss"), float(t, logs, "avg_loss"), sum, "averages begin anew")
}
