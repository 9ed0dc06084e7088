package optim_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// The check of all parameters is computed once, and not in each parameter's update: twice the parameters make twice the
// instructions of the compiled program, in all its fusions together. Clipping by the global norm is the same.
func TestSkipNonFinite_programGrowsWithParameters(t *testing.T) {
	r, batch := plugintest.CPU(t), batchOf(t, []float32{1}, 1)
	for name, link := range map[string]optim.Transformation{
		"global norm": optim.Clip{GlobalNorm: 1}, "skip non-finite": optim.SkipNonFinite(), "loss scale": optim.LossScale{},
	} {
		t.Run(name, func(t *testing.T) {
			instructions := func(n int) int {
				state := newState(t, r, optim.New(0.01, link, optim.Adam{}))
				step, _ := several(t, n, func(int) bool { return true })
				p, err := step.Program(t.Context(), state, batch)
				require.NoError(t, err)
				text, err := p.Optimized()
				require.NoError(t, err)
				return strings.Count(text, "\n  %") + strings.Count(text, "\n  ROOT ")
			}
			few, twice, more := instructions(8), instructions(16), instructions(32)
			require.Less(t, float64(more-twice), 2.2*float64(twice-few), "%d, %d and %d instructions", few, twice, more)
		})
	}
}

// A run with bad batches is bit-identical to the run without them.
func TestSkipNonFinite_isAsIfTheBatchWereNotThere(t *testing.T) {
	r := plugintest.CPU(t)
	bad := func(v float64) data.Batch {
		x := make([]float32, size)
		x[17] = float32(v)
		return batchOf(t, x, 1)
	}
	for name, chain := range map[string][]optim.Transformation{
		"adam":       {optim.SkipNonFinite(), optim.Clip{GlobalNorm: 1}, optim.Adam{}, optim.ScaleBySchedule(warmCosine()), optim.Average{Decay: 0.9}},
		"accumulate": {optim.SkipNonFinite(), optim.Accumulate(3), optim.Momentum{Decay: 0.9}},
		"groups": {optim.SkipNonFinite(), optim.Groups(optim.Group{Name: "matrices", Match: optim.Matrices, Chain: optim.Chain{optim.Muon{}}},
			optim.Group{Name: "rest", Chain: optim.Chain{optim.Adafactor{}}})},
	} {
		t.Run(name, func(t *testing.T) {
			good := slopes(t, 40, 1)
			want := bits(t, run(t, r, optim.New(0.05, chain...), good))
			all := slices.Insert(slices.Clone(good), 23, bad(math.Inf(-1)))
			all = slices.Insert(all, 11, bad(math.NaN()), bad(math.Inf(1)))
			all = append([]data.Batch{bad(math.NaN())}, all...)
			state := run(t, r, optim.New(0.05, chain...), all)
			got := bits(t, state)
			require.Equal(t, 4.0, number(t, state, "/optimizers/skip_non_finite/skipped"))
			require.Equal(t, 44.0, number(t, state, "/global_step"), "batches")
			for _, counter := range []string{"/global_step", "/optimizers/skip_non_finite/skipped"} {
				delete(want, counter)
				delete(got, counter)
			}
			require.Equal(t, want, got)
			t.Logf("4 of 44 batches were bad, 0 of %d values differ", len(got))
		})
	}
}

// The scale falls at each overflow and rises after a number of good steps. The updates do not change, because the
// scales are powers of two.
func TestLossScale_followsTheGradients(t *testing.T) {
	r := plugintest.CPU(t)
	scale := optim.LossScale{Start: 1024, Every: 3}
	chain := []optim.Transformation{scale, optim.Momentum{Decay: 0.5}}
	state := newState(t, r, optim.New(0.05, chain...))
	step := trainStep(t, func(b *managed.Builder) { b.Loss("loss", bowlLoss(b)) })
	good := slopes(t, 12, 1)
	x := make([]float32, size)
	x[3] = float32(math.Inf(1))
	overflow := batchOf(t, x, 1)
	rest := good
	for _, want := range []struct {
		good  bool
		scale float64
		since float64
	}{{true, 1024, 1}, {true, 1024, 2}, {true, 2048, 0}, {true, 2048, 1}, {false, 1024, 0}, {false, 512, 0}, {true, 512, 1}, {true, 512, 2}, {false, 256, 0}, {true, 256, 1}, {true, 256, 2}, {true, 512, 0}} {
		b := overflow
		if want.good {
			b, rest = rest[0], rest[1:]
		}
		train(t, step, state, []data.Batch{b})
		require.Equal(t, want.scale, number(t, state, "/optimizers/loss_scale/scale"))
		require.Equal(t, want.since, number(t, state, "/optimizers/loss_scale/good"))
	}
	plain := run(t, r, optim.New(0.05, optim.Momentum{Decay: 0.5}), good[:9])
	require.Equal(t, parameters(t, plain), parameters(t, state))
}

// The sum of all losses is scaled, so a second loss, a penalty of a layer and a step's own optimizer train as without a
// scale, to the bit.
func TestLossScale_scalesAllLosses(t *testing.T) {
	r := plugintest.CPU(t)
	build := func(b *managed.Builder) {
		bowl(b)
		w := b.Scope().Store().GetVariable("/w").NodeValue(b.Graph())
		b.Loss("second", graph.MulScalar(graph.ReduceAllSum(graph.Square(w)), 0.25))
		managed.AddLoss("penalty", graph.MulScalar(graph.ReduceAllSum(graph.Square(w)), 0.5))
	}
	trained := func(own bool, chain ...optim.Transformation) []float32 {
		o := optim.New(0.05, chain...)
		state, options := newState(t, r, o), []managed.StepOption(nil)
		if own {
			state, options = newState(t, r, optim.New(1)), []managed.StepOption{managed.WithStepOptimizer("own", o)}
		}
		step := managed.TrainStep(build, options...)
		defer func() { require.NoError(t, step.Close()) }()
		train(t, step, state, slopes(t, 12, 1))
		return parameters(t, state)
	}
	want := trained(false)
	require.Equal(t, want, trained(false, optim.LossScale{}))
	require.Equal(t, want, trained(true, optim.LossScale{}))
	require.NotEqual(t, want, parameters(t, run(t, r, optim.New(0.05), slopes(t, 12, 1))), "the other losses count")
}
