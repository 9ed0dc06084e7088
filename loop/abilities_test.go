package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

type longBatch struct{}

func (longBatch) Samples() int64 { return 32 }

type audioBatch struct{}

func (audioBatch) Samples() []float32 { return nil }

type lateBatch struct{}

func (*lateBatch) InEpoch() (int, bool, bool) { return 0, false, false }

type unblocked struct{ loop.Stepper[int, int] }

func (unblocked) BlockSize() int { return 8 }

func (unblocked) StepBlock(context.Context, int, []int) (int, loop.Logs, error) {
	return 0, loop.Logs{}, nil
}

type unawaited struct{ loop.Stepper[int, int] }

func (unawaited) Await(context.Context) error { return nil }

func oneBatch[B any](t *testing.T) (steps int64, samples int64, err error) {
	var batch B
	step := loop.StepFunc(func(_ context.Context, s int, _ B) (int, loop.Logs, error) { return s, loop.Logs{}, nil })
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), 0, loop.Data[B](func(yield func(B, error) bool) { yield(batch, nil) }))
	return result.Elapsed.Steps, result.Elapsed.Samples, err
}

// A method by which a run asks for more is an error if it has another signature: it would be left out without a word.
func TestRun_methodsOfAnotherSignature(t *testing.T) {
	_, _, err := oneBatch[longBatch](t)
	require.EqualError(t, err, "loop: the batch, a *loop_test.longBatch, has the method Samples func() int64, which a run asks for as func() int")
	_, _, err = oneBatch[lateBatch](t)
	require.ErrorContains(t, err, "has the method InEpoch func() (int, bool, bool), which a run asks for as func() (int64, bool, bool)")
	steps, samples, err := oneBatch[audioBatch](t)
	require.NoError(t, err)
	require.EqualValues(t, 1, steps)
	require.EqualValues(t, 1, samples, "samples of sound are no examples")

	for _, row := range []struct {
		step loop.Stepper[int, int]
		err  string
	}{
		{unblocked{loop.StepFunc(add)}, "loop: task 1 (each step): the step, a loop_test.unblocked, has the method StepBlock "},
		{unawaited{loop.StepFunc(add)}, "loop: task 1 (each step): the step, a loop_test.unawaited, has the method Await func(context.Context) error, which a run asks for as "},
	} {
		_, err := loop.New(loop.On(loop.EachStep, row.step)).Run(t.Context(), 0, numbers(3))
		require.ErrorContains(t, err, row.err)
	}
}
