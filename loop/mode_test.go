package loop_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// A run finds methods with a pointer receiver on the variable of a state, also if an interface type hides them.
func TestR10_statesOfAnyForm(t *testing.T) {
	t.Run("a value whose pointer has the methods", func(t *testing.T) {
		values := []float64{3, 1, 2}
		train := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s table, i int) (table, loop.Logs, error) {
			var logs loop.Logs
			logs.Metric("x", values[i])
			s.of["x"] = values[i]
			return s, logs, nil
		}))

		result, err := loop.New(train).Run(t.Context(), table{of: map[string]float64{}, rate: 1}, numbers(3), callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}),
			callbacks.ReduceOnPlateau("x", 0.5, callbacks.Evaluations(1), callbacks.Monitor{Mode: loop.Lowest}))
		require.NoError(t, err)
		require.Equal(t, 1.0, result.State.of["x"])
		require.Equal(t, 1.0, result.State.rate, "the best one's")
	})
	t.Run("an interface hides a map", func(t *testing.T) {
		train := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s any, i int) (any, loop.Logs, error) {
			var logs loop.Logs
			logs.Metric("x", float64(i))
			return s, logs, nil
		}))

		_, err := loop.New(train).Run(t.Context(), any(map[string]int{}), numbers(3), callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}))
		require.EqualError(t, err, "loop: at the start: step 0: on each x: keep best: a state of type map[string]int changes in place: to restore an earlier one, give it the method Snapshot that loop.Stepper describes")
	})
}

// A rate is never reduced to 0, nor to a denormal number. A rate that cannot be reduced is not reported as reduced.
func TestR27_aRateThatCannotFallFurther(t *testing.T) {
	float32s := func(x float64) float64 { return float64(float32(x)) }
	float16s := func(x float64) float64 { return math.RoundToEven(x*0x1p24) / 0x1p24 } // of small numbers
	for _, row := range []struct {
		name    string
		hold    func(float64) float64
		options []callbacks.Monitor
		want    float64
		cuts    int
	}{
		{"float32", float32s, nil, 0x1p-126, 127},
		{"float32, the lowest is 0", float32s, []callbacks.Monitor{{MinRate: 0}}, 0x1p-126, 127},
		{"float32, the lowest is no float32", float32s, []callbacks.Monitor{{MinRate: 1e-3}}, float32s(1e-3), 10},
		{"float16", float16s, nil, 0x1p-24, 24},
	} {
		t.Run(row.name, func(t *testing.T) {
			cuts := 0
			l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s *heldRate, _ int) (*heldRate, loop.Logs, error) {
				var logs loop.Logs
				logs.Metric("x", 1)
				return s, logs, nil
			})))
			result, err := l.Run(t.Context(), &heldRate{1, row.hold}, numbers(400), callbacks.ReduceOnPlateau("x", 0.5, callbacks.Evaluations(1),
				append([]callbacks.Monitor{{Mode: loop.Lowest}}, append(row.options, callbacks.Monitor{OnReduce: func(context.Context, loop.Report, float64, float64) error { cuts++; return nil }})...)...))
			require.NoError(t, err)
			require.Equal(t, row.want, result.State.rate)
			require.InDelta(t, row.cuts, cuts, 1)
		})
	}
}

// Random programs behave as the reference, unchanged and with every BlockStepper replaced by an ordinary stepper. A run
// that is interrupted at any step and resumed behaves as the whole run.
func TestModel(t *testing.T) {
	seen := map[string]int{}
	for seen["programs"] < modelPrograms {
		rapid.Check(t, func(t *rapid.T) {
			p := drawProgram(t)
			cut := evenly(t, len(p.sizes), "cut")
			rapid.SyncTest(t, func(t *rapid.T) { checkProgram(t, p, cut, seen) })
			seen["programs"]++
		})
	}
	for _, what := range []string{"blocks", "resumed", "whole", "entries", "marks", "in front", "data ended", "until reached", "stopped",
		"cancelled", "left behind", "failed", "two errors"} {
		require.Positive(t, seen[what], "no program had this: %s", what)
	}
	t.Logf("model: %d programs, 0 differences, %d blocks of more than one step, %d resumed", seen["programs"], seen["blocks"], seen["resumed"])
	t.Logf("model: %v", seen)
}
