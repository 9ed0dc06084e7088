package loop_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

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
