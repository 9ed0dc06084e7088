package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// fields is a batch of two fields with different numbers of rows.
type fields struct{ a, b []float64 }

// Samples is the larger number, which is Ciclo's default.
func (f fields) Samples() int { return max(len(f.a), len(f.b)) }

func fieldBatches(n int) loop.Data[fields] {
	return func(yield func(fields, error) bool) {
		for range n {
			if !yield(fields{make([]float64, 3), make([]float64, 4)}, nil) {
				return
			}
		}
	}
}

// shorter is a batch with a custom size.
type shorter struct{ fields }

func (s shorter) Samples() int { return min(len(s.a), len(s.b)) }

func TestB18_B19_samplesOfABatch(t *testing.T) {
	t.Run("B18: the batch knows its size", func(t *testing.T) { testSamples(t, fieldBatches(3), 4) })
	t.Run("B19: a function of one's own", func(t *testing.T) {
		testSamples(t, func(yield func(shorter, error) bool) {
			for b, err := range fieldBatches(3) {
				if !yield(shorter{b}, err) {
					return
				}
			}
		}, 3)
	})
}

func testSamples[B any](t *testing.T, batches loop.Data[B], want int64) {
	var seen []int64
	l := loop.New(loop.OnTurn(loop.EachStep, func(_ context.Context, turn *loop.Turn[int, B]) error {
		seen = append(seen, turn.Elapsed.Samples)
		return nil
	}))
	result, err := l.Run(t.Context(), 0, batches)
	require.NoError(t, err)
	require.Equal(t, []int64{want, 2 * want, 3 * want}, seen)
	require.Equal(t, 3*want, result.Elapsed.Samples)
	var byHand []int64
	for pass, err := range loop.Over(batches) {
		require.NoError(t, err)
		require.Equal(t, want, pass.Samples())
		byHand = append(byHand, pass.Elapsed.Samples)
	}
	require.Equal(t, seen, byHand, "by hand")
}

type negative int

func (negative) Samples() int { return -2 }

func TestSamples_refusesNegative(t *testing.T) {
	batches := loop.Data[negative](func(yield func(negative, error) bool) { yield(0, nil) })
	l := loop.New(loop.OnTurn(loop.EachStep, func(context.Context, *loop.Turn[int, negative]) error { return nil }))
	result, err := l.Run(t.Context(), 0, batches)
	require.EqualError(t, err, "loop: step 1: data: a batch must not have a negative number of samples, got -2")
	require.Equal(t, loop.Failed, result.Reason)
	for _, err := range loop.Over(batches) {
		require.Error(t, err)
	}
}
