package optim_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// A gradient that underflows in float16 is kept by a scale, and the logged loss is the unscaled one.
func TestLossScale_float16(t *testing.T) {
	r := plugintest.CPU(t)
	const tiny = 1e-8 // float16 ends at 6e-8
	policy := optim.MixedFloat16()
	require.True(t, policy.NeedsLossScale())
	build := func(b *managed.Builder) {
		w := b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
		y := graph.Mul(policy.In(w), policy.In(graph.ReduceAllMean(b.Field("x"))))
		b.Loss("loss", graph.MulScalar(policy.Out(y), tiny))
	}
	one := batchOf(t, []float32{1, 1}, 2)
	for _, row := range []struct {
		name  string
		scale bool
		want  float64
	}{{"without", false, 0}, {"with", true, tiny}} {
		t.Run(row.name, func(t *testing.T) {
			chain := []optim.Transformation(nil)
			if row.scale {
				chain = append(chain, optim.LossScale{})
			}
			state := newState(t, r, optim.New(1e6, chain...))
			step := trainStep(t, build)
			_, logs, err := step.Step(t.Context(), state, one)
			require.NoError(t, err)
			loss, err := logs.Float("loss")
			require.NoError(t, err)
			require.InEpsilon(t, tiny, loss, 1e-3)
			require.InDelta(t, 1-1e6*row.want, floats(t, state, "/w")[0], 1e-4)
		})
	}
}

func TestPolicy(t *testing.T) {
	for _, row := range []struct {
		policy optim.Policy
		want   string
		scale  bool
	}{
		{optim.Policy{Parameters: dtypes.Float32, Compute: dtypes.Float32, Outputs: dtypes.Float32}, "parameters Float32, compute Float32, outputs Float32", false},
		{optim.MixedBFloat16(), "parameters Float32, compute BFloat16, outputs Float32", false},
		{optim.MixedFloat16(), "parameters Float32, compute Float16, outputs Float32", true},
	} {
		require.Equal(t, row.want, row.policy.String())
		require.Equal(t, row.scale, row.policy.NeedsLossScale())
	}
	labels := false
	state := newState(t, plugintest.CPU(t), optim.New(0.1))
	train(t, trainStep(t, func(b *managed.Builder) {
		tokens := graph.ConvertDType(b.Field("x"), dtypes.Int32)
		labels = optim.MixedBFloat16().In(tokens) == tokens
		bowl(b)
	}), state, slopes(t, 1, 1))
	require.True(t, labels, "integers stay")
}
