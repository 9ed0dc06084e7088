package loop_test

import (
	"context"
	"testing"

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
