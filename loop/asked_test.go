package loop_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

type mine struct{ n int }

func (m mine) Samples() int { return m.n }

type behindPointer struct{ n int }

func (m *behindPointer) Samples() int { return m.n }

// The methods of a batch are found for a value, a pointer, and a value in an interface.
func TestR10_samplesOfAnyBatch(t *testing.T) {
	counts := map[string][]int64{
		"a value":                       samplesOf(t, mine{3}, mine{4}),
		"a pointer":                     samplesOf(t, &mine{3}, &mine{4}),
		"a pointer with the method":     samplesOf(t, &behindPointer{3}, &behindPointer{4}),
		"a value, a pointer has it":     samplesOf(t, behindPointer{3}, behindPointer{4}),
		"an interface":                  samplesOf[abilities.Sized](t, mine{3}, &mine{4}),
		"another interface":             samplesOf[fmt.Formatter](t, formatter{mine{3}}, formatter{mine{4}}),
		"any, of several types":         samplesOf[any](t, mine{3}, &behindPointer{4}),
		"any, and one knows no size":    samplesOf[any](t, mine{3}, "a text"),
		"none":                          samplesOf(t, 3, 4),
		"a pointer to what has no size": samplesOf(t, new(3), new(4)),
	}
	for name, got := range counts {
		want := []int64{3, 7}
		switch name {
		case "none", "a pointer to what has no size":
			want = []int64{1, 2}
		case "any, and one knows no size":
			want = []int64{3, 4}
		}
		require.Equal(t, want, got, name)
	}
}

type formatter struct{ mine }

func (formatter) Format(fmt.State, rune) {}

// samplesOf returns the samples after each batch, in a run and by hand.
func samplesOf[B any](t *testing.T, batches ...B) (all []int64) {
	t.Helper()
	source := func(yield func(B, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
	}
	for pass, err := range loop.Over(loop.Data[B](source)) {
		require.NoError(t, err)
		all = append(all, pass.Elapsed.Samples)
	}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s int, _ B) (int, loop.Logs, error) {
		return s, loop.Logs{}, nil
	}))).Run(t.Context(), 0, loop.Data[B](source))
	require.NoError(t, err)
	require.Equal(t, all[len(all)-1], result.Elapsed.Samples)
	return all
}

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

// table changes in place, though it is no pointer.
type table struct {
	of   map[string]float64
	rate float64
}

func (s *table) LearningRate() (float64, error)     { return s.rate, nil }
func (s *table) SetLearningRate(rate float64) error { s.rate = rate; return nil }
func (s *table) Snapshot(context.Context) (loop.Snapshot, error) {
	return &tableCopy{s, maps.Clone(s.of)}, nil
}

type tableCopy struct {
	to *table
	of map[string]float64
}

func (c *tableCopy) Restore(context.Context) error { c.to.of = maps.Clone(c.of); return nil }
func (c *tableCopy) Close() error                  { return nil }

// held is a rate as a number of some width holds it.
type heldRate struct {
	rate float64
	hold func(float64) float64
}

func (s *heldRate) LearningRate() (float64, error) { return s.rate, nil }
func (s *heldRate) SetLearningRate(rate float64) error {
	held := s.hold(rate)
	if held == 0 && rate != 0 {
		return fmt.Errorf("set: %w", abilities.ErrRateTooSmall)
	}
	s.rate = held
	return nil
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
