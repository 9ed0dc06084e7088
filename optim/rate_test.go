package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// The rate of a step can be logged, and equals the host's.
func TestRate_inTheLogs(t *testing.T) {
	o := optim.New(0.5, optim.Accumulate(2), optim.Chain{optim.ScaleBySchedule(warmCosine())})
	state := newState(t, plugintest.CPU(t), o)
	step := trainStep(t, func(b *managed.Builder) {
		loss := bowlLoss(b)
		b.Loss("loss", loss)
		b.Metric("rate", o.Rate(b.Scope(), loss))
	})
	_, logs, err := step.StepBlock(t.Context(), state, slopes(t, 60, 1))
	require.NoError(t, err)
	for i, l := range logs {
		rate, err := l.Float("rate")
		require.NoError(t, err)
		require.InDelta(t, o.RateAt(int64(i/2)), rate, 1e-6, "step %d", i)
	}
	require.NoError(t, state.SetLearningRate(1))
	_, l, err := step.Step(t.Context(), state, slopes(t, 1, 1)[0])
	require.NoError(t, err)
	rate, err := l.Float("rate")
	require.NoError(t, err)
	require.InDelta(t, 2*o.RateAt(30), rate, 1e-6, "the host's rate moves the whole curve")
}

// A single rate is reported from the scales at the end of the chain. A scale before a rule is an error, in a step's
// logs too.
func TestFactorsAt(t *testing.T) {
	half := optim.ScaleBySchedule(optim.Linear(1, 0, 2)) // 0.5 at update 1
	group := func(name string, chain ...optim.Transformation) optim.Group {
		return optim.Group{Name: name, Chain: chain}
	}
	for _, row := range []struct {
		name  string
		chain optim.Chain
		want  map[string]float64 // nil if there is no single rate
	}{
		{"nothing", nil, map[string]float64{"": 1}},
		{"a schedule and a scale at the end", optim.Chain{optim.Adam{}, half, optim.Scale(0.1)}, map[string]float64{"": 0.05}},
		{"in a chain", optim.Chain{optim.Adam{}, optim.Chain{half, optim.Chain{optim.Scale(0.1)}}}, map[string]float64{"": 0.05}},
		{"before what leaves updates as they are", optim.Chain{optim.SkipNonFinite(), optim.Adam{}, half, optim.Accumulate(2), optim.Frozen(nil), optim.Lookahead{}, optim.Average{Decay: 0.9}}, map[string]float64{"": 0.5}},
		{"before Adam", optim.Chain{half, optim.Adam{}}, nil},
		{"a scale before Adam", optim.Chain{optim.Scale(0.1), optim.Adam{}}, nil},
		{"before a chain with a rule", optim.Chain{half, optim.Chain{optim.Momentum{Decay: 0.9}}}, nil},
		{"before a clip", optim.Chain{optim.Adam{}, half, optim.Clip{GlobalNorm: 1}}, nil},
		{"before noise", optim.Chain{optim.Adam{}, half, optim.Noise{Eta: 1}}, nil},
		{"before weight decay", optim.Chain{optim.Adam{}, half, optim.WeightDecay{Rate: 0.1}}, nil},
		{"before a custom rule", optim.Chain{half, doubled{}}, nil},
		{"masked", optim.Chain{optim.Adam{}, optim.Masked(optim.RankFrom(2), half)}, nil},
		{"a mask that scales nothing", optim.Chain{optim.Masked(optim.RankFrom(2), optim.WeightDecay{Rate: 0.1}), half}, map[string]float64{"": 0.5}},
		{"groups with scales", optim.Chain{optim.Groups(group("a", optim.Adam{}, half), group("b", optim.Momentum{Decay: 0.9})), optim.Scale(0.1)}, map[string]float64{"a": 0.05, "b": 0.1}},
		{"groups of scales alone", optim.Chain{optim.Adam{}, half, optim.Groups(group("a", optim.Scale(0.1)), group("b"))}, map[string]float64{"a": 0.05, "b": 0.5}},
		{"groups in groups", optim.Chain{optim.Groups(group("a", optim.Groups(group("c", half), group("d"))), group("b"))}, map[string]float64{"a/c": 0.5, "a/d": 1, "b": 1}},
		{"groups of rules alone", optim.Chain{optim.Groups(group("a", optim.Adam{}), group("b", optim.Lion{})), half}, map[string]float64{"": 0.5}},
		{"before groups with rules", optim.Chain{half, optim.Groups(group("a", optim.Adam{}))}, nil},
		{"before a rule in a group", optim.Chain{optim.Groups(group("a", half, optim.Adam{}))}, nil},
		{"two groups that scale", optim.Chain{optim.Groups(group("a", half)), optim.Groups(group("b", half))}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := optim.New(0.5, row.chain...)
			got, err := o.FactorsAt(1)
			if row.want == nil {
				require.ErrorContains(t, err, "the chain has no single learning rate")
				require.True(t, math.IsNaN(o.RateAt(1)))
				return
			}
			require.NoError(t, err)
			require.InDeltaMapValues(t, row.want, got, 1e-12)
			if factor, one := row.want[""]; one {
				require.InDelta(t, 0.5*factor, o.RateAt(1), 1e-12)
			} else {
				require.True(t, math.IsNaN(o.RateAt(1)))
			}
		})
	}
	o := optim.New(0.5, half, optim.Adam{})
	step := trainStep(t, func(b *managed.Builder) {
		loss := bowlLoss(b)
		b.Loss("loss", loss)
		b.Metric("rate", o.Rate(b.Scope(), loss))
	})
	_, _, err := step.Step(t.Context(), newState(t, plugintest.CPU(t), o), slopes(t, 1, 1)[0])
	require.ErrorContains(t, err, "the chain has no single learning rate")
}
