package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// Ciclo's elapsed is that before the batch: 4·i samples at index i. lazo's includes the turn's own batch.
func TestB22_countersIncludeTheTurnsOwnBatch(t *testing.T) {
	data := func(yield func(sized, error) bool) {
		for yield(sized{1, 2, 3, 4}, nil) {
		}
	}
	var seen []int64
	l := loop.New(loop.OnTurn(loop.EachStep, func(_ context.Context, turn *loop.Turn[int, sized]) error {
		seen = append(seen, turn.Elapsed.Samples)
		return nil
	}))
	_, err := l.Run(t.Context(), 0, loop.Data[sized](data), loop.Until(loop.Steps(3)))
	require.NoError(t, err)
	require.Equal(t, []int64{4, 8, 12}, seen)
	t.Logf("B22: samples seen in turns 1 to 3: %v", seen)
}

// B23: Ciclo counts the arguments of a function. In Go its type decides: On takes a step of state and batch, OnTurn a
// function of the turn, and an evaluation needs neither from the outer loop.
func TestB23_stepsAndTurns(t *testing.T) {
	var got []int64
	l := loop.New(
		loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, b int) (int, loop.Logs, error) { return s + b, loop.Logs{}, nil })),
		loop.OnTurn(loop.EachStep, func(_ context.Context, turn *loop.Turn[int, int]) error {
			got = append(got, int64(turn.State), int64(turn.Batch), turn.Elapsed.Steps)
			return nil
		}))
	_, err := l.Run(t.Context(), 10, numbers(2))
	require.NoError(t, err)
	require.Equal(t, []int64{10, 0, 1, 11, 1, 2}, got)
}
