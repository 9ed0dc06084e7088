package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

type lateBatch struct{}

func (*lateBatch) InEpoch() (int, bool, bool) { return 0, false, false }

type unawaited struct{ loop.Stepper[int, int] }

func (unawaited) Await(context.Context) error { return nil }

func oneBatch[B any](t *testing.T) (steps int64, samples int64, err error) {
	var batch B
	step := loop.StepFunc(func(_ context.Context, s int, _ B) (int, loop.Logs, error) { return s, loop.Logs{}, nil })
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), 0, loop.Data[B](func(yield func(B, error) bool) { yield(batch, nil) }))
	return result.Elapsed.Steps, result.Elapsed.Samples, err
}

func TestRun_addsUp(t *testing.T) {
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(10))
	require.NoError(t, err)
	require.Equal(t, 45, result.State)
	require.Equal(t, loop.DataEnded, result.Reason)
	require.EqualValues(t, 10, result.Elapsed.Steps)
	require.EqualValues(t, 10, result.Elapsed.Samples)
	_, sums, err := result.History.Series("sum")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 3, 6, 10, 15, 21, 28, 36, 45}, sums)
}

func TestRun_orderInATurn(t *testing.T) {
	var trace []string
	note := func(what string) func(context.Context, int, int) (int, loop.Logs, error) {
		return func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			trace = append(trace, what)
			return s, loop.Logs{}, nil
		}
	}
	watch := func(what string) func(context.Context, loop.Report) error {
		return func(_ context.Context, r loop.Report) error {
			trace = append(trace, fmt.Sprintf("%s@%d", what, r.Elapsed.Steps))
			return nil
		}
	}
	l := loop.New(loop.On(loop.Every(loop.Steps(2)), loop.StepFunc(note("even"))), loop.On(loop.EachStep, loop.StepFunc(note("each"))))
	_, err := l.Run(t.Context(), 0, numbers(3), loop.Watch(loop.EachStep, watch("w1")), loop.Watch(loop.At(loop.Steps(3)), watch("w2")))
	require.NoError(t, err)
	require.Equal(t, []string{"each", "w1@1", "even", "each", "w1@2", "each", "w1@3", "w2@3"}, trace)
}

func TestRun_cancel(t *testing.T) {
	cause := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, b int) (int, loop.Logs, error) {
		if b == 4 {
			cancel(cause)
		}
		return s + 1, loop.Logs{}, nil
	})))
	result, err := l.Run(ctx, 0, numbers(1000))
	require.ErrorIs(t, err, cause)
	require.Equal(t, loop.Cancelled, result.Reason)
	require.Equal(t, 5, result.State, "the step that was running is finished, no further one starts")
	require.EqualValues(t, 5, result.Elapsed.Steps)
}

// A task may notice the end of the context before the loop does, and return its cause or its error.
func TestRun_cancelInsideATask(t *testing.T) {
	cause := errors.New("the user went home")
	for _, report := range []func(context.Context) error{context.Cause, func(ctx context.Context) error { return ctx.Err() }} {
		ctx, cancel := context.WithCancelCause(t.Context())
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, b int) (int, loop.Logs, error) {
			if b == 4 {
				cancel(cause)
				return s, loop.Logs{}, fmt.Errorf("step: %w", report(ctx))
			}
			return s + 1, loop.Logs{}, nil
		})))
		result, err := l.Run(ctx, 0, numbers(1000))
		require.ErrorIs(t, err, report(ctx))
		require.Equal(t, loop.Cancelled, result.Reason)
		require.Equal(t, 4, result.State)
		require.EqualValues(t, 4, result.Elapsed.Steps, "the turn was not finished")
	}
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

type longBatch struct{}

func (longBatch) Samples() int64 { return 32 }

type audioBatch struct{}

func (audioBatch) Samples() []float32 { return nil }

type unblocked struct{ loop.Stepper[int, int] }

func (unblocked) BlockSize() int { return 8 }

func (unblocked) StepBlock(context.Context, int, []int) (int, loop.Logs, error) {
	return 0, loop.Logs{}, nil
}
