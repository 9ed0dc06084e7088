package optim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// A scaled optimizer has the results of the original, and one that is scaled already is returned unchanged.
func TestScaled(t *testing.T) {
	r := plugintest.CPU(t)
	plain := optim.New(0.02, optim.Adam{})
	scaled, err := plain.Scaled()
	require.NoError(t, err)
	require.True(t, scaled.ScalesLoss())
	for _, chain := range []optim.Chain{{optim.LossScale{Start: 4}}, {optim.Chain{optim.LossScale{Start: 4}}}} {
		has := optim.New(1, chain...)
		same, err := has.Scaled()
		require.NoError(t, err)
		require.Same(t, has, same)
	}
	batches := slopes(t, 20, 1)
	want := run(t, r, plain, batches)
	state := newState(t, r, scaled)
	train(t, trainStep(t, func(b *managed.Builder) { b.Loss("loss", bowlLoss(b)) }), state, batches)
	require.LessOrEqual(t, farthest(t, parameters(t, want), parameters(t, state)), tolerance)
	require.Equal(t, 20.0, number(t, state, "/optimizers/loss_scale/good"))
}
