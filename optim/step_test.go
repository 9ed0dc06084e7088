package optim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// The names of variables are stable, because checkpoints contain them.
func TestRules_namesOfVariables(t *testing.T) {
	r := plugintest.CPU(t)
	scale := optim.LossScale{}
	o := optim.New(0.01, scale, optim.SkipNonFinite(), optim.Accumulate(2), optim.Clip{GlobalNorm: 1}, optim.Momentum{Decay: 0.5}, optim.Momentum{Decay: 0.5},
		optim.Noise{Eta: 0.1}, optim.Lookahead{},
		optim.Groups(
			optim.Group{Name: "matrices", Match: optim.Matrices, Chain: optim.Chain{optim.Muon{}, optim.Lion{}, optim.RMSProp{}, optim.Adafactor{Factored: 2}, optim.Adagrad{}, optim.Adadelta{}, optim.Nadam{}}},
			optim.Group{Name: "others", Chain: optim.Chain{optim.Adam{}, optim.LAMB{}}}),
		optim.Average{Decay: 0.9})
	state := newState(t, r, o)
	train(t, trainStep(t, func(b *managed.Builder) { b.Loss("loss", bowlLoss(b)) }), state, slopes(t, 2, 1))
	require.ElementsMatch(t, []string{
		"/w", "/b", "/#rngState", "/global_step", "/optimizers/learning_rate", "/optimizers/updates",
		"/optimizers/loss_scale/scale", "/optimizers/loss_scale/good", "/optimizers/skip_non_finite/skipped",
		"/optimizers/accumulate/w/batches", "/optimizers/accumulate/b/batches", "/optimizers/accumulate/w/mean", "/optimizers/accumulate/b/mean",
		"/optimizers/accumulate/w/count", "/optimizers/accumulate/b/count",
		"/optimizers/noise/count", "/optimizers/lookahead/w/updates", "/optimizers/lookahead/b/updates", "/optimizers/lookahead/w/slow", "/optimizers/lookahead/b/slow",
		"/optimizers/momentum/w/sum", "/optimizers/momentum/b/sum", "/optimizers/momentum_2/w/sum", "/optimizers/momentum_2/b/sum",
		"/optimizers/groups/matrices/muon/w/momentum", "/optimizers/groups/matrices/lion/w/momentum",
		"/optimizers/groups/matrices/rmsprop/w/squares", "/optimizers/groups/matrices/adafactor/w/rows", "/optimizers/groups/matrices/adafactor/w/columns",
		"/optimizers/groups/matrices/adagrad/w/squares", "/optimizers/groups/matrices/adadelta/w/squares", "/optimizers/groups/matrices/adadelta/w/updates",
		"/optimizers/groups/matrices/nadam/w/momentum", "/optimizers/groups/matrices/nadam/w/squares",
		"/AdamOptimizer_groups_others_adam/step", "/AdamOptimizer_groups_others_adam/b_1st_moment", "/AdamOptimizer_groups_others_adam/b_2nd_moment",
		"/AdamOptimizer_groups_others_lamb_adam/step", "/AdamOptimizer_groups_others_lamb_adam/b_1st_moment", "/AdamOptimizer_groups_others_lamb_adam/b_2nd_moment",
		"/optimizers/average/updates", "/optimizers/average/w/sum", "/optimizers/average/b/sum", "/optimizers/average/w/count", "/optimizers/average/b/count",
	}, state.Names())
	require.Equal(t, size, state.Parameters(), "none of them is trainable")
}
