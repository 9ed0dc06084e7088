package optim_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/optim"
)

var background = context.Background()

// tolerance is the allowed difference from optax, relative above 1.
const tolerance = 1e-5

// fixture has the form of the results of testdata/trajectories.py.
type fixture struct {
	Optax string
	Steps []int
	Rules map[string]struct {
		Parameters [][]float32
		Average    []float32
	}
	Noise     []float64 // the standard deviation at each of Steps
	Points    []int64
	Schedules map[string][]float64
}

func optax(t testing.TB) fixture {
	t.Helper()
	raw, err := os.ReadFile("testdata/trajectories.json")
	require.NoError(t, err)
	var f fixture
	require.NoError(t, json.Unmarshal(raw, &f))
	return f
}

func warmCosine() optim.Schedule {
	return optim.Linear(0, 1, 10).Then(10, optim.Cosine(1, 0.01, 70))
}

// rules are the chains that correspond to the fixture's.
var rules = map[string]func() *optim.Optimizer{
	"sgd":      func() *optim.Optimizer { return optim.New(0.1) },
	"momentum": func() *optim.Optimizer { return optim.New(0.05, optim.Momentum{Decay: 0.9}) },
	"nesterov": func() *optim.Optimizer { return optim.New(0.05, optim.Momentum{Decay: 0.9, Nesterov: true}) },
	"adam":     func() *optim.Optimizer { return optim.New(0.02, optim.Adam{}) },
	"adamw":    func() *optim.Optimizer { return optim.New(0.02, optim.Adam{}, optim.WeightDecay{Rate: 0.1}) },
	"adamw masked": func() *optim.Optimizer {
		return optim.New(0.02, optim.Adam{}, optim.WeightDecay{Rate: 0.1, Match: optim.RankFrom(2)})
	},
	"adamax":   func() *optim.Optimizer { return optim.New(0.02, optim.Adamax{}) },
	"rmsprop":  func() *optim.Optimizer { return optim.New(0.01, optim.RMSProp{}) },
	"adagrad":  func() *optim.Optimizer { return optim.New(0.1, optim.Adagrad{}) },
	"adadelta": func() *optim.Optimizer { return optim.New(0.5, optim.Adadelta{}) },
	"adadelta of Keras": func() *optim.Optimizer {
		return optim.New(0.5, optim.Adadelta{Decay: 0.95, Epsilon: 1e-7})
	},
	"nadam":           func() *optim.Optimizer { return optim.New(0.02, optim.Nadam{}) },
	"lion":            func() *optim.Optimizer { return optim.New(0.01, optim.Lion{}, optim.WeightDecay{Rate: 0.1}) },
	"lamb":            func() *optim.Optimizer { return optim.New(0.01, optim.LAMB{Decay: optim.WeightDecay{Rate: 0.05}}) },
	"adafactor":       func() *optim.Optimizer { return optim.New(0.05, optim.Adafactor{Factored: 4}) },
	"adafactor whole": func() *optim.Optimizer { return optim.New(0.05, optim.Adafactor{}) },
	"adafactor absolute": func() *optim.Optimizer {
		return optim.New(0.01, optim.Adafactor{Factored: 4, Absolute: true, Limit: 0.5})
	},
	"muon":       func() *optim.Optimizer { return muon(optim.Muon{}) },
	"muon plain": func() *optim.Optimizer { return muon(optim.Muon{Plain: true}) },
	"clip":       func() *optim.Optimizer { return optim.New(0.1, optim.Clip{Value: 0.25}) },
	"clip by global norm": func() *optim.Optimizer {
		return optim.New(0.02, optim.Clip{GlobalNorm: 1.5}, optim.Adam{})
	},
	"accumulate": func() *optim.Optimizer { return optim.New(0.05, optim.Accumulate(4), optim.Adam{}) },
	"accumulate clipped": func() *optim.Optimizer {
		return optim.New(0.2, optim.Accumulate(3), optim.Clip{GlobalNorm: 0.5}, optim.Momentum{Decay: 0.9}, optim.ScaleBySchedule(warmCosine()))
	},
	"schedule": func() *optim.Optimizer {
		return optim.New(0.2, optim.Momentum{Decay: 0.9}, optim.ScaleBySchedule(warmCosine()))
	},
	"schedule adamw": func() *optim.Optimizer {
		return optim.New(1, optim.Adam{}, optim.WeightDecay{Rate: 0.05}, optim.ScaleBySchedule(optim.ExponentialDecay(0.05, 0.5, 20)))
	},
	"lookahead": func() *optim.Optimizer {
		return optim.New(0.05, optim.Adam{}, optim.Lookahead{Every: 3, Share: 0.25})
	},
	"lookahead of the paper": func() *optim.Optimizer {
		return optim.New(0.1, optim.Momentum{Decay: 0.9}, optim.Lookahead{})
	},
	"frozen": func() *optim.Optimizer { return optim.New(0.02, optim.Frozen(optim.Not(optim.Matrices)), optim.Adam{}) },
	"masked": func() *optim.Optimizer { return optim.New(0.1, optim.Masked(optim.Matrices, optim.Clip{Value: 0.125})) },
	"groups": func() *optim.Optimizer {
		return optim.New(0.02, optim.Groups(
			optim.Group{Name: "matrices", Match: optim.Matrices, Chain: optim.Chain{optim.Adam{}, optim.WeightDecay{Rate: 0.1}}},
			optim.Group{Name: "others", Chain: optim.Chain{optim.Momentum{Decay: 0.5}, optim.Scale(0.25)}}))
	},
}

func muon(m optim.Muon) *optim.Optimizer {
	return optim.New(0.02, optim.Groups(
		optim.Group{Name: "matrices", Match: optim.Matrices, Chain: optim.Chain{m}},
		optim.Group{Name: "others", Chain: optim.Chain{optim.Adam{}}}))
}

func TestAverage_asOptax(t *testing.T) {
	r, f := plugintest.CPU(t), optax(t)
	batches := slopes(t, 100, 1)
	average := optim.Average{Decay: 0.9}
	state := run(t, r, optim.New(0.02, optim.Adam{}, average), batches)
	require.LessOrEqual(t, farthest(t, f.Rules["adam"].Parameters[len(f.Steps)-1], parameters(t, state)), tolerance, "an average changes no parameter")
	n := number(t, state, "/optimizers/average/updates")
	require.Equal(t, 100.0, n)
	var got []float32
	for _, name := range []string{"/optimizers/average/w/sum", "/optimizers/average/b/sum"} {
		for _, v := range floats(t, state, name) {
			got = append(got, v/float32(1-math.Pow(0.9, n)))
		}
	}
	most := farthest(t, f.Rules["adam"].Average, got)
	require.LessOrEqual(t, most, tolerance)
	t.Logf("issue 6.4: optax %s, ema: 100 steps, at most %.1e apart", f.Optax, most)
}
