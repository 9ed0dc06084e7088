package optim_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// Parameters of 16 bits keep their dtype; the optimizer's state is in float32.
func TestRules_parametersOf16Bits(t *testing.T) {
	r := plugintest.CPU(t)
	for name, rule := range map[string]optim.Transformation{"adam": optim.Adam{}, "lion": optim.Lion{}, "adafactor": optim.Adafactor{},
		"lookahead": optim.Chain{optim.Noise{Eta: 0.01}, optim.Adam{}, optim.Lookahead{}}} {
		t.Run(name, func(t *testing.T) {
			state := newState(t, r, optim.New(0.05, rule))
			step := trainStep(t, func(b *managed.Builder) {
				g := b.Graph()
				w := b.Scope().VariableWithValue("w", []float32{1, -1}).NodeValue(g)
				_ = w
				h := b.Scope().WithInitializer(func(g *graph.Graph, s shapes.Shape) *graph.Node { return graph.Ones(g, s) }).
					VariableWithShape("half", shapeOf(dtypes.BFloat16, 3)).NodeValue(g)
				b.Loss("loss", graph.Add(graph.ReduceAllSum(graph.Square(w)), graph.ReduceAllSum(graph.Square(graph.ConvertDType(h, dtypes.Float32)))))
			})
			_, _, err := step.StepBlock(t.Context(), state, slopes(t, 20, 1))
			require.NoError(t, err)
			for _, n := range state.Names() {
				v, err := state.Value(n)
				require.NoError(t, err)
				if n == "/half" {
					require.Equal(t, dtypes.BFloat16, v.DType())
				} else if v.DType().IsFloat() {
					require.Equal(t, dtypes.Float32, v.DType(), n)
				}
			}
			v, err := state.Value("/half")
			require.NoError(t, err)
			require.NotContains(t, v.GoStr(), "1, 1, 1")
		})
	}
}

// With a loss in float64 all is in float64.
func TestRules_float64(t *testing.T) {
	o := optim.New(0.1, optim.Clip{GlobalNorm: 10}, optim.Adam{}, optim.ScaleBySchedule(warmCosine()), optim.Average{Decay: 0.5})
	state := newState(t, plugintest.CPU(t), o)
	step := trainStep(t, func(b *managed.Builder) {
		loss := graph.Square(b.Scope().VariableWithValue("w", 1.0).NodeValue(b.Graph()))
		b.Loss("loss", loss)
		b.Metric("rate", o.Rate(b.Scope(), loss))
	})
	train(t, step, state, slopes(t, 30, 1))
	for _, n := range state.Names() {
		v, err := state.Value(n)
		require.NoError(t, err)
		if v.DType().IsFloat() {
			require.Equal(t, dtypes.Float64, v.DType(), n)
		}
	}
	v, err := state.Value("/w")
	require.NoError(t, err)
	require.Less(t, v.Value(), 0.5)
}

// An invalid setting is an error when the step is compiled, which says what was expected.
func TestRules_refuse(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		name  string
		rate  float64
		chain []optim.Transformation
		want  string
	}{
		{"rate", 0, nil, "the learning rate is 0, expected a positive, finite number"},
		{"rate beyond float32", 1e300, nil, "the learning rate is 1e+300, expected a positive, finite number of float32"},
		{"infinite rate", math.Inf(1), nil, "the learning rate is +Inf, expected a positive, finite number"},
		{"nil", 1, []optim.Transformation{optim.Adam{}, nil}, "link 2 of a chain of 2 is nil"},
		{"momentum", 1, []optim.Transformation{optim.Momentum{Decay: 1}}, "the momentum is 1, expected a number from 0 to below 1"},
		{"adam", 1, []optim.Transformation{optim.Adam{Beta2: 2}}, "Adam.Beta2 is 2, expected a number from 0 to below 1"},
		{"lion", 1, []optim.Transformation{optim.Lion{Beta1: -1}}, "Lion.Beta1 is -1, expected a number from 0 to below 1"},
		{"rmsprop", 1, []optim.Transformation{optim.RMSProp{Epsilon: math.NaN()}}, "RMSProp.Epsilon is NaN, expected a positive, finite number"},
		{"adagrad", 1, []optim.Transformation{optim.Adagrad{Start: -1}}, "Adagrad.Start is -1, expected a positive, finite number"},
		{"adadelta", 1, []optim.Transformation{optim.Adadelta{Decay: 1}}, "Adadelta.Decay is 1, expected a number from 0 to below 1"},
		{"nadam", 1, []optim.Transformation{optim.Nadam{Beta2: -1}}, "Nadam.Beta2 is -1, expected a number from 0 to below 1"},
		{"decay", 1, []optim.Transformation{optim.WeightDecay{Rate: -0.1}}, "WeightDecay.Rate is -0.1, expected a finite number that is not negative"},
		{"clip", 1, []optim.Transformation{optim.Clip{Value: 0}}, "the limit of clip is 0, expected a positive, finite number"},
		{"norm", 1, []optim.Transformation{optim.Clip{GlobalNorm: -1}}, "the limit of clip_by_global_norm is -1, expected a positive, finite number"},
		{"two limits", 1, []optim.Transformation{optim.Clip{Value: 1, Norm: 2}}, "Clip{Value:1 Norm:2 GlobalNorm:0}: expected exactly one limit"},
		{"norm of each", 1, []optim.Transformation{optim.Clip{Norm: -2}}, "the limit of clip_by_norm is -2, expected a positive, finite number"},
		{"accumulate", 1, []optim.Transformation{optim.Accumulate(0)}, "Accumulate is given 0, expected 1 batch or more"},
		{"muon", 1, []optim.Transformation{optim.Muon{}}, "Muon: /b is (Float32)[4], expected a matrix: put it into a group of another rule"},
		{"no group", 1, []optim.Transformation{optim.Groups(optim.Group{Name: "m", Match: optim.Matrices})}, "/b, (Float32)[4], is in no group: add a last group without a Match"},
		{"groups of one name", 1, []optim.Transformation{optim.Groups(optim.Group{Name: "a", Match: optim.Under("/b")}, optim.Group{Name: "a_2"}, optim.Group{Name: "a"})},
			`group 3 has the name "a", as an earlier group has: expected another name, since the rates of both would be logged under one name; with the name "a_3" it finds`},
		{"name of a group", 1, []optim.Transformation{optim.Groups(optim.Group{Name: "a/b"})}, `group 1 has the name "a/b", expected one without "/"`},
		{"two averages", 1, []optim.Transformation{optim.Average{Decay: 0.9}, optim.Average{Decay: 0.8}}, "average is at /optimizers/average_2; it may be in a chain once, and not inside a group"},
		{"scale in a group", 1, []optim.Transformation{optim.Groups(optim.Group{Name: "a", Chain: optim.Chain{optim.LossScale{}}})}, "loss_scale is at /optimizers/groups/a/loss_scale; it may be in a chain once, and not inside a group"},
		{"scale after another", 1, []optim.Transformation{optim.Clip{Norm: 1}, optim.LossScale{}}, "LossScale is link 2 of the chain, after clip_by_norm, which would see scaled gradients: put it first"},
		{"average", 1, []optim.Transformation{optim.Average{}}, "Average.Decay is 0, so the average would be the parameter: expected a share such as 0.999"},
		{"noise", 1, []optim.Transformation{optim.Noise{}}, "Noise.Eta is 0, expected a positive, finite number"},
		{"noise that grows", 1, []optim.Transformation{optim.Noise{Eta: 1, Gamma: -1}}, "Noise.Gamma is -1, expected a positive, finite number"},
		{"lookahead", 1, []optim.Transformation{optim.Lookahead{Every: -1}}, "Lookahead.Every is -1, expected a positive number of updates"},
		{"lookahead too far", 1, []optim.Transformation{optim.Lookahead{Share: 2}}, "Lookahead.Share is 2, expected a number above 0, at most 1"},
		{"scale", 1, []optim.Transformation{optim.Scale(math.NaN())}, "Scale is given NaN, expected a finite number"},
		{"adafactor", 1, []optim.Transformation{optim.Adafactor{Factored: -1}}, "Adafactor.Factored is -1, expected a positive number"},
	} {
		t.Run(row.name, func(t *testing.T) {
			state := newState(t, r, optim.New(row.rate, row.chain...))
			_, _, err := trainStep(t, bowl).StepBlock(t.Context(), state, slopes(t, 1, 1))
			require.ErrorContains(t, err, row.want)
		})
	}
}

// Each rule follows optax's for 100 steps, in blocks; so does the average of the parameters.
func TestRules_asOptax(t *testing.T) {
	r, f := plugintest.CPU(t), optax(t)
	batches := slopes(t, 100, 1)
	require.Len(t, f.Rules, len(rules))
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			want := f.Rules[name]
			require.Len(t, want.Parameters, len(f.Steps))
			state, step := newState(t, r, rule()), trainStep(t, bowl)
			done, most, moved := 0, 0.0, 0.0
			for i, n := range f.Steps {
				train(t, step, state, batches[done:n])
				done = n
				got := parameters(t, state)
				most = max(most, farthest(t, want.Parameters[i], got))
				require.LessOrEqual(t, most, tolerance, "after %d steps", n)
				moved = max(moved, farthest(t, want.Parameters[0], got))
			}
			require.Greater(t, moved, 0.05, "the run went somewhere")
			require.Len(t, step.StableHLO(), 1)
			t.Logf("issue 6.4: optax %s, %s: 100 steps, at most %.1e apart", f.Optax, name, most)
		})
	}
}

// Parameters and state are bit-identical for every grouping of the steps into blocks. A snapshot in the middle of an
// accumulation contains all of it.
func TestRules_groupingChangesNoBit(t *testing.T) {
	r := plugintest.CPU(t)
	const steps = 60
	batches := slopes(t, steps+5, 1)
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			state, step := newState(t, r, rule()), trainStep(t, bowl)
			train(t, step, state, batches[:5])
			s, err := state.Snapshot(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			var want map[string][]byte
			for _, sizes := range [][]int{{1}, {steps}, {7, 1, 13}} {
				require.NoError(t, s.Restore(t.Context()))
				for i, rest := 0, batches[5:]; len(rest) > 0; i++ {
					n := min(sizes[i%len(sizes)], len(rest))
					train(t, step, state, rest[:n])
					rest = rest[n:]
				}
				if got := bits(t, state); want == nil {
					want = got
				} else {
					require.Equal(t, want, got, "groups of %v", sizes)
				}
			}
			require.Len(t, step.StableHLO(), 1)
			require.Contains(t, step.StableHLO()[0], "stablehlo.while")
		})
	}
}

// GoMLX's RMSProp corrects a bias that no other library corrects. This is why lazo has its own.
func TestRMSProp_ofGoMLXIsAnother(t *testing.T) {
	r, f := plugintest.CPU(t), optax(t)
	batches := slopes(t, 100, 1)
	state := run(t, r, optim.GoMLX(optimizer.RMSProp().Betas(0, 0.9).Epsilon(1e-8).LearningRate(0.01).Done()), batches[:1])
	apart := farthest(t, f.Rules["rmsprop"].Parameters[0], parameters(t, state))
	require.Greater(t, apart, 0.01, "GoMLX's has become optax's: ours can go")
	t.Logf("GoMLX's RMSProp is %.2g from optax's after one step", apart)
}

// States that lazo saved with GoMLX v0.26.0, whose Adam had another name and dtype for its count, continue to optax's
// results. Those of "gomlx" are of GoMLX's Adam.
func TestRules_goOnFromGoMLX026(t *testing.T) {
	r, f := plugintest.CPU(t), optax(t)
	batches := slopes(t, 100, 1)
	for _, name := range []string{"accumulate", "adam", "adamax", "gomlx", "groups", "lamb", "muon"} {
		t.Run(name, func(t *testing.T) {
			folder, err := checkpoint.Open(filepath.Join("testdata", "saved-v0.26.0", name), checkpoint.Options{ReadOnly: true})
			require.NoError(t, err)
			defer func() { require.NoError(t, folder.Close()) }()
			saved, err := folder.Load(t.Context(), 50)
			require.NoError(t, err)
			var state *managed.State
			missing := 0.0
			if rule := rules[name]; rule != nil {
				state = newState(t, r, rule())
				require.NoError(t, state.Restore(t.Context(), saved))
			} else {
				name, missing = "adam", -50 // updates that GoMLX did not count
				state = newState(t, r, rules[name]())
				require.NoError(t, state.Transfer(t.Context(), saved, withoutUpdates))
			}
			train(t, trainStep(t, bowl), state, batches[50:])
			most := farthest(t, f.Rules[name].Parameters[len(f.Steps)-1], parameters(t, state))
			require.LessOrEqual(t, most, tolerance)
			require.Equal(t, 100.0, number(t, state, "/global_step"))
			for _, n := range state.Names() {
				if strings.HasPrefix(n, "/AdamOptimizer") && strings.HasSuffix(n, "/step") {
					require.Equal(t, number(t, state, "/optimizers/updates"), number(t, state, n)+missing)
				}
			}
			t.Logf("50 steps saved with v0.26.0 and 50 now end %.1e from optax's", most)
		})
	}
}
