package optim_test

import (
	"testing"

	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/optim"
)

// Each part of an optimizer describes its settings: two different ones have different descriptions.
func TestR13_describe(t *testing.T) {
	decay := func(m optim.Match) optim.Transformation { return optim.WeightDecay{Rate: 0.1, Match: m} }
	said := map[string]string{}
	for _, part := range []optim.Transformation{
		optim.Adam{}, optim.Adam{Beta1: 0.8}, optim.Adamax{Beta1: 0.8}, optim.LAMB{Decay: optim.WeightDecay{Rate: 0.1}}, optim.LAMB{},
		optim.Momentum{Decay: 0.9}, optim.Momentum{Decay: 0.9, Nesterov: true}, optim.Momentum{Decay: 0.8}, optim.Muon{Plain: true}, optim.Lion{Beta2: 0.5}, optim.Average{Decay: 0.9},
		optim.Clip{Value: 1}, optim.Clip{Value: 2}, optim.Clip{Norm: 1}, optim.Clip{GlobalNorm: 1}, optim.TrustRatio(), optim.Scale(2), optim.Scale(3),
		optim.Accumulate(2), optim.Accumulate(3), optim.SkipNonFinite(), optim.LossScale{}, optim.Noise{Eta: 1}, optim.Noise{Eta: 2}, optim.Lookahead{}, optim.Lookahead{Every: 2}, optim.LossScale{Every: 5},
		decay(nil), decay(optim.RankFrom(1)), decay(optim.RankFrom(2)), decay(optim.Under("/a")), decay(optim.Under("/b")),
		decay(optim.Not(optim.Under("/b"))), decay(optim.Optional(optim.Under("/b"))),
		optim.Frozen(optim.Under("/a")), optim.Frozen(optim.Under("/b")), optim.Masked(optim.Under("/a"), optim.Clip{Value: 1}), optim.Masked(optim.Under("/a"), optim.Clip{Value: 2}),
		optim.Groups(optim.Group{Name: "a", Match: optim.Under("/a"), Chain: optim.Chain{optim.Adam{}}}, optim.Group{Name: "b", Chain: optim.Chain{optim.Clip{Value: 1}}}),
		optim.Groups(optim.Group{Name: "a", Match: optim.Under("/a"), Chain: optim.Chain{optim.Adam{}}}, optim.Group{Name: "b", Chain: optim.Chain{optim.Clip{Value: 2}}}),
		optim.ScaleBySchedule(optim.Constant(1)), optim.ScaleBySchedule(optim.Linear(0, 1, 5).Then(5, optim.Cosine(1, 0, 95))),
		optim.ScaleBySchedule(optim.Constant(1).Then(5, optim.Constant(2))), optim.ScaleBySchedule(optim.Constant(1).Then(5, optim.Constant(3))),
		optim.Chain{optim.Clip{Value: 1}}, optim.Chain{optim.Clip{Value: 2}},
	} {
		d := optim.New(0.1, part).Describe()
		require.Equal(t, "0.1", d["rate"])
		require.Equal(t, part.Name(), d[""])
		text := part.Name() + ": " + d[part.Name()]
		require.NotContains(t, said, text)
		require.NotRegexp(t, "0x[0-9a-f]{4}", text, "no address")
		said[text] = text
	}
	two := optim.New(0.1, optim.Scale(2), nil, optim.Scale(3)).Describe()
	require.Equal(t, map[string]string{"": "scale, nothing, scale_2", "rate": "0.1", "scale": "scale(2)", "nothing": "", "scale_2": "scale(3)"}, two)
	sgd := optim.GoMLX(optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(0.5).Done()).Describe()
	require.Equal(t, "0.5", sgd["rate"])
	t.Logf("R13: %d parts of optimizers and settings of them: no two say the same", len(said))
}
