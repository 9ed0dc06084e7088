package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
)

// Rules that are not for every parameter, and so fail where the optimizer is tried on a model of one number, can be
// given a rate before the first step too.
func TestSetLearningRate_beforeTheFirstStepOfOptim(t *testing.T) {
	r := plugintest.CPU(t)
	const rate = 0.03125
	groups := func() []optim.Transformation {
		return []optim.Transformation{optim.Groups(
			optim.Group{Name: "hidden", Match: optim.Matrices, Chain: optim.Chain{optim.Muon{}}},
			optim.Group{Name: "rest", Match: optim.Under("/dense"), Chain: optim.Chain{optim.Adam{}}})}
	}
	weights := func(b *managed.Builder) { // a matrix alone, as Muon wants it
		predicted := layers.Dense(b.Scope().In("dense"), b.Field("x"), false, 1)
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted)))
	}
	for _, row := range []struct {
		name  string
		chain []optim.Transformation
		build managed.Build
	}{
		{"plain", nil, regression},
		{"adam", []optim.Transformation{optim.Adam{}}, regression},
		{"muon", []optim.Transformation{optim.Muon{}}, weights},
		{"groups", groups(), regression},
	} {
		t.Run(row.name, func(t *testing.T) {
			step := stepper(t, managed.TrainStep(row.build))
			set := line(t, 64)
			want := newState(t, r, managed.WithOptimizer(optim.New(rate, row.chain...)))
			turns(t, step, want, set, 0, 2)
			state := newState(t, r, managed.WithOptimizer(optim.New(7, row.chain...)))
			_, err := state.LearningRate()
			require.ErrorIs(t, err, managed.ErrNoLearningRate)
			require.NoError(t, state.SetLearningRate(rate))
			got, err := state.LearningRate()
			require.NoError(t, err)
			require.Equal(t, rate, got)
			turns(t, step, state, set, 0, 2)
			require.Equal(t, bits(t, want), bits(t, state))
		})
	}
}
