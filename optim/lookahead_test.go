package optim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/optim"
)

// Every third update the parameter goes a quarter of the way back from its slow copy.
func TestLookahead_byHand(t *testing.T) {
	state, step := newState(t, plugintest.CPU(t), optim.New(1, optim.Lookahead{Every: 3, Share: 0.25})), trainStep(t, raw)
	gradient := make([]float32, size)
	gradient[0] = -4
	for i, want := range []float32{4, 8, 3, 7, 11, 6} {
		train(t, step, state, []data.Batch{batchOf(t, gradient, 1)})
		require.Equal(t, want, parameters(t, state)[0], "after update %d", i+1)
	}
}
